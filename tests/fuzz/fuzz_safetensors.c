/* fuzz_safetensors.c: a whole safetensors file, opened as such, as a vault and as a scout. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "formats/vault.h"

static void check_tensors(const safetensors *st)
{
    for (size_t i = 0; i < st->n_tensors; i++) {
        const tensor_info *t = &st->tensors[i];
        if (t->offset > st->file.size_bytes || t->n_bytes > st->file.size_bytes - t->offset) {
            abort(); /* accepted a tensor outside the file */
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    smoe_err err;
    safetensors st;
    vault v;
    scout s;
    char path[] = "fuzz-safetensors-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        perror(path);
        exit(2);
    }
    close(fd);
    if (safetensors_open(&st, path, &err) == SMOE_OK) {
        check_tensors(&st);
        safetensors_close(&st);
    }
    if (vault_open(&v, path, &err) == SMOE_OK) {
        vault_close(&v);
    }
    if (scout_open(&s, path, &err) == SMOE_OK) {
        for (size_t i = 0; i < s.st.n_tensors; i++) {
            scout_check_tensor(&s, i, &err);
        }
        scout_close(&s);
    }
    unlink(path);
    return 0;
}
