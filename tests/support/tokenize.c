/* tokenize.c: a tokenizer on a pipe, for comparisons with other implementations.
 *
 * usage: tokenize tokenizer.json < texts > ids
 * texts: each a little-endian 32-bit length, then so many bytes. For each, one line: the ids, a
 * tab, and the hexadecimal bytes that detokenising those ids gives; or "error: " and the reason. */
#include <stdio.h>
#include <stdlib.h>

#include "smoe/tokenizer.h"

static char *read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        long size = ftell(f);
        data = size >= 0 ? malloc((size_t)size + 1) : NULL;
        rewind(f);
        if (data && (*len = fread(data, 1, (size_t)size, f)) != (size_t)size) {
            free(data);
            data = NULL;
        }
    }
    if (f) {
        fclose(f);
    }
    return data;
}

static void print_hex(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        printf("%02x", (unsigned char)data[i]);
    }
}

/* Detokenises the ids one by one, as a console does. */
static void print_text(const smoe_tokenizer *tok, const smoe_ids *ids)
{
    smoe_detok d;
    smoe_detok_init(&d, tok);
    for (size_t i = 0; i < ids->len; i++) {
        const char *bytes;
        size_t len;
        smoe_tokenizer_bytes(tok, ids->data[i], &bytes, &len, NULL);
        char *out = malloc(3 * len + 16);
        if (!out) {
            exit(1);
        }
        print_hex(out, smoe_detok_push(&d, ids->data[i], out, 3 * len + 16));
        free(out);
    }
    char rest[16];
    print_hex(rest, smoe_detok_finish(&d, rest, sizeof rest));
}

int main(int argc, char **argv)
{
    size_t json_len = 0;
    char *json = argc == 2 ? read_file(argv[1], &json_len) : NULL;
    smoe_err err;
    smoe_tokenizer *tok = NULL;
    if (!json) {
        fprintf(stderr, "usage: tokenize tokenizer.json < texts > ids\n");
        return 2;
    }
    if (smoe_tokenizer_new(json, json_len, &tok, &err) != SMOE_OK) {
        fprintf(stderr, "%s\n", err.text);
        free(json);
        return 1;
    }
    unsigned char head[4];
    while (fread(head, 1, 4, stdin) == 4) {
        size_t len = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
        char *text = malloc(len + 1);
        smoe_ids ids = {0};
        if (!text || fread(text, 1, len, stdin) != len) {
            fprintf(stderr, "the input ends inside a text\n");
            return 1;
        }
        if (smoe_tokenizer_encode(tok, text, len, &ids, &err) == SMOE_OK) {
            for (size_t i = 0; i < ids.len; i++) {
                printf(i ? " %d" : "%d", ids.data[i]);
            }
            putchar('\t');
            print_text(tok, &ids);
            putchar('\n');
        } else {
            printf("error: %s\n", err.text);
        }
        smoe_ids_free(&ids);
        free(text);
    }
    smoe_tokenizer_free(tok);
    free(json);
    return 0;
}
