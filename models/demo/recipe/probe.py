"""Why needles are found or not: with dense attention, with sparse, and whether the indexers chose what is copied.

The true answer is given token by token, so a probe costs one pass a prompt and can run in the middle of training.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

import reading
from cached_model import Cache, CachedModel
from chat import prompt_text, render
from layers import Tensor
from samples import Sample
from settings import Shape
from weights import Weights
from words import Draw

PROBE_SEED = "probe/1"
NEEDLES, BOOK_WINDOWS = 4, 12


@dataclass
class Hidden:
    """A prompt with its answer. Row `rows[i]` predicts a token of the needle that stands at `keys[i]` in the text."""

    tokens: list[int]
    answer_at: int
    rows: list[int]
    keys: list[int]


def find(part: list[int], whole: list[int], first: int) -> int:
    return next(i for i in range(first, len(whole)) if whole[i : i + len(part)] == part)


def hidden(sample: Sample, tokenizer: Tokenizer) -> Hidden:
    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    tokens = encode("".join(p.text for p in render(sample.chat)))
    answer_at = len(encode(prompt_text(sample.asked())))
    quoted = encode(" " + sample.chat.messages[-1].reasoning.removeprefix("The text says: "))
    there, here = find(quoted, tokens, 0), find(quoted, tokens, answer_at)
    # The first token follows from nothing said so far: the others continue what was copied.
    return Hidden(tokens, answer_at, [here + i - 1 for i in range(1, len(quoted))], [there + i for i in range(1, len(quoted))])


def fitting(i: int, n: int, tokens: int, tokenizer: Tokenizer, filler: reading.Filler, kinds: dict, seed: str) -> Sample:
    """A question whose prompt is just under `tokens` tokens, its needle at depth (i + 0.5)/n."""
    characters = int(tokens * 4.2)
    while True:
        sample = reading.needle_sample(Draw(f"{seed}/{i}", held_out=True), characters, filler, kinds, depth=(i + 0.5) / n, n_needles=NEEDLES)
        length = len(tokenizer.encode(prompt_text(sample.asked()), add_special_tokens=False).ids)
        if length <= tokens - 48:
            return sample
        characters = int(characters * min(0.99, (tokens - 60) / length))


def probes(n: int, tokens: int, tokenizer: Tokenizer, filler: reading.Filler | None) -> list[Hidden]:
    fillers = (reading.story_filler, filler or reading.story_filler)
    return [hidden(fitting(i, n, tokens, tokenizer, fillers[i % 2], reading.NEEDLES, PROBE_SEED), tokenizer) for i in range(n)]


class WatchedModel(CachedModel):
    """Keeps, of each indexer, which keys the last rows chose."""

    def __init__(self, shape: Shape, weights: Weights, biases: Weights, sparse: bool) -> None:
        super().__init__(shape, weights, biases, sparse)
        self.chosen: dict[int, Tensor] = {}

    def choose(self, layer: int, cache: Cache, positions: Tensor, h: Tensor, cq: Tensor, tables: tuple, span: int) -> Tensor:
        self.chosen[layer] = super().choose(layer, cache, positions, h, cq, tables, span)
        return self.chosen[layer]


def right(model: WatchedModel, p: Hidden) -> bool:
    """Whether each token of the answer, up to the end of the quoted needle, is the likeliest after the true ones before."""
    tokens = torch.tensor([p.tokens], device=model.device)
    cache = model.new_cache(1, tokens.shape[1])
    first = p.answer_at - 1
    model.prefill(tokens[:, :first], cache)
    positions = torch.arange(first, tokens.shape[1], device=model.device)[None]
    guesses = model.logits(model.rows(tokens[:, first:], positions, cache)).argmax(-1)[0].tolist()
    return all(guesses[row - first] == p.tokens[row + 1] for row in p.rows)


@torch.no_grad()
def text_loss(model: CachedModel, stream: np.ndarray, length: int, n: int) -> float:
    """The mean loss over n windows that lie evenly over the stream."""
    total = 0.0
    for i in range(n):
        at = i * (len(stream) - length - 1) // max(1, n - 1)
        tokens = torch.tensor(stream[at : at + length].astype(np.int64), device=model.device)[None]
        logits = model.logits(model.prefill(tokens, model.new_cache(1, length)))
        total += float(F.cross_entropy(logits[0, :-1], tokens[0, 1:]))
    return total / n


@torch.no_grad()
def probe(shape: Shape, weights: Weights, biases: Weights, prompts: list[Hidden], books: np.ndarray | None) -> dict:
    """Shares of 1: needles found dense and sparse; keys to copy that each indexer chose. And the loss on books both ways."""
    dense, sparse = (WatchedModel(shape, weights, biases, s) for s in (False, True))
    out: dict = {"dense": 0.0, "sparse": 0.0, "recall": {}}
    for p in prompts:
        out["dense"] += right(dense, p) / len(prompts)
        out["sparse"] += right(sparse, p) / len(prompts)
        rows = [row - p.answer_at + 1 for row in p.rows]
        for layer, keys in sparse.chosen.items():
            out["recall"][str(layer)] = out["recall"].get(str(layer), 0.0) + float(keys[0, rows, p.keys].float().mean()) / len(prompts)
    if books is not None:
        out["books"] = [text_loss(m, books, len(prompts[0].tokens), BOOK_WINDOWS) for m in (dense, sparse)]
    return rounded(out)


def rounded(value):
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else round(value, 4)
