/* normalize.h: the Unicode normalisation forms, exactly as the reference library computes them. */
#ifndef TOKENIZER_NORMALIZE_H
#define TOKENIZER_NORMALIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* Working memory of one caller, kept from call to call. */
typedef struct normalize_work {
    bool composes, is_compat; /* of the call in hand */
    buf text;       /* the normalised text */
    int32_t *codes; /* the segment in hand, decomposed */
    int32_t *marks; /* space to sort a run of combining marks */
    size_t cap;     /* of codes and of marks */
} normalize_work;

void normalize_init(normalize_work *w);
void normalize_fini(normalize_work *w);

enum normal_form { NORMAL_NFC, NORMAL_NFD, NORMAL_NFKC, NORMAL_NFKD };

/* text must be valid UTF-8. *out borrows either text itself (when it has nothing to change) or
 * w->text, until the next call. Linear in the text, whatever marks it is made of. */
smoe_status normalize_text(normalize_work *w, enum normal_form form, slice text, slice *out,
                           smoe_err *err);

#endif
