"""The weights: names, shapes, first values, and what quantisation does to them.

Inside the recipe an expert layer is three stacked tensors ([experts, width, hidden] and so on), so that
one product serves all experts; `export.py` takes them apart into the names of Hugging Face.
"""

from __future__ import annotations

import math

import torch

from settings import Shape

Weights = dict[str, torch.Tensor]

STACKED = (".mlp.experts.gate", ".mlp.experts.up", ".mlp.experts.down")



def attention_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    h = shape.hidden
    return {
        "input_layernorm": (h,),
        "post_attention_layernorm": (h,),
        "self_attn.q_a_proj": (shape.q_rank, h),
        "self_attn.q_a_layernorm": (shape.q_rank,),
        "self_attn.q_b_proj": (shape.heads * shape.qk, shape.q_rank),
        "self_attn.kv_a_proj_with_mqa": (shape.kv_rank + shape.rope, h),
        "self_attn.kv_a_layernorm": (shape.kv_rank,),
        "self_attn.kv_b_proj": (shape.heads * (shape.nope + shape.v_dim), shape.kv_rank),
        "self_attn.o_proj": (h, shape.heads * shape.v_dim),
    }


def indexer_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    return {
        "self_attn.indexer.wq_b": (shape.index_heads * shape.index_dim, shape.q_rank),
        "self_attn.indexer.wk": (shape.index_dim, shape.hidden),
        "self_attn.indexer.k_norm": (shape.index_dim,),
        "self_attn.indexer.k_norm.bias": (shape.index_dim,),
        "self_attn.indexer.weights_proj": (shape.index_heads, shape.hidden),
    }


def mlp_shapes(shape: Shape, dense: bool) -> dict[str, tuple[int, ...]]:
    h, e, i = shape.hidden, shape.experts, shape.expert_width
    if dense:
        w = shape.dense_width
        return {"mlp.gate_proj": (w, h), "mlp.up_proj": (w, h), "mlp.down_proj": (h, w)}
    return {
        "mlp.gate": (e, h),
        "mlp.experts.gate": (e, i, h),
        "mlp.experts.up": (e, i, h),
        "mlp.experts.down": (e, h, i),
        "mlp.shared_experts.gate_proj": (i, h),
        "mlp.shared_experts.up_proj": (i, h),
        "mlp.shared_experts.down_proj": (h, i),
    }


def weight_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Name to shape, the draft layer (index `shape.layers`) included."""
    h = shape.hidden
    out: dict[str, tuple[int, ...]] = {"embed_tokens": (shape.vocab, h), "norm": (h,), "lm_head": (shape.vocab, h)}
    for layer in range(shape.layers + 1):
        parts = attention_shapes(shape) | mlp_shapes(shape, shape.is_dense(layer))
        if shape.is_full(layer):
            parts |= indexer_shapes(shape)
        if layer == shape.layers:
            parts |= {"enorm": (h,), "hnorm": (h,), "eh_proj": (h, 2 * h), "shared_head.norm": (h,)}
        out |= {f"layers.{layer}.{name}": size for name, size in parts.items()}
    return out


def is_norm(name: str) -> bool:
    return name.endswith("norm")


def first_value(name: str, size: tuple[int, ...], shape: Shape, rng: torch.Generator) -> torch.Tensor:
    if is_norm(name):
        return torch.ones(size)
    if name.endswith(".bias"):
        return torch.zeros(size)
    x = torch.randn(size, generator=rng)
    if name == "embed_tokens":
        return x * 0.2
    if name == "lm_head":
        return x * 0.02
    std = 0.6 / math.sqrt(size[-1])
    if name.endswith(("o_proj", "down_proj", "experts.down")):
        std /= math.sqrt(2 * shape.layers)
    return x * std


def new_weights(shape: Shape, seed: int) -> Weights:
    rng = torch.Generator().manual_seed(seed)
    return {name: first_value(name, size, shape, rng) for name, size in weight_shapes(shape).items()}


def new_router_bias(shape: Shape) -> Weights:
    moe = [layer for layer in range(shape.layers + 1) if not shape.is_dense(layer)]
    return {f"layers.{layer}.mlp.gate.e_score_correction_bias": torch.zeros(shape.experts) for layer in moe}


def is_quantised(name: str) -> bool:
    """Whether the FP8 layout stores this tensor in e4m3 (section 6.2 of the specification)."""
    if name in ("embed_tokens", "lm_head") or is_norm(name) or name.endswith(".bias"):
        return False
    return not name.endswith(("mlp.gate", "weights_proj", "eh_proj"))


def fp8_scales(w: torch.Tensor) -> torch.Tensor:
    """max|W|/448 of each 128 x 128 block, [..., ceil(out/128), ceil(in/128)]; 1 for a block of zeros."""
    rows, cols = w.shape[-2:]
    padded = torch.nn.functional.pad(w.abs(), (0, -cols % 128, 0, -rows % 128))
    blocks = padded.unflatten(-1, (-1, 128)).unflatten(-3, (-1, 128))
    scales = blocks.amax(dim=(-1, -3)) / 448.0
    return torch.where(scales == 0, torch.ones_like(scales), scales)


def spread_scales(scales: torch.Tensor, rows: int, cols: int) -> torch.Tensor:
    wide = scales.repeat_interleave(128, dim=-2)[..., :rows, :]
    return wide.repeat_interleave(128, dim=-1)[..., :cols]


def fp8_encode(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(codes as float8_e4m3fn, scales F32). Division in float32, round to nearest even."""
    w = w.float()
    scales = fp8_scales(w)
    codes = w / spread_scales(scales, *w.shape[-2:])
    return codes.clamp(-448, 448).to(torch.float8_e4m3fn), scales


def fp8_decode(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return codes.float() * spread_scales(scales, *codes.shape[-2:])


def fp8_rounded(w: torch.Tensor) -> torch.Tensor:
    return fp8_decode(*fp8_encode(w))


def mxfp4_rounded(w: torch.Tensor) -> torch.Tensor:
    """What MXFP4 (groups of 32 along a row, scale 2^n by the `even` rule) makes of w."""
    groups = w.float().unflatten(-1, (-1, 32))
    top = groups.abs().amax(dim=-1, keepdim=True)
    bits = top.view(torch.int32) + 0x200000
    power = ((bits >> 23) - 127 - 2).clamp(-126, 127)
    scale = torch.exp2(power.float())
    v = groups / scale
    a = v.abs().clamp(max=6.0)
    step = torch.where(a < 2, 0.5, torch.where(a < 4, 1.0, 2.0))
    return (torch.sign(v) * torch.round(a / step) * step * scale).flatten(-2)


def straight_through(w: torch.Tensor, rounded: torch.Tensor) -> torch.Tensor:
    return w + (rounded - w).detach()


def compute_weights(weights: Weights, dtype: torch.dtype, quant: str = "none") -> Weights:
    """The weights that a forward pass uses: rounded as the shipped file rounds them, in `dtype`.

    `quant` is none, fp8, or mxfp4 (routed and shared experts in MXFP4, the rest in FP8).
    """
    out = {}
    for name, w in weights.items():
        if quant != "none" and is_quantised(name):
            four = quant == "mxfp4" and "experts" in name
            with torch.no_grad():
                rounded = mxfp4_rounded(w) if four else fp8_rounded(w)
            w = straight_through(w, rounded)
        wide = is_norm(name) or name.endswith((".bias", "mlp.gate", "weights_proj"))
        out[name] = w.to(torch.bfloat16).float() if wide and dtype != torch.float32 else w.to(dtype)
    return out
