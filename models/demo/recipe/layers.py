"""The parts of a GLM-MoE-DSA layer, each a plain function of its inputs and weights.

Rows are flat: n rows are batch x length, so that a compiled part serves every row length. Letters:
h after input_layernorm, cq the normalised query latent, c the normalised KV latent. Both the training pass
(`training_model.py`) and the cached pass (`cached_model.py`) are made of these.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from settings import Shape
from weights import Weights

Tensor = torch.Tensor


def rms_norm(x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
    x = x.float()
    n = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return (n.to(dtype).float() * weight.float()).to(dtype)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    x = x.float()
    centred = x - x.mean(-1, keepdim=True)
    n = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    return n * weight.float() + bias.float()


def rope_table(shape: Shape, positions: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin [n, rope/2], angles in float64."""
    j = torch.arange(shape.rope // 2, dtype=torch.float64, device=positions.device)
    omega = (shape.rope_theta ** (-2 * j / shape.rope)).float().double()
    angle = positions.double()[:, None] * omega
    return angle.cos().float(), angle.sin().float()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Interleaved pairs (x[2j], x[2j+1]); x [n, heads, rope], cos and sin [n, rope/2]."""
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2).to(x.dtype)


def queries(h: Tensor, cos: Tensor, sin: Tensor, w: Weights, shape: Shape) -> tuple[Tensor, Tensor]:
    """(q [n, heads, qk], cq [n, q_rank])."""
    cq = rms_norm(F.linear(h, w["self_attn.q_a_proj"]), w["self_attn.q_a_layernorm"], shape.latent_eps, h.dtype)
    q = F.linear(cq, w["self_attn.q_b_proj"]).unflatten(-1, (shape.heads, shape.qk))
    q_nope, q_pe = q.split((shape.nope, shape.rope), dim=-1)
    return torch.cat((q_nope, rotate(q_pe, cos, sin)), dim=-1), cq


def keys_values(h: Tensor, cos: Tensor, sin: Tensor, w: Weights, shape: Shape) -> tuple[Tensor, Tensor]:
    """The expanded form: k [n, heads, qk], v [n, heads, v_dim]."""
    a = F.linear(h, w["self_attn.kv_a_proj_with_mqa"])
    c, k_pe = a.split((shape.kv_rank, shape.rope), dim=-1)
    c = rms_norm(c, w["self_attn.kv_a_layernorm"], shape.latent_eps, h.dtype)
    k_pe = rotate(k_pe[:, None], cos, sin).expand(-1, shape.heads, -1)
    kv = F.linear(c, w["self_attn.kv_b_proj"]).unflatten(-1, (shape.heads, shape.nope + shape.v_dim))
    k_nope, v = kv.split((shape.nope, shape.v_dim), dim=-1)
    return torch.cat((k_nope, k_pe), dim=-1), v


def index_parts(
    h: Tensor, cq: Tensor, cos: Tensor, sin: Tensor, w: Weights, shape: Shape
) -> tuple[Tensor, Tensor, Tensor]:
    """(queries [n, index_heads, d], keys [n, d], gates [n, index_heads] float32); rope dims come first."""
    q = F.linear(cq, w["self_attn.indexer.wq_b"]).unflatten(-1, (shape.index_heads, shape.index_dim))
    k = F.linear(h, w["self_attn.indexer.wk"])
    k = layer_norm(k, w["self_attn.indexer.k_norm"], w["self_attn.indexer.k_norm.bias"], shape.k_norm_eps).to(h.dtype)
    q = torch.cat((rotate(q[..., : shape.rope], cos, sin), q[..., shape.rope :]), dim=-1)
    k = torch.cat((rotate(k[:, None, : shape.rope], cos, sin)[:, 0], k[:, shape.rope :]), dim=-1)
    scale = (shape.index_heads * shape.index_dim) ** -0.5
    gates = F.linear(h.float(), w["self_attn.indexer.weights_proj"].float()) * scale
    return q, k, gates


def index_scores(q: Tensor, k: Tensor, gates: Tensor) -> Tensor:
    """I(t, s), float32, not yet causal: q [b, t, heads, d], k [b, s, d], gates [b, t, heads]."""
    dots = torch.einsum("bthd,bsd->bths", q, k)
    return (dots.float().relu() * gates[..., None]).sum(2)


def swiglu(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def route(x: Tensor, gate: Tensor, bias: Tensor, shape: Shape) -> Tensor:
    """Routing weights [n, experts], zero for the experts not chosen. The bias chooses only."""
    score = torch.sigmoid(F.linear(x.float(), gate.float()))
    chosen = torch.topk(score + bias, shape.experts_per_token, dim=-1).indices
    mask = torch.zeros_like(score).scatter(-1, chosen, 1.0)
    kept = score * mask
    return shape.routed_scale * kept / (kept.sum(-1, keepdim=True) + 1e-20)


def experts(x: Tensor, routing: Tensor, w: Weights) -> Tensor:
    """All experts on all rows, the unchosen weighted with zero: at these widths cheaper than sorting rows."""
    gate, up, down = (w[f"mlp.experts.{part}"] for part in ("gate", "up", "down"))
    act = F.silu(F.linear(x, gate.flatten(0, 1))) * F.linear(x, up.flatten(0, 1))
    act = (act.unflatten(-1, (gate.shape[0], -1)) * routing[..., None].to(x.dtype)).flatten(-2)
    return F.linear(act, down.transpose(0, 1).flatten(1))


def dense_mlp(x: Tensor, w: Weights, shape: Shape) -> Tensor:
    h = rms_norm(x, w["post_attention_layernorm"], shape.eps, w["mlp.gate_proj"].dtype)
    return x + swiglu(h, w["mlp.gate_proj"], w["mlp.up_proj"], w["mlp.down_proj"]).to(x.dtype)


def moe_mlp(x: Tensor, w: Weights, bias: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """(x + routed + shared, tokens per expert)."""
    h = rms_norm(x, w["post_attention_layernorm"], shape.eps, w["mlp.experts.up"].dtype)
    routing = route(h, w["mlp.gate"], bias, shape)
    shared = swiglu(h, *(w[f"mlp.shared_experts.{part}_proj"] for part in ("gate", "up", "down")))
    out = x + (experts(h, routing, w) + shared).to(x.dtype)
    return out, (routing.detach() > 0).sum(0)


def of_layer(weights: Weights, layer: int) -> Weights:
    prefix = f"layers.{layer}."
    return {name[len(prefix) :]: w for name, w in weights.items() if name.startswith(prefix)}
