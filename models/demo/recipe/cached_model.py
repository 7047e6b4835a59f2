"""The forward pass with a cache, in float32: for answers, for draft chains, for references.

A row is one token of one sequence at its position. Rows write their keys before anybody reads, and a query at
position p sees positions up to p, so the same function prefills, decodes and verifies.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from layers import (
    Tensor, dense_mlp, index_parts, index_scores, keys_values, moe_mlp, of_layer, queries, rms_norm, rope_table,
)
from settings import Shape
from training_model import draft_input
from weights import Weights

SCORES_AT_ONCE = 1 << 28


class Cache:
    """Keys, values and index keys of every layer, the draft layer last."""

    def __init__(self, shape: Shape, n: int, length: int, device: str) -> None:
        self.length = length
        layers = range(shape.layers + 1)
        self.k = [torch.zeros(n, length, shape.heads, shape.qk, device=device) for _ in layers]
        self.v = [torch.zeros(n, length, shape.heads, shape.v_dim, device=device) for _ in layers]
        self.index_k = [torch.zeros(n, length, shape.index_dim, device=device) if shape.is_full(i) else None for i in layers]


def causal(positions: Tensor, span: int) -> Tensor:
    return torch.arange(span, device=positions.device) <= positions[..., None]


def top_keys(scores: Tensor, seen: Tensor, topk: int, exact: bool) -> Tensor:
    """The chosen keys [b, q, span]; among equal scores the lowest position, if `exact`."""
    if scores.shape[-1] <= topk:
        return seen
    scores = scores.masked_fill(~seen, float("-inf"))
    if exact:
        order = torch.sort(scores, dim=-1, descending=True, stable=True).indices[..., :topk]
    else:
        order = torch.topk(scores, topk, dim=-1, sorted=False).indices
    return torch.zeros_like(seen).scatter_(-1, order, True) & seen


class CachedModel:
    def __init__(self, shape: Shape, weights: Weights, biases: Weights, sparse: bool = True, exact: bool = False) -> None:
        self.shape, self.weights, self.biases = shape, weights, biases
        self.sparse, self.exact = sparse, exact
        self.device = str(weights["embed_tokens"].device)
        self.layers = [of_layer(weights, i) for i in range(shape.layers + 1)]
        self.loads: dict[int, Tensor] = {}

    def new_cache(self, n: int, length: int) -> Cache:
        return Cache(self.shape, n, length, self.device)

    # One layer ---------------------------------------------------------------------------------------------

    def store(self, layer: int, cache: Cache, positions: Tensor, k: Tensor, v: Tensor) -> None:
        b = torch.arange(positions.shape[0], device=self.device)[:, None]
        cache.k[layer][b, positions] = k.unflatten(0, positions.shape)
        cache.v[layer][b, positions] = v.unflatten(0, positions.shape)

    def choose(self, layer: int, cache: Cache, positions: Tensor, h: Tensor, cq: Tensor, tables: tuple, span: int) -> Tensor:
        q, k, gates = index_parts(h, cq, *tables, self.layers[layer], self.shape)
        b = torch.arange(positions.shape[0], device=self.device)[:, None]
        cache.index_k[layer][b, positions] = k.unflatten(0, positions.shape)
        seen = causal(positions, span)
        if not self.sparse or span <= self.shape.index_topk:
            return seen
        scores = index_scores(q.unflatten(0, positions.shape), cache.index_k[layer][:, :span], gates.unflatten(0, positions.shape))
        return top_keys(scores, seen, self.shape.index_topk, self.exact)

    def attend(self, layer: int, cache: Cache, q: Tensor, keys: Tensor) -> Tensor:
        """q [b * n, heads, qk], keys [b, n, span] -> [b * n, heads * v_dim]"""
        b, n, span = keys.shape
        q = q.unflatten(0, (b, n)).transpose(1, 2)
        k, v = (t[layer][:, :span].transpose(1, 2) for t in (cache.k, cache.v))
        scores = (q @ k.mT) * self.shape.qk**-0.5
        p = scores.masked_fill_(~keys[:, None], float("-inf")).softmax(-1)
        return (p @ v).transpose(1, 2).flatten(2).flatten(0, 1)

    def finish(self, layer: int, x: Tensor, o: Tensor) -> Tensor:
        w = self.layers[layer]
        x = x + F.linear(o, w["self_attn.o_proj"])
        if self.shape.is_dense(layer):
            return dense_mlp(x, w, self.shape)
        x, load = moe_mlp(x, w, self.biases[f"layers.{layer}.mlp.gate.e_score_correction_bias"], self.shape)
        self.loads[layer] = self.loads.get(layer, 0) + load
        return x

    def layer(self, layer: int, x: Tensor, tables: tuple, cache: Cache, positions: Tensor, span: int, keys: Tensor | None) -> tuple[Tensor, Tensor]:
        w, shape = self.layers[layer], self.shape
        h = rms_norm(x, w["input_layernorm"], shape.eps, torch.float32)
        q, cq = queries(h, *tables, w, shape)
        self.store(layer, cache, positions, *keys_values(h, *tables, w, shape))
        if shape.is_full(layer):
            keys = self.choose(layer, cache, positions, h, cq, tables, span)
        return self.finish(layer, x, self.attend(layer, cache, q, keys)), keys

    # The target --------------------------------------------------------------------------------------------

    @torch.no_grad()
    def rows(self, tokens: Tensor, positions: Tensor, cache: Cache, hidden: list[Tensor] | None = None) -> Tensor:
        """The state after the final norm, [b, n, hidden]; `hidden` collects what enters each layer, then that state."""
        span = int(positions.max()) + 1
        tables = rope_table(self.shape, positions.flatten())
        x = F.embedding(tokens.flatten(), self.weights["embed_tokens"])
        keys = None
        for layer in range(self.shape.layers):
            if hidden is not None:
                hidden.append(x.unflatten(0, positions.shape))
            x, keys = self.layer(layer, x, tables, cache, positions, span, keys)
        y = rms_norm(x, self.weights["norm"], self.shape.eps, torch.float32).unflatten(0, positions.shape)
        if hidden is not None:
            hidden.append(y)
        return y

    def logits(self, y: Tensor) -> Tensor:
        return F.linear(y, self.weights["lm_head"])

    def prefill(self, tokens: Tensor, cache: Cache, hidden: list[list[Tensor]] | None = None) -> Tensor:
        """All rows of [b, n] from position 0, a block of positions at a time."""
        b, n = tokens.shape
        block = max(16, min(n, SCORES_AT_ONCE // (b * n * self.shape.heads)))
        out = []
        for at in range(0, n, block):
            positions = torch.arange(at, min(n, at + block), device=self.device).repeat(b, 1)
            collected: list[Tensor] | None = [] if hidden is not None else None
            out.append(self.rows(tokens[:, at : at + block], positions, cache, collected))
            if hidden is not None:
                hidden.append(collected)
        return torch.cat(out, dim=1)

    # The draft layer ---------------------------------------------------------------------------------------

    @torch.no_grad()
    def draft_first(self, following: Tensor, y: Tensor, positions: Tensor, cache: Cache) -> tuple[Tensor, Tensor, Tensor]:
        """Depth 1: row i has token i+1 and the target's state. Returns (u, state after the draft's norm, its keys)."""
        shape, layer = self.shape, self.shape.layers
        e = F.embedding(following.flatten(), self.weights["embed_tokens"]) * (positions.flatten() > 0)[:, None]
        u = draft_input(y.flatten(0, 1), e, self.layers[layer], shape)
        tables = rope_table(shape, positions.flatten())
        x, keys = self.layer(layer, u, tables, cache, positions, int(positions.max()) + 1, None)
        return u.unflatten(0, positions.shape), self.draft_norm(x, positions), keys

    @torch.no_grad()
    def draft_next(self, drafted: Tensor, y: Tensor, positions: Tensor, keys: Tensor, cache: Cache) -> Tensor:
        """A deeper step: the draft's own token and state, one position on; it sees exactly depth 1's keys."""
        shape, layer = self.shape, self.shape.layers
        w = self.layers[layer]
        u = draft_input(y.flatten(0, 1), F.embedding(drafted.flatten(), self.weights["embed_tokens"]), w, shape)
        h = rms_norm(u, w["input_layernorm"], shape.eps, torch.float32)
        q, _ = queries(h, *rope_table(shape, positions.flatten()), w, shape)
        return self.draft_norm(self.finish(layer, u, self.attend(layer, cache, q, keys)), positions)

    def draft_norm(self, x: Tensor, positions: Tensor) -> Tensor:
        return rms_norm(x, self.layers[self.shape.layers]["shared_head.norm"], self.shape.eps, torch.float32).unflatten(0, positions.shape)

    def draft_chains(self, tokens: Tensor, y: Tensor, cache: Cache, depths: int) -> Tensor:
        """From every row i (token i+1 known) a greedy chain: [b, n - 1, depths] guesses of tokens i+2, i+3, ...

        Deeper steps see depth 1's keys alone, so the chains of all rows run side by side.
        """
        b, n = tokens.shape
        block = max(16, min(n, SCORES_AT_ONCE // (b * n * self.shape.heads)))
        out = []
        for at in range(0, n - 1, block):
            to = min(n - 1, at + block)
            positions = torch.arange(at, to, device=self.device).repeat(b, 1)
            _, state, keys = self.draft_first(tokens[:, at + 1 : to + 1], y[:, at:to], positions, cache)
            guesses = [self.logits(state).argmax(-1)]
            for depth in range(1, depths):
                state = self.draft_next(guesses[-1], state, positions + depth, keys, cache)
                guesses.append(self.logits(state).argmax(-1))
            out.append(torch.stack(guesses, dim=-1))
        return torch.cat(out, dim=1)


@torch.no_grad()
def generate(model: CachedModel, prompts: list[list[int]], max_new: int, stops: set[int], batch: int = 128) -> list[list[int]]:
    """Greedy continuations, the stop token included, in the order of the prompts."""
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    out: list[list[int]] = [[] for _ in prompts]
    for at in range(0, len(order), batch):
        chosen = order[at : at + batch]
        for i, ids in zip(chosen, generate_batch(model, [prompts[i] for i in chosen], max_new, stops)):
            out[i] = ids
    return out


def generate_batch(model: CachedModel, prompts: list[list[int]], max_new: int, stops: set[int]) -> list[list[int]]:
    device, b = model.device, len(prompts)
    lengths = torch.tensor([len(p) for p in prompts], device=device)
    longest = int(lengths.max())
    tokens = torch.zeros(b, longest, dtype=torch.long, device=device)
    for i, p in enumerate(prompts):
        tokens[i, : len(p)] = torch.tensor(p, device=device)
    cache = model.new_cache(b, longest + max_new)
    y = model.prefill(tokens, cache)
    step = model.logits(y[torch.arange(b, device=device), lengths - 1]).argmax(-1)
    made = [step]
    stop_ids = torch.tensor(sorted(stops), device=device)
    done = torch.isin(step, stop_ids)
    for n in range(max_new - 1):
        if n % 8 == 0 and bool(done.all()):
            break
        y = model.rows(step[:, None], (lengths + n)[:, None], cache)
        step = model.logits(y[:, 0]).argmax(-1)
        made.append(step)
        done = done | torch.isin(step, stop_ids)
    return [cut_at_stop(ids, stops) for ids in torch.stack(made, dim=1).tolist()]


def cut_at_stop(ids: list[int], stops: set[int]) -> list[int]:
    for i, token in enumerate(ids):
        if token in stops:
            return ids[: i + 1]
    return ids


def accepted(chains: list[list[int]], tokens: list[int], first: int) -> tuple[int, int]:
    """(tokens gained, verifications) over the part of `tokens` from `first` on, as speculation would go.

    Row i drafts after token i+1 is known; tokens[first] is the first generated one.
    """
    gained = steps = 0
    i = first - 1
    while i + 1 < len(tokens) - 1:
        good = 0
        for depth, guess in enumerate(chains[i]):
            if i + 2 + depth >= len(tokens) or guess != tokens[i + 2 + depth]:
                break
            good += 1
        gained += good + 1
        steps += 1
        i += good + 1
    return gained, steps
