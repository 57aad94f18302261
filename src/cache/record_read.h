/* record_read.h: the sentence for a record that could not be read, the same from every source. */
#ifndef CACHE_RECORD_READ_H
#define CACHE_RECORD_READ_H

#include "formats/vault.h"

/* error: of aio_done. record: layer * n_expert + expert. */
smoe_status record_read_status(const vault *v, uint32_t record, int error, smoe_err *err);

#endif
