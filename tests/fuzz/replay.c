/* replay.c: runs a fuzz target without libFuzzer: over every file given, and over N mutations of
 * each that depend on nothing but their number, so that a failure is found again.
 *
 *   replay N FILE... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "fuzz.h"

enum { MAX_BYTES = 1 << 20, HEAD_BYTES = 4096 };

static uint8_t seed[MAX_BYTES], mutant[2 * MAX_BYTES];

static size_t read_seed(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(2);
    }
    size_t n = fread(seed, 1, MAX_BYTES, f);
    fclose(f);
    return n;
}

/* Changes bytes, and removes, repeats or inserts ranges. */
static size_t mutate(size_t n, rng *r)
{
    memcpy(mutant, seed, n);
    for (uint64_t k = 1 + rng_next(r) % 4; k > 0; k--) {
        size_t head = n > HEAD_BYTES && rng_next(r) % 4 ? HEAD_BYTES : n; /* headers come first */
        size_t at = n ? rng_next(r) % head : 0;
        size_t len = n ? rng_next(r) % (n - at < 64 ? n - at + 1 : 64) : 0;
        switch (rng_next(r) % 5) {
        case 0:
            if (n) {
                mutant[at] = (uint8_t)rng_next(r);
            }
            break;
        case 1:
            if (n) {
                mutant[at] ^= (uint8_t)(1u << rng_next(r) % 8);
            }
            break;
        case 2: /* remove */
            memmove(mutant + at, mutant + at + len, n - at - len);
            n -= len;
            break;
        case 3: /* repeat */
            if (n + len <= MAX_BYTES) {
                memmove(mutant + at + len, mutant + at, n - at);
                n += len;
            }
            break;
        default: /* cut short */
            n = rng_next(r) % 4 ? n : at;
            break;
        }
    }
    return n;
}

/* A copy of exactly this size, so that a sanitizer sees a read past its end. */
static void run(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy) {
        exit(2);
    }
    memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s N FILE...\n", argv[0]);
        return 2;
    }
    long n_mutants = strtol(argv[1], NULL, 10);
    for (int i = 2; i < argc; i++) {
        size_t n = read_seed(argv[i]);
        run(seed, n);
        for (long k = 0; k < n_mutants; k++) {
            rng r = {(uint64_t)k};
            run(mutant, mutate(n, &r));
        }
    }
    printf("%d passed, 0 failed, 0 skipped\n", argc - 2);
    return 0;
}
