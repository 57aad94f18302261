/* record_read.c: see record_read.h. */
#include "cache/record_read.h"

#include <errno.h>
#include <stdio.h>

smoe_status record_reads_status(const vault *v, uint32_t first, uint32_t last, int error,
                                smoe_err *err)
{
    unsigned long long offset = v->record_offset[first];
    char names[96], to[48] = "";
    if (error == 0) {
        return SMOE_OK;
    }
    if (last != first) {
        snprintf(to, sizeof to, " to blk.%u.exp.%u", last / v->n_expert, last % v->n_expert);
    }
    snprintf(names, sizeof names, "record%s blk.%u.exp.%u%s", *to ? "s" : "", first / v->n_expert,
             first % v->n_expert, to);
    if (error == ENODATA) {
        return err_set(err, SMOE_IO,
                       "%s: %s at offset %llu %s not all there: the file was cut short after it "
                       "was opened",
                       v->st.file.path, names, offset, *to ? "are" : "is");
    }
    errno = error;
    return err_errno(err, SMOE_IO, "%s: %s at offset %llu cannot be read", v->st.file.path, names,
                     offset);
}

smoe_status record_read_status(const vault *v, uint32_t record, int error, smoe_err *err)
{
    return record_reads_status(v, record, record, error, err);
}
