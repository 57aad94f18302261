/* normalize.h: Unicode normalisation form C, exactly as the reference library computes it. */
#ifndef TOKENIZER_NORMALIZE_H
#define TOKENIZER_NORMALIZE_H

#include "base/buf.h"
#include "base/slice.h"

/* Working memory of one caller, kept from call to call. */
typedef struct normalize_work {
    buf text;       /* the normalised text */
    int32_t *codes; /* the segment in hand, decomposed */
    int32_t *marks; /* space to sort a run of combining marks */
    size_t cap;     /* of codes and of marks */
} normalize_work;

void normalize_init(normalize_work *w);
void normalize_fini(normalize_work *w);

/* text must be valid UTF-8. *out borrows either text itself (when it is already in form C) or
 * w->text, until the next call. Linear in the text, whatever marks it is made of. */
smoe_status normalize_nfc(normalize_work *w, slice text, slice *out, smoe_err *err);

#endif
