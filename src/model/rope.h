/* rope.h: rotary position embeddings (Su et al. 2021) with the frequency scalings that Hugging Face
 * checkpoints name in rope_scaling: default, linear, yarn (Peng et al. 2023), llama3. The rotation
 * itself is a kernel; element i is paired with i + n_embd_head / 2 (the "neox" order). */
#ifndef MODEL_ROPE_H
#define MODEL_ROPE_H

#include <stdint.h>

#include "formats/model_config.h"

/* inv_freq [n_embd_head / 2]: radians per position of each rotated pair. */
void rope_frequencies(const rope_config *rope, uint32_t n_embd_head, float *inv_freq);

/* cos and sin of position * inv_freq, times the yarn attention factor: [n_embd_head / 2] each. */
void rope_cos_sin(const rope_config *rope, const float *inv_freq, uint32_t n_embd_head,
                  uint32_t position, float *cos_out, float *sin_out);

#endif
