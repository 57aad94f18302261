"""The model: a Qwen3-MoE decoder in plain PyTorch, arranged for training on a CPU.

All tokens of a batch lie in one flat list; each expert works on the tokens routed to it in one matrix product.
The arithmetic follows transformers' Qwen3MoeForCausalLM (checked by check_hf.py).
"""
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab_size: int = 2048
    hidden_size: int = 256
    num_hidden_layers: int = 4
    num_attention_heads: int = 8
    num_key_value_heads: int = 4
    head_dim: int = 64
    num_experts: int = 12
    num_experts_per_tok: int = 3
    moe_intermediate_size: int = 256
    max_position_embeddings: int = 1024
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6

    def hf(self, eos, pad):
        """config.json as the published Qwen3 MoE checkpoints have it."""
        return {"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": None,
                "decoder_sparse_step": 1, "eos_token_id": eos, "hidden_act": "silu", "initializer_range": 0.02,
                "intermediate_size": 768, "max_window_layers": self.num_hidden_layers, "mlp_only_layers": [],
                "model_type": "qwen3_moe", "norm_topk_prob": True, "output_router_logits": False, "pad_token_id": pad,
                "rope_scaling": None, "router_aux_loss_coef": 0.01, "sliding_window": None, "tie_word_embeddings": True,
                "torch_dtype": "bfloat16", "use_cache": True, "use_sliding_window": False, **asdict(self)}


def rope(x, pos, theta):
    """Rotate pairs (i, i + head_dim / 2); x is [batch, heads, time, head_dim], pos is [batch, time]."""
    half = x.shape[-1] // 2
    inv = theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = (pos[:, None, :, None].float() * inv)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def fake_q2(w):
    """What a two-bit K-quantisation leaves of w (blocks of 16: scale and minimum), with the gradient passed straight through."""
    with torch.no_grad():
        b = w.reshape(-1, 16)
        low = b.min(1, keepdim=True).values.clamp(max=0)
        step = ((b.max(1, keepdim=True).values - low) / 3).clamp(min=1e-8)
        q = (((b - low) / step).round().clamp(0, 3) * step + low).reshape(w.shape)
    return w + (q - w).detach()


class Experts(nn.Module):
    """Router and experts of one layer."""

    def __init__(self, c):
        super().__init__()
        self.k = c.num_experts_per_tok
        self.gate = nn.Parameter(torch.randn(c.num_experts, c.hidden_size) * 0.02)
        self.up = nn.Parameter(torch.randn(c.num_experts, 2 * c.moe_intermediate_size, c.hidden_size) * c.hidden_size ** -0.5)  # gate, up
        self.down = nn.Parameter(torch.randn(c.num_experts, c.hidden_size, c.moe_intermediate_size)
                                 * (c.moe_intermediate_size * 2 * c.num_hidden_layers) ** -0.5)
        self.fake = False           # train as if the experts were quantised to two bits
        self.chosen = None          # of the last call: the experts of every token
        self.load = None            # of the last call: fraction of the slots that went to each expert

    def forward(self, x):
        n, d = x.shape
        with torch.autocast("cpu", enabled=False):
            logits = F.linear(x.float(), self.gate)
            probs = logits.softmax(-1)
            weight, chosen = probs.topk(self.k, -1)
            weight = weight / weight.sum(-1, keepdim=True)
        # Sort the (token, expert) pairs by expert; pad each expert's share to a multiple of 128 rows (weight 0), because
        # oneDNN compiles a kernel per shape and would otherwise compile all the time.
        flat = chosen.reshape(-1)
        order = flat.argsort(stable=True)
        counts = torch.bincount(flat, minlength=probs.shape[1])
        room = (counts + 127) // 128 * 128 if n > 1024 else counts
        slot = torch.arange(flat.numel()) + (room.cumsum(0) - room - counts.cumsum(0) + counts)[flat[order]]
        token = torch.zeros(int(room.sum()), dtype=torch.long).index_put((slot,), order // self.k)
        scale = torch.zeros(int(room.sum())).index_put((slot,), weight.reshape(-1)[order])
        up, down = (fake_q2(self.up), fake_q2(self.down)) if self.fake else (self.up, self.down)
        if torch.is_autocast_enabled("cpu"):
            up, down, x = up.bfloat16(), down.bfloat16(), x.bfloat16()
        parts = []
        for xs, u, v in zip(x[token].split(room.tolist()), up.unbind(), down.unbind()):
            g, h = F.linear(xs, u).chunk(2, -1)
            parts.append(F.linear(F.silu(g) * h, v))
        y = torch.cat(parts) * scale.unsqueeze(1).to(x.dtype)
        self.chosen = chosen
        self.load = counts / flat.numel()
        # balance: load times mean probability, 1 when even (as in the Switch Transformer); z: keep router logits small
        self.balance = (self.load * probs.mean(0)).sum() * probs.shape[1]
        self.z = logits.logsumexp(-1).square().mean()
        return torch.zeros(n, d).index_add(0, token, y.float())


class Norm(nn.Module):
    """RMS norm; the product with the weight keeps the input's type, so that bfloat16 stays bfloat16."""

    def __init__(self, d, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d)), eps

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), self.eps)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        d, q, kv = c.hidden_size, c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
        self.norm1, self.norm2 = Norm(d, c.rms_norm_eps), Norm(d, c.rms_norm_eps)
        self.q_norm, self.k_norm = Norm(c.head_dim, c.rms_norm_eps), Norm(c.head_dim, c.rms_norm_eps)
        self.q, self.k, self.v, self.o = (nn.Linear(*s, bias=False) for s in ((d, q), (d, kv), (d, kv), (q, d)))
        for m in (self.q, self.k, self.v):
            nn.init.normal_(m.weight, std=d ** -0.5)
        nn.init.normal_(self.o.weight, std=(q * 2 * c.num_hidden_layers) ** -0.5)
        self.moe = Experts(c)

    def forward(self, x, pos, mask, cache=None):
        c, (b, t, d) = self.c, x.shape
        h = self.norm1(x)
        q = self.q_norm(self.q(h).view(b, t, -1, c.head_dim)).transpose(1, 2)
        k = self.k_norm(self.k(h).view(b, t, -1, c.head_dim)).transpose(1, 2)
        v = self.v(h).view(b, t, -1, c.head_dim).transpose(1, 2)
        q, k = rope(q, pos, c.rope_theta), rope(k, pos, c.rope_theta)
        if cache is not None:
            if cache:
                k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
            cache[:] = [k, v]
        # the query heads that share a key head are rows of one product; on a CPU this is three times as fast as the fused kernel
        n, g, e = t * (c.num_attention_heads // c.num_key_value_heads), b * c.num_key_value_heads, c.head_dim
        with torch.autocast("cpu", enabled=False):
            q = (q * e ** -0.5).to(v.dtype).reshape(g, n, e)
            score = torch.baddbmm(mask, q, k.to(v.dtype).reshape(g, -1, e).transpose(1, 2))
            a = torch.bmm(score.softmax(-1), v.reshape(g, -1, e)).view(b, -1, t, e)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, -1))
        return x + self.moe(self.norm2(x).view(b * t, d)).view(b, t, d)


class Model(nn.Module):
    def __init__(self, c=Config()):
        super().__init__()
        self.c = c
        self.embed = nn.Parameter(torch.randn(c.vocab_size, c.hidden_size) * 0.02)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.num_hidden_layers))
        self.norm = Norm(c.hidden_size, c.rms_norm_eps)

    def forward(self, ids, pos, mask, cache=None, select=None):
        """Logits; select picks positions of the flat [batch * time] list, so that only they pay for the vocabulary."""
        c, x = self.c, F.embedding(ids, self.embed)
        kind = torch.bfloat16 if torch.is_autocast_enabled("cpu") else torch.float32
        mask = torch.zeros(mask.shape, dtype=kind).masked_fill(~mask, -1e9)
        mask = mask.repeat_interleave(c.num_attention_heads, 1).reshape(ids.shape[0] * c.num_key_value_heads, -1, mask.shape[-1])
        for i, layer in enumerate(self.layers):
            x = layer(x, pos, mask, None if cache is None else cache[i])
        x = self.norm(x)
        if select is not None:
            x = x.reshape(-1, x.shape[-1])[select]
        return F.linear(x, self.embed)
