/* source.c: see source.h. */
#include "shatter/source.h"

#include "base/mem.h"
#include "json/json_read.h"

enum { MAX_SHARDS = 4096, MAX_INDEX_BYTES = 256 << 20 };

static const char SINGLE[] = "model.safetensors", INDEX[] = "model.safetensors.index.json";

static smoe_status no_weights(const source *s, smoe_err *err)
{
    char *bin = path_join(s->dir, "pytorch_model.bin"),
         *bin_index = path_join(s->dir, "pytorch_model.bin.index.json");
    bool old = (bin != NULL && file_exists(bin)) || (bin_index != NULL && file_exists(bin_index));
    mem_free(bin);
    mem_free(bin_index);
    return err_set(err, SMOE_IO, "%s holds neither %s nor %s; %s", s->dir, SINGLE, INDEX,
                   old ? "its weights are in PyTorch's own format: save them as safetensors first"
                       : "is it a checkpoint directory, and complete?");
}

/* A shard's name comes from a file: it must stay inside the directory. */
static smoe_status check_shard_name(const source *s, slice name, smoe_err *err)
{
    if (name.len == 0 || name.len > 255 || name.data[0] == '.' ||
        memchr(name.data, '/', name.len)) {
        return err_set(err, SMOE_FORMAT,
                       "%s/%s names \"%.*s\" as a shard, which is not a plain file name", s->dir,
                       INDEX, NAME_ARG(name));
    }
    return SMOE_OK;
}

static smoe_status open_shard(source *s, const char *name, const char *named_by, smoe_err *err)
{
    smoe_status status = SMOE_OK;
    char *path = path_join(s->dir, name);
    if (path == NULL) {
        return err_nomem(err, "a path", strlen(name));
    }
    if (!file_exists(path)) {
        status = err_set(err, SMOE_IO,
                         "shard %s is missing from %s, but %s names it; fetch it and start "
                         "again",
                         name, s->dir, named_by);
    } else {
        status = safetensors_open(&s->shards[s->n_open], path, err);
    }
    s->n_open += status == SMOE_OK;
    mem_free(path);
    return status;
}

static smoe_status alloc_shards(source *s, size_t n, smoe_err *err)
{
    s->shards = mem_calloc(n, sizeof *s->shards);
    s->first = mem_calloc(n + 1, sizeof *s->first);
    s->n_shards = n;
    return s->shards == NULL || s->first == NULL
               ? err_nomem(err, "the table of shards", n * sizeof *s->shards)
               : SMOE_OK;
}

/* Distinct shard names of weight_map, each opened once, in order of first mention. */
static smoe_status open_indexed(source *s, const json_value *weight_map, smoe_err *err)
{
    map seen;
    smoe_status status = SMOE_OK;
    map_init(&seen);
    for (int pass = 0; pass < 2; pass++) { /* count, then open */
        for (void *it = jr_iter(weight_map); it != NULL; it = jr_next(weight_map, it)) {
            slice name;
            uint64_t opened;
            if (!jr_string(jr_iter_value(it), &name)) {
                status = err_set(err, SMOE_FORMAT,
                                 "%s/%s: \"weight_map\" gives \"%.*s\" %s, not a file "
                                 "name",
                                 s->dir, INDEX, NAME_ARG(jr_iter_key(it)),
                                 jr_kind_name(jr_iter_value(it)));
                goto out;
            }
            bool known = map_get(&seen, name, &opened);
            if (pass == 0 && !known) {
                CHECK(check_shard_name(s, name, err));
            }
            if ((!known && !map_put(&seen, name, 0)) ||
                (known && pass == 1 && opened == 0 && !map_put(&seen, name, 1))) {
                status = err_nomem(err, "the list of shards", name.len);
                goto out;
            }
            if (pass == 1 && opened == 0) {
                CHECK(open_shard(s, name.data, INDEX, err));
            }
        }
        if (pass == 0 && (seen.n_entries == 0 || seen.n_entries > MAX_SHARDS)) {
            status = err_set(err, SMOE_FORMAT, "%s/%s names %zu shards; 1 to %d are accepted",
                             s->dir, INDEX, seen.n_entries, MAX_SHARDS);
            goto out;
        }
        if (pass == 0) {
            CHECK(alloc_shards(s, seen.n_entries, err));
        }
    }
out:
    map_fini(&seen);
    return status;
}

static size_t shard_of(const source *s, size_t i)
{
    size_t lo = 0, hi = s->n_shards;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->first[mid] <= i) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static smoe_status index_names(source *s, smoe_err *err)
{
    for (size_t i = 0; i < s->n_shards; i++) {
        s->first[i + 1] = s->first[i] + s->shards[i].n_tensors;
    }
    size_t n = s->first[s->n_shards];
    s->used = mem_calloc(n, sizeof *s->used);
    if (s->used == NULL || !map_reserve(&s->by_name, n)) {
        return err_nomem(err, "the index of tensors", n * sizeof(map_entry));
    }
    for (size_t i = 0; i < n; i++) {
        size_t shard = shard_of(s, i);
        slice name = s->shards[shard].tensors[i - s->first[shard]].name;
        uint64_t other;
        if (map_get(&s->by_name, name, &other)) {
            return err_set(err, SMOE_FORMAT,
                           "tensor \"%.*s\" is in both %s and %s; one of them is stale",
                           NAME_ARG(name), s->shards[shard_of(s, (size_t)other)].file.path,
                           s->shards[shard].file.path);
        }
        if (!map_put(&s->by_name, name, i)) {
            return err_nomem(err, "the index of tensors", sizeof(map_entry));
        }
    }
    return SMOE_OK;
}

/* Everything that the index promises must be in the shard that it names. */
static smoe_status check_index(const source *s, const json_value *weight_map, smoe_err *err)
{
    for (void *it = jr_iter(weight_map); it != NULL; it = jr_next(weight_map, it)) {
        slice shard_name = {0}, key = jr_iter_key(it);
        uint64_t i;
        jr_string(jr_iter_value(it), &shard_name);
        bool there = map_get(&s->by_name, key, &i);
        const char *path = there ? s->shards[shard_of(s, (size_t)i)].file.path : "/";
        if (!there || !slice_is(shard_name, strrchr(path, '/') + 1)) {
            return err_set(err, SMOE_FORMAT,
                           "%s/%s says that tensor \"%.*s\" is in %.*s, but it is not; "
                           "the shards and the index are of different downloads",
                           s->dir, INDEX, NAME_ARG(key), NAME_ARG(shard_name));
        }
    }
    return SMOE_OK;
}

static smoe_status open_sharded(source *s, const char *index_path, smoe_err *err)
{
    smoe_status status;
    json_value *root = NULL;
    buf text;
    buf_init(&text, MAX_INDEX_BYTES);
    CHECK(file_slurp(index_path, MAX_INDEX_BYTES, &text, err));
    CHECK(jr_parse(buf_slice(&text), index_path, &root, err));
    const json_value *weight_map = jr_get(root, "weight_map");
    if (jr_kind(weight_map) != JSON_KIND_OBJECT) {
        status = err_set(err, SMOE_FORMAT, "%s: \"weight_map\" is %s, not an object", index_path,
                         jr_kind_name(weight_map));
        goto out;
    }
    CHECK(open_indexed(s, weight_map, err));
    CHECK(index_names(s, err));
    CHECK(check_index(s, weight_map, err));
out:
    jr_free(root);
    buf_fini(&text);
    return status;
}

static smoe_status open_any(source *s, smoe_err *err)
{
    smoe_status status;
    char *single = path_join(s->dir, SINGLE), *index = path_join(s->dir, INDEX);
    if (single == NULL || index == NULL) {
        status = err_nomem(err, "a path", strlen(s->dir));
    } else if (file_exists(single)) { /* where both exist, this one counts, as in transformers */
        CHECK(alloc_shards(s, 1, err));
        CHECK(open_shard(s, SINGLE, s->dir, err));
        CHECK(index_names(s, err));
    } else if (file_exists(index)) {
        status = open_sharded(s, index, err);
    } else {
        status = no_weights(s, err);
    }
out:
    mem_free(single);
    mem_free(index);
    return status;
}

smoe_status source_open(source *s, const char *dir, smoe_err *err)
{
    *s = (source){.dir = mem_strdup(dir)};
    map_init(&s->by_name);
    smoe_status status = s->dir == NULL ? err_nomem(err, "a path", strlen(dir)) : open_any(s, err);
    if (status != SMOE_OK) {
        source_close(s);
    }
    return status;
}

void source_close(source *s)
{
    for (size_t i = 0; i < s->n_open; i++) {
        safetensors_close(&s->shards[i]);
    }
    mem_free(s->shards);
    mem_free(s->first);
    mem_free(s->used);
    mem_free(s->dir);
    map_fini(&s->by_name);
    *s = (source){0};
}

bool source_find(source *s, const char *name, size_t *shard, const tensor_info **info)
{
    uint64_t i;
    if (!map_get(&s->by_name, slice_from(name), &i)) {
        return false;
    }
    s->used[i] = true;
    *shard = shard_of(s, (size_t)i);
    *info = &s->shards[*shard].tensors[i - s->first[*shard]];
    return true;
}

const tensor_info *source_unused(const source *s, size_t i, size_t *shard)
{
    for (size_t k = 0; k < s->first[s->n_shards]; k++) {
        if (!s->used[k] && i-- == 0) {
            *shard = shard_of(s, k);
            return &s->shards[*shard].tensors[k - s->first[*shard]];
        }
    }
    return NULL;
}
