"""The generators: right answers, repeatable draws, words and families kept for evaluation."""

from __future__ import annotations

import json
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import json_tasks  # noqa: E402
import mix_families  # noqa: E402
import problems  # noqa: E402
import reading  # noqa: E402
import tasks  # noqa: E402
import tools  # noqa: E402
from arithmetic import times  # noqa: E402
from chat import render  # noqa: E402
from samples import Sample  # noqa: E402
from words import GIRLS, BOYS, HELD_OUT_BOYS, HELD_OUT_GIRLS, Draw, a, plural  # noqa: E402

DRAWS = 60


def text_of(sample: Sample) -> str:
    return "".join(p.text for p in render(sample.chat))


def draws(families, n: int = DRAWS, held_out: bool = False):
    for family in families:
        for i in range(n):
            yield family, family.make(Draw(f"{family.name}/{i}", held_out))


class Generators(unittest.TestCase):
    def test_the_same_seed_makes_the_same_text(self) -> None:
        for family in mix_families.ALL:
            self.assertEqual(text_of(family.make(Draw("s"))), text_of(family.make(Draw("s"))), family.name)

    def test_no_slot_stays_open(self) -> None:
        for family, sample in draws(mix_families.ALL):
            for m in sample.chat.messages:
                if m.role != "tool" and family not in json_tasks.FAMILIES:
                    self.assertNotRegex(m.content, r"\{[a-zA-Z]+\}", family.name)

    def test_a_fifth_of_the_families_of_each_kind_is_held_out(self) -> None:
        for kind, families in mix_families.BY_KIND.items():
            self.assertGreaterEqual(sum(f.held_out for f in families), 0.2 * len(families), kind)
        for held, known in ((reading.HELD_OUT_NEEDLES, reading.NEEDLES), (reading.HELD_OUT_FACTS, reading.FACTS), (tools.HELD_OUT_TOOLS, tools.TOOLS)):
            self.assertGreaterEqual(len(held), 0.2 * (len(held) + len(known)))

    def test_names_kept_for_evaluation_are_not_drawn_in_training(self) -> None:
        kept = set(HELD_OUT_BOYS + HELD_OUT_GIRLS)
        self.assertFalse(kept & set(GIRLS + BOYS))
        for _, sample in draws(problems.FAMILIES, 20):
            self.assertFalse(kept & set(re.findall(r"\w+", text_of(sample))))


class WordProblems(unittest.TestCase):
    def test_every_line_is_a_true_sum(self) -> None:
        for family, sample in draws(problems.FAMILIES):
            for left, right in re.findall(r"([\d+*/ -]+) = (\d+)(?![\d ]*[*+/-])", text_of(sample)):
                self.assertEqual(eval(left), int(right), family.name)  # noqa: S307 (digits and signs only)

    def test_the_answer_ends_the_reply_and_is_never_negative(self) -> None:
        for family, sample in draws(problems.FAMILIES):
            numbers = re.findall(r"-?\d+", sample.chat.messages[-1].content)
            self.assertEqual(numbers[-1], sample.answer, family.name)
            self.assertGreaterEqual(int(sample.answer), 0)

    def test_products_are_split_at_the_tens(self) -> None:
        self.assertEqual(times(23, 4), ("23 * 4 = 20 * 4 + 3 * 4 = 80 + 12 = 92", 92))
        self.assertEqual(times(7, 8), ("7 * 8 = 56", 56))


class OtherKinds(unittest.TestCase):
    def test_json_replies_parse(self) -> None:
        for family, sample in draws([f for f in json_tasks.FAMILIES if f.name != "field_of"]):
            json.loads(sample.answer)

    def test_calls_name_offered_tools_with_their_arguments(self) -> None:
        for _, sample in draws([f for f in tools.FAMILIES if f.name in ("call", "new_tool")]):
            schema = {t["name"]: t for t in sample.chat.tools}[sample.call.name]
            self.assertEqual(set(sample.call.arguments), set(schema["parameters"]["properties"]))

    def test_held_out_tools_are_never_offered_in_training(self) -> None:
        names = {t.name for t in tools.HELD_OUT_TOOLS}
        for _, sample in draws([f for f in tools.FAMILIES if not f.held_out]):
            self.assertFalse(names & {t["name"] for t in sample.chat.tools})

    def test_the_text_holds_the_answer_of_a_reading_question(self) -> None:
        for family, sample in draws([f for f in reading.FAMILIES if f.name != "not_said"]):
            self.assertIn(sample.answer, sample.chat.messages[sample.cut - 1].content + sample.chat.messages[0].content + sample.chat.messages[1].content)

    def test_a_needle_lies_at_its_depth(self) -> None:
        for depth in (0.0, 0.5, 1.0):
            sample = reading.needle_sample(Draw(f"d{depth}", held_out=True), 6000, depth=depth, n_needles=1)
            text = sample.chat.messages[0].content
            found = text.index(sample.chat.messages[1].reasoning.removeprefix("The text says: ")) / len(text)
            self.assertAlmostEqual(found, depth, delta=0.06)

    def test_sorted_lists_are_sorted(self) -> None:
        for _, sample in draws([f for f in tasks.FAMILIES if f.name == "sort_words"]):
            words = sample.answer.split(", ")
            self.assertEqual(words, sorted(words))

    def test_small_grammar(self) -> None:
        self.assertEqual([plural("box"), plural("city"), plural("toy"), a("owl"), a("fox")], ["boxes", "cities", "toys", "an owl", "a fox"])


if __name__ == "__main__":
    unittest.main()
