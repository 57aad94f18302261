/* record_read.h: the sentence for records that could not be read, the same from every source. */
#ifndef CACHE_RECORD_READ_H
#define CACHE_RECORD_READ_H

#include "formats/vault.h"

/* error: of aio_done. record: layer * n_expert + expert. */
smoe_status record_read_status(const vault *v, uint32_t record, int error, smoe_err *err);
/* The same of one read that covered the records from first to last, neighbours in the file. */
smoe_status record_reads_status(const vault *v, uint32_t first, uint32_t last, int error,
                                smoe_err *err);

#endif
