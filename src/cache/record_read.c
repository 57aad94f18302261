/* record_read.c: see record_read.h. */
#include "cache/record_read.h"

#include <errno.h>

smoe_status record_read_status(const vault *v, uint32_t record, int error, smoe_err *err)
{
    uint32_t layer = record / v->n_expert, expert = record % v->n_expert;
    unsigned long long offset = v->record_offset[record];
    if (error == 0) {
        return SMOE_OK;
    }
    if (error == ENODATA) {
        return err_set(err, SMOE_IO,
                       "%s: record blk.%u.exp.%u at offset %llu is not all there: the file was cut "
                       "short after it was opened",
                       v->st.file.path, layer, expert, offset);
    }
    errno = error;
    return err_errno(err, SMOE_IO, "%s: record blk.%u.exp.%u at offset %llu cannot be read",
                     v->st.file.path, layer, expert, offset);
}
