"""The one command: builds the demo model from nothing, in pieces that resume.

    python make.py --work DIR [--corpus DIR] [--piece-seconds 540] [--toy]

Each call does what is still to do and stops after one piece of training; call it again until it says that it is
done (`--all` does so by itself). The pieces: tokenizer and books, training, evaluation, export, references.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import time
from pathlib import Path

import numpy as np

import corpus
import mix
from settings import FULL, MODEL_FOLDER, SEED, TINY, TOY, Paths, Schedule, Shape
from tokenizer import load_tokenizer, train_tokenizer
from words import Draw

TOKENIZER_BOOK_CHARACTERS = 12_000_000
TOKENIZER_CONVERSATIONS = 30_000
PROBE_PROMPTS = 24


def tokenizer_texts(paths: Paths) -> list[str]:
    """What the tokenizer learns from: a third of it books where there are any."""
    import arithmetic, json_tasks, problems, reading, stories, talk, tasks, tools
    from chat import render
    from samples import trained

    pools = [m.FAMILIES for m in (arithmetic, json_tasks, problems, reading, stories, talk, tasks, tools)]
    d = Draw(f"{SEED}/tokenizer")
    out = ["\n".join(p.text for p in render(d.one(trained(d.one(pools))).make(d).chat)) for _ in range(TOKENIZER_CONVERSATIONS)]
    for special in ("[gMASK]<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
                    "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<tool_response>", "</tool_response>"):
        out = [t.replace(special, "\n") for t in out]
    if paths.corpus:
        train, _ = corpus.split_books(corpus.books(paths.corpus))
        share = TOKENIZER_BOOK_CHARACTERS // len(train)
        out += [b[len(b) // 3 : len(b) // 3 + share] for b in train]
    return out


def build_tokenizer(paths: Paths, vocab: int = Shape().vocab) -> None:
    """The shipped tokenizer where there is one, so that a new run can read older weights; else a new one."""
    shipped = MODEL_FOLDER / "tokenizer.json"
    if not paths.tokenizer.exists() and shipped.exists():
        shutil.copy(shipped, paths.tokenizer)
    if not paths.tokenizer.exists():
        train_tokenizer(tokenizer_texts(paths), vocab).save(str(paths.tokenizer))


def build_books(paths: Paths) -> None:
    """The books as tokens, once: for training, and held out."""
    if paths.corpus is None:
        print(f"no --corpus: training on made-up text alone; a corpus folder would hold {corpus.WANTED}")
        return
    if mix.stream_path(paths).exists():
        return
    tokenizer = load_tokenizer(paths.tokenizer)
    train, held = corpus.split_books(corpus.books(paths.corpus))
    np.save(paths.work / "held_out_books.npy", corpus.encode_books(held, tokenizer))
    np.save(mix.stream_path(paths), corpus.encode_books(train, tokenizer))


def start_producers(paths: Paths, schedule: Schedule, first: int) -> multiprocessing.Process:
    workers = max(1, (multiprocessing.cpu_count() or 2) - 2)
    process = multiprocessing.get_context("spawn").Process(target=mix.produce, args=(paths, schedule, first, workers))
    process.start()
    return process


def shard_source(paths: Paths, device: str):
    import torch

    from training_model import Batch

    def source(phase, step: int) -> "Batch":
        path = mix.shard_path(paths, step)
        tokens, weight = mix.unpack(mix.wait_for(path))
        path.unlink()
        return Batch(torch.from_numpy(tokens).to(device), torch.from_numpy(weight).to(device))

    return source


def needle_probe(paths: Paths, shape: Shape, tokens: int):
    from probe import probe, probes

    tokenizer = load_tokenizer(paths.tokenizer)
    held = paths.work / "held_out_books.npy"
    books = np.load(held) if held.exists() else None
    prompts = probes(PROBE_PROMPTS, tokens, tokenizer, None if books is None else mix.book_filler(books, tokenizer))
    return lambda weights, biases: probe(shape, weights, biases, prompts, books)


def build_model(paths: Paths, shape: Shape, schedule: Schedule, seconds: float) -> bool:
    """One piece of training; true when the schedule is done."""
    import torch

    from train import Trainer, train_piece

    device = "cuda" if torch.cuda.is_available() else "cpu"
    first = torch.load(paths.state, map_location="cpu", weights_only=True)["step"] if paths.state.exists() else 0
    if first >= schedule.steps:
        return True
    producers = start_producers(paths, schedule, first)
    try:
        trainer = Trainer(shape, schedule, SEED, device, compiled=device == "cuda")
        if paths.state.exists():
            trainer.load(paths.state)
        probe = needle_probe(paths, shape, schedule.needle_tokens)
        return train_piece(trainer, shard_source(paths, device), probe, paths.state, paths.log, seconds)
    finally:
        stop_process(producers)


def restart(paths: Paths, shape: Shape, schedule: Schedule, weights_file: Path, step: int) -> None:
    """Makes a training state from a bf16 `source/` alone: for when the state was lost. The optimizer begins anew."""
    from export import read_shipped
    from train import Trainer

    trainer = Trainer(shape, schedule, SEED, "cpu", compiled=False)
    trainer.load_values(*read_shipped(weights_file, shape))
    trainer.step = step
    trainer.save(paths.state)


def stop_process(process: multiprocessing.Process) -> None:
    import os
    import signal

    if process.is_alive():
        os.kill(process.pid, signal.SIGINT)
        process.join(5)
        if process.is_alive():
            process.terminate()
    process.join()


def build_checkpoint(paths: Paths, shape: Shape) -> Path:
    """`checkpoint/` (FP8, what ships) and `source/` (bf16) from the last training state."""
    import torch

    from export import write_checkpoint

    state = torch.load(paths.state, map_location="cpu", weights_only=True)
    for name, fp8 in (("checkpoint", True), ("source", False)):
        folder = paths.work / name
        write_checkpoint(folder, shape, state["weights"], state["biases"], fp8)
        shutil.copy(paths.tokenizer, folder / "tokenizer.json")
        for extra in ("chat_template.jinja", "LICENSE", "README.md"):
            if (MODEL_FOLDER / extra).exists():
                shutil.copy(MODEL_FOLDER / extra, folder / extra)
    return paths.work / "checkpoint"


def build_results(paths: Paths, shape: Shape, needle_tokens: int, n: int) -> None:
    """Evaluates the shipped checkpoint; `results.json`."""
    import torch

    from cached_model import CachedModel
    from evaluate import evaluate
    from export import read_shipped, stop_ids
    from weights import compute_weights

    device = "cuda" if torch.cuda.is_available() else "cpu"
    shipped, source = (read_shipped(paths.work / name / "model.safetensors", shape, device) for name in ("checkpoint", "source"))
    four_bit = CachedModel(shape, compute_weights(source[0], torch.float32, "mxfp4"), source[1])
    evaluate(CachedModel(shape, *shipped), four_bit, load_tokenizer(paths.tokenizer), set(stop_ids(shape)), paths, n, needle_tokens)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="where the pieces are kept")
    parser.add_argument("--corpus", type=Path, help=f"folder with {corpus.WANTED}")
    parser.add_argument("--piece-seconds", type=float, default=540.0, help="training time of one call")
    parser.add_argument("--prompts", type=int, default=500, help="held-out prompts of each set")
    parser.add_argument("--all", action="store_true", help="go on until everything is done")
    parser.add_argument("--skip-evaluation", action="store_true", help="stop when the checkpoint is written")
    parser.add_argument("--restart-weights", type=Path, help="a bf16 model.safetensors of an earlier piece whose state was lost")
    parser.add_argument("--restart-step", type=int, default=0, help="the step at which those weights were written")
    parser.add_argument("--toy", action="store_true", help="a tiny model and a few steps, to try the machinery")
    args = parser.parse_args()
    shape, schedule = (TINY, TOY) if args.toy else (Shape(), FULL)
    paths = Paths(args.work, args.corpus)
    start = time.monotonic()
    build_tokenizer(paths)
    build_books(paths)
    print(f"tokenizer and books: {time.monotonic() - start:.1f} s", flush=True)
    if args.restart_weights and not paths.state.exists():
        restart(paths, shape, schedule, args.restart_weights, args.restart_step)
    done = build_model(paths, shape, schedule, args.piece_seconds)
    while args.all and not done:
        done = build_model(paths, shape, schedule, args.piece_seconds)
    build_checkpoint(paths, shape)
    print(f"trained: {done}, {time.monotonic() - start:.1f} s", flush=True)
    if done and not args.skip_evaluation:
        build_results(paths, shape, schedule.needle_tokens, args.prompts)
        print(f"evaluated: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
