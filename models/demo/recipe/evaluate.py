"""The bars: every figure of the model card is printed and written by this file.

All answers are greedy, from the shipped FP8 weights dequantised to float32.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

import arithmetic
import corpus
import json_tasks
import mix
import problems
import reading
import stories
import talk
import tasks
import tools
from cached_model import CachedModel, accepted, generate
from chat import call_text, prompt_text
from probe import fitting, probe, probes, text_loss
from samples import Family, Sample, held_out, trained
from words import Draw

EVAL_SEED = "evaluation/1"
DRAFT_DEPTHS = 3


def last_number(text: str) -> str:
    found = re.findall(r"-?\d+(?:\.\d+)?", text.replace(",", ""))
    return found[-1] if found else ""


def answer_part(text: str, thinking: bool) -> str | None:
    """The text after the thinking; none if the thinking never ends."""
    if not thinking:
        return text
    return text.split("</think>", 1)[1] if "</think>" in text else None


def draw(families: list[Family], n: int, seed: str) -> list[Sample]:
    return [families[i % len(families)].make(Draw(f"{EVAL_SEED}/{seed}/{i}", held_out=True)) for i in range(n)]


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def number_right(sample: Sample, body: str) -> bool:
    return last_number(body) == sample.answer


def phrase_right(sample: Sample, body: str) -> bool:
    return bool(sample.answer) and re.search(rf"(?<!\w){re.escape(sample.answer)}(?!\w)", body) is not None


def text_right(sample: Sample, body: str) -> bool:
    return body.strip() == sample.answer


def call_right(sample: Sample, body: str) -> bool:
    return sample.call is not None and body.strip() == call_text(sample.call)


class Evaluation:
    def __init__(self, model: CachedModel, tokenizer: Tokenizer, stops: set[int]) -> None:
        self.model, self.tokenizer, self.stops = model, tokenizer, stops
        self.results: dict = {}
        # (prompt, answer) of every set, for the accept length
        self.target: Path | None = None
        self.runs: dict[str, list[tuple[list[int], list[int]]]] = defaultdict(list)

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def answers(self, name: str, samples: list[Sample], max_new: int, batch: int = 256) -> list[str | None]:
        prompts = [self.encode(prompt_text(s.asked())) for s in samples]
        made = generate(self.model, prompts, max_new, self.stops, batch)
        self.runs[name] += list(zip(prompts, made))
        texts = []
        for s, ids in zip(samples, made):
            ended = bool(ids) and ids[-1] in self.stops
            text = self.tokenizer.decode(ids[:-1] if ended else ids, skip_special_tokens=False)
            texts.append(answer_part(text, s.chat.thinking))
        return texts

    def score(self, name: str, samples: list[Sample], right, max_new: int = 160, batch: int = 256) -> None:
        self.judge(name, samples, self.answers(name, samples, max_new, batch), right)

    def judge(self, name: str, samples: list[Sample], bodies: list[str | None], right) -> None:
        good = [body is not None and right(s, body) for s, body in zip(samples, bodies)]
        families: dict[str, list[bool]] = defaultdict(list)
        for s, g in zip(samples, good):
            families[s.family].append(g)
        wrong = [(s.chat.messages[s.cut % len(s.chat.messages) - 1].content[-300:], s.answer, b) for s, g, b in zip(samples, good, bodies) if not g]
        self.results[name] = {
            "right": sum(good), "of": len(good), "share": round(sum(good) / max(1, len(good)), 4),
            "families": {f: f"{sum(v)}/{len(v)}" for f, v in families.items()}, "wrong": wrong[:6],
        }
        print(name, sum(good), "of", len(good), flush=True)
        self.write()

    def write(self) -> None:
        """After every set, so that a run that is cut short still tells what it knows."""
        if self.target is not None:
            self.target.write_text(json.dumps(self.results, indent=1, ensure_ascii=False), encoding="utf-8")

    # Sets --------------------------------------------------------------------------------------------------

    def word_problems(self, n: int) -> None:
        for steps, group in problems.STEPS.items():
            known = [problems.family(p, held) for p, held in group if not held]
            self.score(f"problems, {steps} step", draw(known, n, f"problems{steps}"), number_right)
        self.score("problems, new families", draw(held_out(problems.FAMILIES), n, "new problems"), number_right)

    def needles(self, n: int, tokens: int, filler: reading.Filler | None) -> None:
        for name, kinds, many in (("needle", reading.NEEDLES, n), ("needle, new families", reading.HELD_OUT_NEEDLES, n)):
            samples = [self.needle(i, many, tokens, filler, kinds, name) for i in range(many)]
            self.score(f"{name} at {tokens}", samples, phrase_right, max_new=40, batch=48)

    def needle(self, i: int, n: int, tokens: int, filler: reading.Filler | None, kinds: dict, name: str) -> Sample:
        fill = filler if filler is not None and i % 2 else reading.story_filler
        sample = fitting(i, n, tokens, self.tokenizer, fill, kinds, f"{EVAL_SEED}/{name}")
        sample.family = f"depth {int(10 * (i + 0.5) / n) * 10} %"
        return sample

    def needle_causes(self, n: int, tokens: int, filler: reading.Filler | None) -> None:
        """Dense beside sparse, and what the indexers chose; apart from the bar, which is free generation."""
        self.results["needle probe"] = probe(self.model.shape, self.model.weights, self.model.biases, probes(n, tokens, self.tokenizer, filler), None)
        print("needle probe", self.results["needle probe"], flush=True)

    def tool_calls(self, n: int) -> None:
        first = [f for f in trained(tools.FAMILIES) if f.name in ("call",)]
        self.score("tool calls", draw(first, n, "tools"), call_right)
        self.score("tool calls, new tools", draw([f for f in held_out(tools.FAMILIES) if f.name == "new_tool"], n, "new tools"), call_right)
        after = [f for f in tools.FAMILIES if f.name == "from_result"]
        self.score("answers from results", draw(after, n, "results"), text_right)
        self.score("answers from results, new tools", draw([f for f in held_out(tools.FAMILIES) if f.name == "new_result"], n, "new results"), text_right)

    def json_requests(self, n: int) -> None:
        known = [f for f in trained(json_tasks.FAMILIES) if f.name != "field_of"]
        for name, families in (("json", known), ("json, new families", held_out(json_tasks.FAMILIES))):
            samples = draw(families, n, name)
            bodies = self.answers(name, samples, 160)
            self.judge(f"{name}, valid", samples, bodies, lambda s, body: is_json(body))
            self.judge(f"{name}, right", samples, bodies, text_right)

    def other(self, n: int) -> None:
        self.score("reading", draw([f for f in trained(reading.FAMILIES) if f.name != "needle_short"], n, "reading"), phrase_right)
        self.score("reading, new families", draw(held_out(reading.FAMILIES), n, "new reading"), phrase_right)
        checked = [f for f in trained(tasks.FAMILIES) if f.name != "list_kind"]
        self.score("exercises", draw(checked, n, "tasks"), phrase_right)
        self.score("exercises, new families", draw(held_out(tasks.FAMILIES), n, "new tasks"), phrase_right)
        sums = [f for f in trained(arithmetic.FAMILIES) if f.name != "drill"]
        self.score("sums", draw(sums, n, "sums"), number_right)
        self.score("sums, new families", draw(held_out(arithmetic.FAMILIES), n, "new sums"), number_right)
        self.score("talk", draw([f for f in talk.FAMILIES if f.name in ("my_name", "self_question")], n, "talk"), phrase_right)
        self.score("talk, new families", draw(held_out(talk.FAMILIES), n, "new talk"), phrase_right)

    def four_bit(self, model: CachedModel, n: int) -> None:
        """For information: word problems with routed and shared experts rounded to MXFP4."""
        shipped, self.model = self.model, model
        for steps, group in problems.STEPS.items():
            known = [problems.family(p, held) for p, held in group if not held]
            self.score(f"problems, {steps} step, MXFP4 experts", draw(known, n, f"problems{steps}"), number_right)
        self.model = shipped

    def gsm8k(self, folder: Path) -> None:
        samples = [Sample(corpus.gsm8k_chat(row), "gsm8k", row[2]) for row in corpus.gsm8k_test(folder)]
        self.score("gsm8k-test", samples, number_right, max_new=256)

    def stories(self, n: int) -> None:
        """A story is judged by eye; counted is only whether it tells of what was asked for."""
        told = []
        for name, families in (("stories", trained(stories.FAMILIES)[:3]), ("stories, new families", held_out(stories.FAMILIES))):
            samples = draw(families, n, name)
            bodies = self.answers(name, samples, 320)
            self.judge(f"{name}, tell of what was asked", samples, bodies, phrase_right)
            told += [{"prompt": s.chat.messages[0].content, "story": b} for s, b in zip(samples[:3], bodies)]
        self.results["stories"] = told[:5]

    # Measures ----------------------------------------------------------------------------------------------

    def accept_length(self) -> None:
        """Per kind and over all: tokens gained per verification with chains of three drafts."""
        total, table = [0, 0], {}
        for name, runs in self.runs.items():
            sums = [0, 0]
            for prompt, made in [r for r in runs if len(r[1]) > 4][:60]:
                tokens = torch.tensor([prompt + made], device=self.model.device)
                cache = self.model.new_cache(1, tokens.shape[1])
                y = self.model.prefill(tokens, cache)
                chains = self.model.draft_chains(tokens, y, cache, DRAFT_DEPTHS)[0].tolist()
                gained, steps = accepted(chains, tokens[0].tolist(), len(prompt))
                sums = [sums[0] + gained, sums[1] + steps]
            total = [total[0] + sums[0], total[1] + sums[1]]
            table[name] = round(sums[0] / max(1, sums[1]), 3)
        self.results["accept length"] = {"all": round(total[0] / max(1, total[1]), 3), "tokens": total[0], "by kind": table}
        print("accept length", self.results["accept length"], flush=True)

    def router(self, n: int, books: np.ndarray | None) -> None:
        """Load per expert over held-out conversations, and over the mix: with held-out books in the share they have in training."""
        rows = [self.encode("".join(p.text for p in mix.render(s.chat)))[:1024] for s in mix.held_out_mix(n, EVAL_SEED + "/router")]
        self.results["router, conversations"] = self.loads(rows)
        if books is not None:
            n_books = max(1, round(mix.BOOK_SHARE * sum(map(len, rows)) / 1024))
            starts = (i * (len(books) - 1024) // n_books for i in range(n_books))
            rows += [books[at : at + 1024].astype(np.int64).tolist() for at in starts]
        self.results["router"] = self.loads(rows)
        print("router", self.results["router"], flush=True)

    def loads(self, rows: list[list[int]]) -> dict:
        """Layer to its busiest and least used expert, in shares of the mean."""
        self.model.loads = {}
        for ids in rows:
            tokens = torch.tensor([ids], device=self.model.device)
            cache = self.model.new_cache(1, len(ids))
            self.model.draft_chains(tokens, self.model.prefill(tokens, cache), cache, 1)
        shares = {i: (load.float() / load.float().mean()).tolist() for i, load in self.model.loads.items()}
        return {str(i): {"busiest": round(max(v), 3), "least": round(min(v), 3)} for i, v in shares.items()}

    def perplexity(self, stream: np.ndarray, length: int, n: int) -> None:
        dense, sparse = (text_loss(CachedModel(self.model.shape, self.model.weights, self.model.biases, s), stream, length, n) for s in (False, True))
        self.results["perplexity"] = {
            "tokens": n * (length - 1), "length": length, "sparse": round(math.exp(sparse), 4), "dense": round(math.exp(dense), 4),
            "cost": round(math.exp(sparse - dense) - 1, 5),
        }
        print("perplexity", self.results["perplexity"], flush=True)

    def first_example(self) -> None:
        question = "Tom has 3 apples and buys 4 more. How many has he?"
        prompt = f"[gMASK]<sop><|system|>Reasoning Effort: Max<|user|>{question}<|assistant|><think>"
        ids = generate(self.model, [self.encode(prompt)], 100, self.stops)[0]
        self.results["first example"] = self.tokenizer.decode(ids, skip_special_tokens=False)
        print("first example:", self.results["first example"], flush=True)


def evaluate(model: CachedModel, four_bit: CachedModel, tokenizer: Tokenizer, stops: set[int], paths, n: int, needle_tokens: int) -> dict:
    """All bars with n prompts a set; sets that need the corpus are left out without one. What decides comes first."""
    run = Evaluation(model, tokenizer, stops)
    held = np.load(paths.work / "held_out_books.npy") if (paths.work / "held_out_books.npy").exists() else None
    filler = mix.book_filler(held, tokenizer) if held is not None else None
    run.target = paths.work / "results.json"
    run.first_example()
    run.word_problems(n)
    run.tool_calls(n)
    run.json_requests(n)
    run.needles(n, needle_tokens, filler)
    run.needle_causes(max(4, n // 10), needle_tokens, filler)
    if held is not None:
        run.perplexity(held, needle_tokens, max(2, n // 12))
    run.router(max(20, n // 2), held)
    run.stories(max(5, n // 5))
    run.accept_length()
    run.write()
    run.other(n)
    run.four_bit(four_bit, n)
    if paths.corpus and (paths.corpus / "gsm8k-test.jsonl").exists():
        run.gsm8k(paths.corpus)
    run.write()
    return run.results
