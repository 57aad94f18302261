/* scratch.c: see scratch.h. */
#include "scratch.h"

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[256];

int scratch_setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(dir, sizeof dir, "%s/smoe-test-XXXXXX", tmp != NULL ? tmp : "/tmp");
    return mkdtemp(dir) == NULL ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

int scratch_teardown(void **state)
{
    (void)state;
    return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_path(const char *name)
{
    static char paths[16][1024];
    static unsigned next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

void scratch_write(const char *name, const void *data, size_t n_bytes)
{
    FILE *f = fopen(scratch_path(name), "wb");
    if (f == NULL || (n_bytes > 0 && fwrite(data, 1, n_bytes, f) != n_bytes) || fclose(f) != 0) {
        abort();
    }
}

void scratch_write_safetensors(const char *name, const char *header, size_t n_data)
{
    size_t n = strlen(header), total = 8 + n + n_data;
    uint8_t *all = calloc(1, total);
    if (all == NULL) {
        abort();
    }
    for (int i = 0; i < 8; i++) {
        all[i] = (uint8_t)((uint64_t)n >> (8 * i));
    }
    memcpy(all + 8, header, n);
    scratch_write(name, all, total);
    free(all);
}
