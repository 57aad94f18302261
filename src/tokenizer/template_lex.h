/* template_lex.h: the source of a template as tokens, with Jinja's whitespace control applied. */
#ifndef TOKENIZER_TEMPLATE_LEX_H
#define TOKENIZER_TEMPLATE_LEX_H

#include "tokenizer/template_ast.h"

enum tt_kind {
    TT_EOF,
    TT_DATA, /* text to print */
    TT_BLOCK_BEGIN,
    TT_BLOCK_END,
    TT_VAR_BEGIN,
    TT_VAR_END,
    TT_NAME,
    TT_STR,
    TT_INT,
    TT_FLOAT,
    TT_OP, /* text is the operator itself */
};

typedef struct template_token {
    uint8_t kind;
    uint32_t at; /* offset in the source */
    slice text;  /* of data, names and operators; the unescaped value of a string */
    union {
        int64_t i;
        double f;
    } num;
} template_token;

typedef struct template_tokens {
    template_token *items; /* ends with TT_EOF; owned: mem_free */
    size_t n, cap;
} template_tokens;

/* source: UTF-8 with "\n" line ends. Texts that need building go into the arena. */
smoe_status template_lex(slice source, arena *a, template_tokens *out, smoe_err *err);

#endif
