/* fuzz_config.c: config.json. */
#include "fuzz.h"

#include <stdlib.h>

#include "formats/model_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    smoe_err err;
    model_config cfg;
    dense_tensor t;
    if (model_config_parse(slice_of(data, size), "config.json", &cfg, &err) != SMOE_OK) {
        return 0;
    }
    if (cfg.n_layer == 0 || cfg.n_layer > MODEL_MAX_LAYERS || cfg.n_expert > MODEL_MAX_EXPERTS ||
        cfg.n_embd == 0 || cfg.n_vocab == 0) {
        abort(); /* accepted what the header rules out */
    }
    for (size_t i = 0; model_config_dense_tensor(&cfg, i, &t); i++) {
        if (t.rows == 0 || t.cols == 0) {
            abort();
        }
    }
    return 0;
}
