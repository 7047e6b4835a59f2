"""The optional corpus: old books as text, and the training half of GSM8K as worked problems.

GSM8K's test half is read by `gsm8k_test` alone, which only evaluation calls.
"""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from chat import Chat, Message

WANTED = "books.txt.xz (public-domain books joined by <|endoftext|>) and gsm8k-train.jsonl, gsm8k-test.jsonl (openai/grade-school-math)"
HELD_OUT_EVERY, HELD_OUT_AT = 25, 7


def books(folder: Path) -> list[str]:
    with lzma.open(folder / "books.txt.xz", "rt", encoding="utf-8") as f:
        return [b.strip() for b in f.read().split("<|endoftext|>") if b.strip()]


def split_books(all_books: list[str]) -> tuple[list[str], list[str]]:
    """(for training, held out): every 25th book is never trained on."""
    held = [b for i, b in enumerate(all_books) if i % HELD_OUT_EVERY == HELD_OUT_AT]
    return [b for i, b in enumerate(all_books) if i % HELD_OUT_EVERY != HELD_OUT_AT], held


def encode_books(texts: list[str], tokenizer: Tokenizer) -> np.ndarray:
    """One stream of tokens, paragraphs encoded many at a time."""
    end = tokenizer.token_to_id("<|endoftext|>")
    out: list[np.ndarray] = []
    for text in texts:
        parts = re.split(r"(?<=\n\n)", text)
        blocks = ["".join(parts[i : i + 20]) for i in range(0, len(parts), 20)]
        ids = [i for e in tokenizer.encode_batch(blocks, add_special_tokens=False) for i in e.ids]
        out.append(np.array([*ids, end], dtype=np.uint16))
    return np.concatenate(out)


def gsm8k(path: Path) -> list[tuple[str, str, str]]:
    """(question, worked lines without the calculator marks, answer)"""
    out = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        worked, answer = row["answer"].split("####")
        out.append((row["question"].strip(), re.sub(r"<<[^>]*>>", "", worked).strip(), answer.strip().replace(",", "")))
    return out


def gsm8k_chat(row: tuple[str, str, str]) -> Chat:
    question, worked, answer = row
    return Chat([Message("user", question), Message("assistant", f"The answer is {answer}.", worked)])


def gsm8k_test(folder: Path) -> list[tuple[str, str, str]]:
    return gsm8k(folder / "gsm8k-test.jsonl")
