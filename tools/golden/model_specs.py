"""The tiny models: one entry per variant of the qwen3_moe configuration.

`config`   what differs from BASE.
`blind`    configuration changes that a reader which ignores the variant would make; the logits must notice each one.
`dtype`    of the weights: bf16 unless given; `mixed` is bf16 with the norms and routers in f32.
`shards`   number of safetensors files. `style`: "v4" is the published Qwen3 form; "v5" is what transformers 5 saves;
           "v5-fused" is the same with the fused expert tensors it holds in memory.
`n_prompt` length of the prompt.
"""

BASE = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 285,
    "decoder_sparse_step": 1,
    "eos_token_id": 287,
    "head_dim": 16,
    "hidden_act": "silu",
    "hidden_size": 64,
    "initializer_range": 0.02,
    "intermediate_size": 96,
    "max_position_embeddings": 256,
    "max_window_layers": 3,
    "mlp_only_layers": [],
    "model_type": "qwen3_moe",
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
    "num_attention_heads": 4,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "output_router_logits": False,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "router_aux_loss_coef": 0.001,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.51.0",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 288,
}

# The prompts of the scaled models run to three times this length, the answers beyond that.
ORIGINAL_CONTEXT = 32
LONG = 96


def scaled(rope, **config):
    """A model with scaled positions; a reader that ignores the scaling must be seen."""
    return {
        "n_prompt": LONG,
        "config": {"head_dim": 32, "rope_scaling": rope, **config},
        "blind": [{"rope_scaling": None}],
    }


YARN_FULL = {
    "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": ORIGINAL_CONTEXT, "beta_fast": 3.0,
    "beta_slow": 0.4, "attention_factor": 1.3, "truncate": False,
}
YARN_MSCALE = {
    "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": ORIGINAL_CONTEXT, "beta_fast": 4.0,
    "beta_slow": 0.5, "mscale": 2.0, "mscale_all_dim": 0.5,
}


def without(rope, *keys):
    return {"rope_scaling": {k: v for k, v in rope.items() if k not in keys}}


SPECS = {
    "base": {},
    "tied": {"config": {"tie_word_embeddings": True}},
    "no_norm_topk": {"config": {"norm_topk_prob": False}, "blind": [{"norm_topk_prob": True}]},
    "sparse_step2": {"config": {"decoder_sparse_step": 2, "num_hidden_layers": 4}},
    "mlp_only": {"config": {"mlp_only_layers": [0, 2], "num_hidden_layers": 5}},
    # A layer is sparse only if neither rule makes it dense: here, of four layers, only the last.
    "sparse_step2_mlp_only": {"config": {"decoder_sparse_step": 2, "mlp_only_layers": [1], "num_hidden_layers": 4}},
    "head_dim32": {"config": {"head_dim": 32}},
    "head_dim24": {"config": {"head_dim": 24}},
    "mqa": {"config": {"num_key_value_heads": 1}},
    # Without head_dim a reader has to take hidden_size / num_attention_heads.
    "mha_no_head_dim": {"config": {"num_key_value_heads": 4, "head_dim": None}},
    "attention_bias": {"config": {"attention_bias": True}},
    # "type" is the older spelling of "rope_type".
    "rope_linear": scaled({"type": "linear", "factor": 2.5}),
    "rope_yarn": scaled({"type": "yarn", "factor": 8.0, "original_max_position_embeddings": ORIGINAL_CONTEXT}),
    "rope_yarn_full": {
        **scaled(YARN_FULL),
        "blind": [{"rope_scaling": None}, without(YARN_FULL, "beta_fast", "beta_slow"),
                  without(YARN_FULL, "attention_factor"), without(YARN_FULL, "truncate")],
    },
    "rope_yarn_mscale_v5": {
        **scaled(YARN_MSCALE), "style": "v5", "blind": [without(YARN_MSCALE, "mscale", "mscale_all_dim")],
    },
    "rope_llama3": scaled({
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": ORIGINAL_CONTEXT,
    }),
    "sharded": {"shards": 3},
    "v5": {"style": "v5", "config": {"rope_theta": 1000000.0}},
    # 2 * moe_intermediate_size = hidden_size: only the documented orientation, not the shape, tells the axes apart.
    "v5_fused": {"style": "v5-fused", "config": {"rope_theta": 500000.0}},
    "v5_fused_wide": {"style": "v5-fused", "config": {"moe_intermediate_size": 40}, "shards": 2},
    "f16": {"dtype": "f16", "config": {"torch_dtype": "float16"}},
    "f32": {"dtype": "f32", "config": {"torch_dtype": "float32", "num_hidden_layers": 2}},
    "mixed_dtype": {"dtype": "mixed"},
    "top1_theta5e5": {
        "config": {"num_experts_per_tok": 1, "rope_theta": 500000.0, "rms_norm_eps": 1e-05, "norm_topk_prob": False},
        "blind": [{"rope_theta": 10000.0}, {"norm_topk_prob": True}],
    },
    "top_all_eps1e-2": {
        "config": {"num_experts": 4, "num_experts_per_tok": 4, "rope_theta": 1234.5, "rms_norm_eps": 0.01},
        "blind": [{"rope_theta": 10000.0}, {"rms_norm_eps": 1e-06}],
    },
    # Nothing here is a power of two, and the vocabulary is padded beyond the tokenizer.
    "odd": {
        "n_prompt": 29,
        "config": {
            "hidden_size": 96, "intermediate_size": 56, "moe_intermediate_size": 40, "vocab_size": 307,
            "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 20, "num_experts": 5,
            "num_experts_per_tok": 3,
        },
    },
    "kquant": {
        "config": {
            "hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 256, "num_experts": 4,
            "num_hidden_layers": 2, "num_attention_heads": 8, "head_dim": 32, "num_key_value_heads": 2,
        },
    },
    # Attention sees only the last 12 positions. For engines that lack this: the configuration must be refused.
    "sliding_window": {
        "n_prompt": 40,
        "config": {"use_sliding_window": True, "sliding_window": 12, "max_window_layers": 0},
        "blind": [{"use_sliding_window": False}],
    },
}
