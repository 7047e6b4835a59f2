"""The forward pass of training: whole rows, no cache, losses of target, indexers and draft depths.

Attention is dense (causal) or sparse by a mask that the indexers choose, a band of queries at a time, so that no band
pays for keys after its last query. The indexers learn only from their own loss: the attention's distribution over
the keys, of all heads and of the layers that share the choice.
A few query rows of each sequence carry that loss, half of them rows of answers: an answer must reach a fact far
back, and among evenly drawn rows such a row is rare. Scores of all rows are needed for the choice alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from layers import (
    Tensor, dense_mlp, index_parts, index_scores, keys_values, moe_mlp, of_layer, queries, rms_norm, rope_table,
)
from settings import Shape
from weights import Weights

INDEX_STRIDE = 32
BAND = 1024
SEQUENCES_AT_ONCE = 16


@dataclass
class Batch:
    tokens: Tensor  # [rows, length] int64
    weight: Tensor  # [rows, length] float32: what the loss of predicting this token counts


@dataclass
class Losses:
    target: Tensor
    drafts: list[Tensor]
    index: Tensor
    loads: dict[int, Tensor]  # layer to tokens per expert


@dataclass
class Choice:
    """Which keys a group of layers sees, and what its indexer needs to learn."""

    bands: list[Tensor] | None  # one a band: [rows, 1, queries, keys up to the last of them], 0 or -inf; none when dense
    scores: Tensor | None  # [rows, sampled, length] with gradient
    owner: int
    targets: list[Tensor]


def attention_inputs(
    x: Tensor, cos: Tensor, sin: Tensor, w: Weights, shape: Shape
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    h = rms_norm(x, w["input_layernorm"], shape.eps, w["self_attn.q_a_proj"].dtype)
    q, cq = queries(h, cos, sin, w, shape)
    k, v = keys_values(h, cos, sin, w, shape)
    return h, cq, q, k, v


def query_inputs(x: Tensor, cos: Tensor, sin: Tensor, w: Weights, shape: Shape) -> Tensor:
    h = rms_norm(x, w["input_layernorm"], shape.eps, w["self_attn.q_a_proj"].dtype)
    return queries(h, cos, sin, w, shape)[0]


def attention_output(x: Tensor, o: Tensor, o_proj: Tensor) -> Tensor:
    return x + F.linear(o, o_proj).to(x.dtype)


# A compiled part is compiled again for each new set of names, so each gets the names it reads and no other.
def attention_part(w: Weights) -> Weights:
    return {n: t for n, t in w.items() if n == "input_layernorm" or (n.startswith("self_attn.") and "indexer" not in n)}


def index_part(w: Weights) -> Weights:
    return {n: t for n, t in w.items() if "indexer" in n}


def mlp_part(w: Weights) -> Weights:
    return {n: t for n, t in w.items() if n == "post_attention_layernorm" or n.startswith("mlp.")}


def draft_input(y: Tensor, e: Tensor, w: Weights, shape: Shape) -> Tensor:
    dtype = w["eh_proj"].dtype
    both = torch.cat((rms_norm(e, w["enorm"], shape.eps, dtype), rms_norm(y, w["hnorm"], shape.eps, dtype)), dim=-1)
    return F.linear(both, w["eh_proj"]).float()


def head_loss(y: Tensor, head: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    logits = F.linear(y, head).float()
    loss = F.cross_entropy(logits, target, reduction="none")
    return (loss * weight).sum() / weight.sum().clamp(min=1.0)


def masked_sum(dots: Tensor, gates: Tensor) -> Tensor:
    return (dots.float().relu() * gates[..., None]).sum(2)


def keep_top(scores: Tensor, topk: int, dtype: torch.dtype) -> Tensor:
    """0 for the top keys of each row, -inf elsewhere; scores [b, t, t]."""
    top = torch.topk(scores, min(topk, scores.shape[-1]), dim=-1, sorted=False).indices
    bias = torch.full(scores.shape, float("-inf"), dtype=dtype, device=scores.device)
    return bias.scatter_(-1, top, 0.0)


def at_rows(x: Tensor, picks: Tensor) -> Tensor:
    """x [b, t, ...] at picks [b, n] -> [b, n, ...]"""
    return x[torch.arange(len(x), device=x.device)[:, None], picks]


def looks(p: Tensor) -> Tensor:
    """What an indexer is to learn of p [b, heads, n, s]: half the heads' mean, half the most of any head."""
    most = p.amax(1)
    return 0.5 * p.mean(1) + 0.5 * most / most.sum(-1, keepdim=True)


class TrainingModel:
    """Holds the shape, the tables and the compiled parts; weights come with each call."""

    def __init__(self, shape: Shape, device: str, compiled: bool, band: int = BAND) -> None:
        self.shape = shape
        self.device = device
        self.band = band
        wrap = torch.compile(dynamic=False) if compiled else (lambda f: f)
        self.attention_inputs = wrap(attention_inputs)
        self.query_inputs = wrap(query_inputs)
        self.attention_output = wrap(attention_output)
        self.dense_mlp = wrap(dense_mlp)
        self.moe_mlp = wrap(moe_mlp)
        self.head_loss = wrap(head_loss)
        self.draft_input = wrap(draft_input)
        self.index_parts = wrap(index_parts)
        self.masked_sum = wrap(masked_sum)
        self.final_norm = wrap(rms_norm)

    # Attention ---------------------------------------------------------------------------------------------

    def attend(self, q: Tensor, k: Tensor, v: Tensor, rows: int, bands: list[Tensor] | None) -> Tensor:
        """q, k [n, heads, qk], v [n, heads, v_dim] -> [n, heads * v_dim]."""
        q, k, v = (t.unflatten(0, (rows, -1)).transpose(1, 2) for t in (q, k, v))
        if bands is None:
            pad = q.shape[-1] - v.shape[-1]
            o = F.scaled_dot_product_attention(q, k, F.pad(v, (0, pad)), is_causal=True)[..., : self.shape.v_dim]
        else:
            o = torch.cat([self.attend_band(q, k, v, bias) for bias in bands], dim=2)
        return o.transpose(1, 2).flatten(2).flatten(0, 1)

    @staticmethod
    def attend_band(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
        """The queries of one band, which end where its keys end."""
        n_queries, n_keys = bias.shape[-2:]
        q, k, v = q[:, :, n_keys - n_queries : n_keys], k[:, :, :n_keys], v[:, :, :n_keys]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)

    @torch.no_grad()
    def choose(self, q: Tensor, k: Tensor, gates: Tensor) -> list[Tensor]:
        """The masks of the top keys, band by band."""
        ends = range(self.band, q.shape[1] + self.band, self.band)
        return [self.choose_band(q[:, end - self.band : end], k[:, :end], gates[:, end - self.band : end]) for end in ends]

    def choose_band(self, q: Tensor, k: Tensor, gates: Tensor) -> Tensor:
        """The same for the last queries of [rows, keys], a few sequences at a time."""
        rows, n_queries, n_keys = q.shape[0], q.shape[1], k.shape[1]
        later = torch.ones(n_queries, n_keys, dtype=torch.bool, device=q.device).triu(n_keys - n_queries + 1)
        out = torch.empty(rows, 1, n_queries, n_keys, dtype=q.dtype, device=q.device)
        for i in range(0, rows, SEQUENCES_AT_ONCE):
            part = slice(i, i + SEQUENCES_AT_ONCE)
            dots = torch.einsum("bthd,bsd->bths", q[part], k[part])
            scores = self.masked_sum(dots, gates[part]).masked_fill_(later, float("-inf"))
            out[part, 0] = keep_top(scores, self.shape.index_topk, q.dtype).masked_fill_(later, float("-inf"))
        return out

    def sampled(self, weight: Tensor, seed: int) -> Tensor:
        """Rows that carry the index loss, [rows, n]: half predict a token of full weight, half are any."""
        rng = torch.Generator(device=weight.device).manual_seed(seed)
        half = max(1, weight.shape[1] // INDEX_STRIDE // 2)
        full = (shifted_weight(weight, 1) > 0.9).float()
        keys = torch.rand(2, *weight.shape, generator=rng, device=weight.device)
        keys[0] += full
        return keys.topk(half, dim=-1).indices.transpose(0, 1).flatten(1)

    def open_choice(
        self, layer: int, h: Tensor, cq: Tensor, tables: tuple[Tensor, Tensor], w: Weights, rows: int, sparse: bool,
        picks: Tensor | None,
    ) -> Choice:
        if not sparse and picks is None:
            return Choice(None, None, layer, [])
        q, k, gates = self.index_parts(h.detach(), cq.detach(), *tables, index_part(w), self.shape)
        q, k, gates = (t.unflatten(0, (rows, -1)) for t in (q, k, gates))
        bands = self.choose(q, k, gates) if sparse else None
        scores = None
        if picks is not None:
            scores = index_scores(at_rows(q, picks), k, at_rows(gates, picks))
        return Choice(bands, scores, layer, [])

    @torch.no_grad()
    def add_target(self, choice: Choice, q: Tensor, k: Tensor, rows: int, picks: Tensor | None) -> None:
        """Where this layer's heads look, dense, for the sampled rows."""
        if picks is None:
            return
        q, k = (t.unflatten(0, (rows, -1)) for t in (q, k))
        dots = torch.einsum("bthd,bshd->bhts", at_rows(q, picks), k).float() * self.shape.qk**-0.5
        later = torch.arange(k.shape[1], device=k.device) > picks[..., None]
        choice.targets.append(looks(dots.masked_fill_(later[:, None], float("-inf")).softmax(-1)))

    def index_loss(self, choice: Choice, picks: Tensor | None) -> Tensor:
        if picks is None or choice.scores is None:
            return torch.zeros((), device=self.device)
        p = torch.stack(choice.targets).mean(0)
        later = torch.arange(p.shape[-1], device=p.device) > picks[..., None]
        log_q = choice.scores.masked_fill(later, float("-inf")).log_softmax(-1)
        divergence = torch.where(p > 0, p * (p.clamp(min=1e-20).log() - log_q.masked_fill(later, 0.0)), 0.0)
        return divergence.sum(-1).mean()

    # Layers ------------------------------------------------------------------------------------------------

    def mlp(self, layer: int, x: Tensor, w: Weights, biases: Weights, loads: dict[int, Tensor]) -> Tensor:
        w = mlp_part(w)
        if self.shape.is_dense(layer):
            return self.dense_mlp(x, w, self.shape)
        x, load = self.moe_mlp(x, w, biases[f"layers.{layer}.mlp.gate.e_score_correction_bias"], self.shape)
        loads[layer] = loads.get(layer, 0) + load
        return x

    def forward(
        self, weights: Weights, biases: Weights, batch: Batch, sparse: bool, mtp_depths: int, index_seed: int | None
    ) -> Losses:
        shape, (rows, length) = self.shape, batch.tokens.shape
        picks = None if index_seed is None else self.sampled(batch.weight, index_seed)
        positions = torch.arange(length, device=self.device).repeat(rows)
        tables = rope_table(shape, positions)
        flat = batch.tokens.flatten()
        x = F.embedding(flat, weights["embed_tokens"]).float()
        loads: dict[int, Tensor] = {}
        index = torch.zeros((), device=self.device)
        choice = None
        for layer in range(shape.layers):
            w = of_layer(weights, layer)
            h, cq, q, k, v = self.attention_inputs(x, *tables, attention_part(w), shape)
            if shape.is_full(layer):
                if choice is not None:
                    index = index + self.index_loss(choice, picks)
                choice = self.open_choice(layer, h, cq, tables, w, rows, sparse, picks)
            self.add_target(choice, q, k, rows, picks)
            x = self.attention_output(x, self.attend(q, k, v, rows, choice.bands), w["self_attn.o_proj"])
            x = self.mlp(layer, x, w, biases, loads)
        index = index + self.index_loss(choice, picks)
        head = weights["lm_head"]
        y = self.final_norm(x, weights["norm"], shape.eps, head.dtype)
        target, weight = shifted(batch.tokens, 1).flatten(), shifted_weight(batch.weight, 1).flatten()
        loss = self.head_loss(y, head, target, weight)
        drafts, draft_index = self.drafts(weights, biases, batch, y, positions, sparse, mtp_depths, picks, loads)
        return Losses(loss, drafts, index + draft_index, loads)

    def drafts(
        self, weights: Weights, biases: Weights, batch: Batch, y: Tensor, positions: Tensor, sparse: bool, depths: int,
        picks: Tensor | None, loads: dict[int, Tensor],
    ) -> tuple[list[Tensor], Tensor]:
        """Losses of the draft layer at depths 1..; all depths use depth 1's keys and its choice of keys."""
        shape, rows, layer = self.shape, batch.tokens.shape[0], self.shape.layers
        w = of_layer(weights, layer)
        losses: list[Tensor] = []
        for depth in range(1, depths + 1):
            e = F.embedding(shifted(batch.tokens, depth).flatten(), weights["embed_tokens"]).float()
            if depth == 1:
                e = e * (positions > 0)[:, None]
            u = self.draft_input(y, e, {n: w[n] for n in ("enorm", "hnorm", "eh_proj")}, shape)
            tables = rope_table(shape, positions + (depth - 1))
            if depth == 1:
                h, cq, q, k, v = self.attention_inputs(u, *tables, attention_part(w), shape)
                choice = self.open_choice(layer, h, cq, tables, w, rows, sparse, picks)
            else:
                q = self.query_inputs(u, *tables, attention_part(w), shape)
            self.add_target(choice, q, k, rows, picks)
            u = self.attention_output(u, self.attend(q, k, v, rows, choice.bands), w["self_attn.o_proj"])
            u = self.mlp(layer, u, w, biases, loads)
            y = self.final_norm(u, w["shared_head.norm"], shape.eps, weights["lm_head"].dtype)
            target = shifted(batch.tokens, depth + 1).flatten()
            weight = shifted_weight(batch.weight, depth + 1).flatten()
            losses.append(self.head_loss(y, weights["lm_head"], target, weight))
        zero = torch.zeros((), device=self.device)
        return losses, self.index_loss(choice, picks) if depths else zero


def shifted(tokens: Tensor, by: int) -> Tensor:
    return tokens.roll(-by, dims=1)


def shifted_weight(weight: Tensor, by: int) -> Tensor:
    out = weight.roll(-by, dims=1)
    out[:, -by:] = 0.0
    return out
