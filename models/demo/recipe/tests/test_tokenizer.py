"""The shipped tokenizer: GLM's form, no token of two digits, nothing lost."""

from __future__ import annotations

import json
import sys
import unittest
from pathlib import Path

RECIPE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(RECIPE))

try:
    from tokenizers import Tokenizer
except ImportError:
    raise unittest.SkipTest("tokenizers is not installed") from None

from settings import Shape  # noqa: E402
from tokenizer import GLM_PATTERN, SPECIAL, train_tokenizer  # noqa: E402

SHIPPED = RECIPE.parent / "tokenizer.json"


class ShippedTokenizer(unittest.TestCase):
    def setUp(self) -> None:
        self.tokenizer = Tokenizer.from_file(str(SHIPPED))

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def test_special_tokens_are_single_and_last(self) -> None:
        vocab = Shape().vocab
        self.assertEqual(self.tokenizer.get_vocab_size(), vocab)
        for i, token in enumerate(SPECIAL):
            self.assertEqual(self.ids(token), [vocab - len(SPECIAL) + i])

    def test_no_token_holds_two_digits(self) -> None:
        for token in self.tokenizer.get_vocab():
            self.assertLessEqual(sum(c.isdigit() for c in token if token not in SPECIAL), 1, token)

    def test_form_is_glms(self) -> None:
        stored = json.loads(SHIPPED.read_text(encoding="utf-8"))
        self.assertTrue(stored["model"]["ignore_merges"])
        self.assertIsNone(stored["normalizer"])
        split, level = stored["pre_tokenizer"]["pretokenizers"]
        self.assertEqual((split["pattern"]["Regex"], split["behavior"]), (GLM_PATTERN, "Isolated"))
        self.assertEqual((level["use_regex"], level["add_prefix_space"]), (False, False))

    def test_text_survives(self) -> None:
        for text in ("Tom has 3 apples.", "  two  spaces\n\nand lines\t", "é ß 漢字 🙂", '{"a": [1, 2.5, null]}', "1234567"):
            self.assertEqual(self.tokenizer.decode(self.ids(text)), text)


class Training(unittest.TestCase):
    def test_is_repeatable(self) -> None:
        texts = ["the cat sat on the mat, the cat sat", "a dog and a cat and 1234 things"] * 20
        self.assertEqual(train_tokenizer(texts, 340).to_str(), train_tokenizer(texts, 340).to_str())


if __name__ == "__main__":
    unittest.main()
