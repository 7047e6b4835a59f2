"""From generators to batches: the shares of each kind, the packing of rows, the shards on disk.

A row holds whole conversations, so that none loses its beginning; what is left is filled with book text. A token
is 14 bits; the upper two say what learning to predict it counts (see LEVELS).
"""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Callable, Iterator

import numpy as np
from tokenizers import Tokenizer

import arithmetic
import corpus
import json_tasks
import problems
import reading
import stories
import talk
import tasks
import tools
from chat import Piece, render
from samples import Family, Sample, trained
from settings import SEED, Paths, Phase, Schedule
from tokenizer import load_tokenizer
from words import Draw

LEVELS = (0.0, 0.1, 0.5, 1.0)
PAD, PROMPT, TEXT, ANSWER = 0, 1, 2, 3
TOKEN_BITS = 14
SHORT_BOOKS, LONG_BOOKS = 14, 40
# Books beside conversations in the short mix, needles left aside.
BOOK_SHARE = SHORT_BOOKS / 91

Maker = Callable[[Draw], list[Piece]]


def from_families(families: list[Family]) -> Maker:
    known = trained(families)

    def make(d: Draw) -> list[Piece]:
        return render(d.one(known).make(d).chat)

    return make


def stepwise_problems(d: Draw) -> list[Piece]:
    """Word problems; longer ones are harder and come as often as the short."""
    group = [p for p, held in problems.STEPS[d.one((1, 1, 2, 2, 3))] if not held]
    return render(problems.sample_of(d.one(group), d).chat)


# Measured with the shipped tokenizer; stories vary by 2 %, books by 10 %.
CHARACTERS_PER_TOKEN = {"story": 4.19, "book": 3.42}


def long_needle(length: int, filler: reading.Filler | None) -> Maker:
    """Many facts and many questions in a text that fills a row up to its end: no distance may stay unpractised."""

    def make(d: Draw) -> list[Piece]:
        kind = "book" if filler is not None and d.chance(0.5) else "story"
        asked = d.num(4, 10)
        tokens = max(50, length * d.num(55, 98) // 100 - 25 * asked)
        fill = filler if kind == "book" else reading.story_filler
        return render(reading.needle_sample(d, int(tokens * CHARACTERS_PER_TOKEN[kind]), fill, n_asked=asked).chat)

    return make


def book_filler(stream: np.ndarray, tokenizer: Tokenizer) -> reading.Filler:
    """Sentences of a book, cut at full stops."""

    def make(d: Draw, characters: int) -> list[str]:
        at = d.num(0, len(stream) - 3000)
        text = tokenizer.decode(stream[at : at + characters // 2 + 64].tolist(), skip_special_tokens=True).replace("\n", " ")
        sentences, total = [], 0
        for part in text.split(". "):
            sentences.append(part.strip() + ".")
            total += len(part) + 2
            if total >= characters:
                break
        return sentences[1:] or sentences

    return make


class Mixer:
    """Draws conversations so that each kind gets its share of the tokens, and packs them."""

    def __init__(self, tokenizer: Tokenizer, stream: np.ndarray | None, worked: list, mix: str, length: int) -> None:
        self.tokenizer, self.stream, self.length = tokenizer, stream, length
        self.end = tokenizer.token_to_id("<|endoftext|>")
        filler = book_filler(stream, tokenizer) if stream is not None else None
        self.makers: dict[str, Maker] = {
            "problems": stepwise_problems, "arithmetic": from_families(arithmetic.FAMILIES), "tools": from_families(tools.FAMILIES),
            "json": from_families(json_tasks.FAMILIES), "reading": from_families(reading.FAMILIES), "stories": from_families(stories.FAMILIES),
            "tasks": from_families(tasks.FAMILIES), "talk": from_families(talk.FAMILIES),
        }
        self.shares = {"problems": 24, "arithmetic": 8, "tools": 16, "json": 9, "reading": 14, "stories": 7, "tasks": 8, "talk": 3}
        if mix == "long":
            self.makers["needle"] = long_needle(length, filler)
            self.shares["needle"] = 55
        elif filler is not None:
            self.makers["needle"] = lambda d: render(reading.needle_sample(d, d.num(300, 2400), filler).chat)
            self.shares["needle"] = 4
        if stream is not None:
            self.shares["books"] = SHORT_BOOKS if mix == "short" else LONG_BOOKS
        if worked:
            self.makers["gsm8k"] = lambda d: render(corpus.gsm8k_chat(d.one(worked)))
            self.shares["gsm8k"] = 2

    def draw_batch(self, d: Draw, used: dict[str, int], n: int) -> list[tuple[str, np.ndarray]]:
        """n conversations of the kinds that are furthest behind their share."""
        kinds, made = [], []
        mean = {k: 150 for k in self.shares} | {"tools": 420, "needle": self.length * 0.6, "books": 600}
        guess = dict(used)
        for _ in range(n):
            kind = min(self.shares, key=lambda k: (guess[k] + mean[k] * d.rng.random()) / self.shares[k])
            guess[kind] += mean[kind]
            kinds.append(kind)
            made.append([] if kind == "books" else self.makers[kind](d))
        rows = iter(self.encode([m for m in made if m]))
        return [(k, self.book(d, d.num(128, self.length)) if not m else next(rows)) for k, m in zip(kinds, made)]

    def encode(self, conversations: list[list[Piece]]) -> list[np.ndarray]:
        flat = [p for pieces in conversations for p in pieces]
        ids = iter(self.tokenizer.encode_batch([p.text for p in flat], add_special_tokens=False))
        out = []
        for pieces in conversations:
            parts = [np.array(next(ids).ids, dtype=np.uint16) | np.uint16((ANSWER if p.learn else PROMPT) << TOKEN_BITS) for p in pieces]
            out.append(np.concatenate(parts))
        return out

    def book(self, d: Draw, n: int) -> np.ndarray:
        if self.stream is None:
            return np.full(n, self.end | PAD << TOKEN_BITS, dtype=np.uint16)
        at = d.num(0, len(self.stream) - n)
        out = self.stream[at : at + n] | np.uint16(TEXT << TOKEN_BITS)
        out[0] = self.end | PAD << TOKEN_BITS
        return out

    def rows(self, d: Draw, n_rows: int) -> np.ndarray:
        """[n_rows, length], packed."""
        out = np.empty((n_rows, self.length), dtype=np.uint16)
        used = dict.fromkeys(self.shares, 0)
        waiting: list[np.ndarray] = []
        for row in range(n_rows):
            at = 0
            while at < self.length:
                if len(waiting) < 48:
                    for kind, ids in self.draw_batch(d, used, 96):
                        used[kind] += min(len(ids), self.length)
                        if kind != "needle" or len(ids) <= self.length:  # a longer one would lose its questions
                            waiting.append(ids[: self.length])
                    d.rng.shuffle(waiting)
                left = self.length - at
                fit = next((i for i, ids in enumerate(waiting) if len(ids) <= left), None)
                ids = waiting.pop(fit) if fit is not None else self.book(d, left)
                out[row, at : at + len(ids)] = ids
                at += len(ids)
        return out


def unpack(shard: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(tokens int64, weights float32)"""
    mask = (1 << TOKEN_BITS) - 1
    return (shard & mask).astype(np.int64), np.array(LEVELS, dtype=np.float32)[shard >> TOKEN_BITS]


# Shards ---------------------------------------------------------------------------------------------------------


def shard_path(paths: Paths, step: int) -> Path:
    return paths.shards / f"{step:06d}.npy"


def stream_path(paths: Paths) -> Path:
    return paths.work / "books.npy"


def make_mixers(paths: Paths, schedule: Schedule) -> dict[str, Mixer]:
    tokenizer = load_tokenizer(paths.tokenizer)
    stream = np.load(stream_path(paths), mmap_mode="r") if stream_path(paths).exists() else None
    train_file = paths.corpus / "gsm8k-train.jsonl" if paths.corpus else None
    worked = corpus.gsm8k(train_file) if train_file and train_file.exists() else []
    return {p.name: Mixer(tokenizer, stream, worked, p.mix, p.length) for p in schedule.phases}


_MIXERS: dict[str, Mixer] = {}


def _start_worker(paths: Paths, schedule: Schedule) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _MIXERS.update(make_mixers(paths, schedule))


def _make_shard(job: tuple[Paths, Phase, int]) -> None:
    paths, phase, step = job
    target = shard_path(paths, step)
    if target.exists():
        return
    rows = _MIXERS[phase.name].rows(Draw(f"{SEED}/{phase.name}/{step}"), phase.rows)
    part = target.with_suffix(".part.npy")
    np.save(part, rows)
    part.rename(target)


def steps_of(schedule: Schedule, first: int) -> Iterator[tuple[Phase, int]]:
    step = 0
    for phase in schedule.phases:
        for _ in range(phase.steps):
            if step >= first:
                yield phase, step
            step += 1


def produce(paths: Paths, schedule: Schedule, first: int, workers: int) -> None:
    """Writes all shards from step `first` on; runs beside training."""
    paths.shards.mkdir(parents=True, exist_ok=True)
    jobs = ((paths, phase, step) for phase, step in steps_of(schedule, first))
    with multiprocessing.Pool(workers, _start_worker, (paths, schedule)) as pool:
        for _ in pool.imap(_make_shard, jobs, chunksize=2):
            pass


def wait_for(path: Path, patience_s: float = 120.0) -> np.ndarray:
    start = time.monotonic()
    while not path.exists():
        if time.monotonic() - start > patience_s:
            raise TimeoutError(f"no shard {path} after {patience_s} s: did the producers stop?")
        time.sleep(0.02)
    return np.load(path)


# What evaluation draws ------------------------------------------------------------------------------------------


def held_out_mix(n: int, seed: str) -> list[Sample]:
    """Conversations of all kinds with other seeds, names and numbers; trained families."""
    pools = [problems.FAMILIES, arithmetic.FAMILIES, tools.FAMILIES, json_tasks.FAMILIES, reading.FAMILIES, stories.FAMILIES,
             tasks.FAMILIES, talk.FAMILIES]
    out = []
    for i in range(n):
        d = Draw(f"{seed}/{i}", held_out=True)
        out.append(d.one(trained(pools[i % len(pools)])).make(d))
    return out
