"""The probe looks at the tokens it means: those that an answer copies, and where they stand in the text."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

RECIPE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(RECIPE))

try:
    import torch
    from tokenizers import Tokenizer
except ImportError:
    raise unittest.SkipTest("torch or tokenizers is not installed") from None

import dataclasses  # noqa: E402

from mix import Mixer  # noqa: E402
from probe import probe, probes  # noqa: E402
from settings import TINY  # noqa: E402
from weights import new_router_bias, new_weights  # noqa: E402
from words import Draw  # noqa: E402


class Probe(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.tokenizer = Tokenizer.from_file(str(RECIPE.parent / "tokenizer.json"))
        cls.prompts = probes(3, 400, cls.tokenizer, None)

    def test_rows_predict_the_tokens_that_stand_at_the_keys(self) -> None:
        for p in self.prompts:
            self.assertGreater(len(p.rows), 3)
            self.assertLess(p.keys[-1], p.answer_at)
            self.assertGreaterEqual(p.rows[0], p.answer_at)
            for row, key in zip(p.rows, p.keys):
                self.assertEqual(p.tokens[row + 1], p.tokens[key])

    def test_prompts_just_fit(self) -> None:
        for p in self.prompts:
            self.assertTrue(200 < p.answer_at <= 400 - 48, p.answer_at)

    def test_all_keys_are_chosen_where_none_need_be_left_out(self) -> None:
        wide = dataclasses.replace(TINY, index_topk=400)
        shares = [probe(s, new_weights(s, 1), new_router_bias(s), self.prompts, None)["recall"]["0"] for s in (wide, TINY)]
        self.assertEqual(shares[0], 1.0)
        self.assertLess(shares[1], 0.7)


class LongNeedles(unittest.TestCase):
    def test_texts_reach_the_end_of_a_row_and_keep_their_questions(self) -> None:
        tokenizer = Tokenizer.from_file(str(RECIPE.parent / "tokenizer.json"))
        mixer = Mixer(tokenizer, None, [], "long", 1024)
        lengths = [len(ids) for ids in mixer.encode([mixer.makers["needle"](Draw(i)) for i in range(40)])]
        self.assertGreater(max(n for n in lengths if n <= 1024), 900)
        self.assertLess(sum(n > 1024 for n in lengths), 10)


if __name__ == "__main__":
    unittest.main()
