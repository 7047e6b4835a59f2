"""The reference fixture: what the shipped FP8 weights, dequantised, give in float32.

    python reference.py --out DIR

A prompt past index_topk; logits and hidden states of every 32nd row, the argmax of all rows, and the draft layer at
depths 1 to 3: side by side from every row with true tokens, and as greedy chains from a few contexts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

import mix_families
from cached_model import CachedModel
from chat import render
from export import read_shape, read_shipped
from samples import trained
from settings import MODEL_FOLDER
from words import Draw

LENGTH, STRIDE = 704, 32
CONTEXTS = (100, 400, 640)
DEPTHS = 3


def prompt(tokenizer: Tokenizer) -> list[int]:
    """Conversations of all kinds, one after the other."""
    d, ids = Draw("reference", held_out=True), []
    while len(ids) < LENGTH:
        family = d.one(trained(d.one(list(mix_families.BY_KIND.values()))))
        ids += tokenizer.encode("".join(p.text for p in render(family.make(d).chat)), add_special_tokens=False).ids
    return ids[:LENGTH]


def target_part(model: CachedModel, tokens: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    hidden: list[torch.Tensor] = []
    positions = torch.arange(LENGTH)[None]
    y = model.rows(tokens, positions, model.new_cache(1, LENGTH), hidden)
    logits = model.logits(y)[0]
    rows = torch.arange(LENGTH - 1, -1, -STRIDE).flip(0)
    out = {"rows": rows.int(), "logits": logits[rows], "argmax": logits.argmax(-1).int()}
    top = logits.topk(2, dim=-1).values
    out["margin"] = top[:, 0] - top[:, 1]
    out |= {f"hidden.{i}": h[0, rows] for i, h in enumerate(hidden)}
    return out, y


def draft_part(model: CachedModel, tokens: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """Row i has the true token i+1; deeper steps take the tokens drafted before."""
    cache, n = model.new_cache(1, LENGTH), LENGTH - 1
    positions = torch.arange(n)[None]
    rows = torch.arange(n - 1, -1, -STRIDE).flip(0)
    u, state, keys = model.draft_first(tokens[:, 1:], y[:, :n], positions, cache)
    out = {"draft.rows": rows.int(), "draft1.u": u[0, rows]}
    for depth in range(1, DEPTHS + 1):
        logits = model.logits(state)[0]
        guess = logits.argmax(-1)
        out |= {f"draft{depth}.y": state[0, rows], f"draft{depth}.argmax": guess.int()}
        if depth == 1:
            out["draft1.logits"] = logits[rows]
        state = model.draft_next(guess[None], state, positions + depth, keys, cache)
    return out


def chain(model: CachedModel, tokens: torch.Tensor, p: int) -> dict[str, torch.Tensor]:
    """A greedy continuation of the target, and the drafts from row p - 1 that guess it; keys shared from step 0."""
    cache = model.new_cache(1, p + DEPTHS + 2)
    y = model.rows(tokens[:, :p], torch.arange(p)[None], cache)
    target, state = [model.logits(y[:, -1]).argmax(-1)], y[:, -1:]
    for step in range(DEPTHS + 1):
        state = model.rows(target[-1][None], torch.tensor([[p + step]]), cache)
        target.append(model.logits(state[:, -1]).argmax(-1))
    draft_cache = model.new_cache(1, p + DEPTHS)
    following = torch.cat((tokens[:, 1:p], target[0][None]), dim=1)
    _, states, keys = model.draft_first(following, y, torch.arange(p)[None], draft_cache)
    state, keys = states[:, -1:], keys[:, -1:]
    guesses, logits = [], []
    for depth in range(1, DEPTHS + 1):
        logits.append(model.logits(state)[0, 0])
        guesses.append(logits[-1].argmax())
        state = model.draft_next(guesses[-1][None, None], state, torch.tensor([[p - 1 + depth]]), keys, draft_cache)
    return {
        f"chain.{p}.target": torch.cat(target).int(), f"chain.{p}.topk": keys[0, 0].nonzero()[:, 0].int(),
        f"chain.{p}.share.tokens": torch.stack(guesses).int(), f"chain.{p}.share.logits": torch.stack(logits),
    }


def references(folder: Path) -> dict[str, torch.Tensor]:
    shape = read_shape(folder)
    weights, biases = read_shipped(folder / "model.safetensors", shape)
    model = CachedModel(shape, weights, biases, exact=True)
    tokens = torch.tensor([prompt(Tokenizer.from_file(str(folder / "tokenizer.json")))])
    out, y = target_part(model, tokens)
    out |= {"input_ids": tokens[0].int()} | draft_part(model, tokens, y)
    for p in CONTEXTS:
        out |= chain(model, tokens, p)
    return {name: t.contiguous() for name, t in out.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=MODEL_FOLDER)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    save_file(references(args.model), str(args.out / "reference.safetensors"))


if __name__ == "__main__":
    main()
