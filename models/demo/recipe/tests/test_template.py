"""`chat_template.jinja` renders what `chat.py` trained on."""

from __future__ import annotations

import json
import sys
import unittest
from pathlib import Path

RECIPE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(RECIPE))

try:
    import jinja2
except ImportError:
    raise unittest.SkipTest("jinja2 is not installed") from None

import mix_families  # noqa: E402
from chat import Chat, Message, prompt_text, render  # noqa: E402
from words import Draw  # noqa: E402


def template() -> jinja2.Template:
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    env.filters["tojson"] = lambda value, ensure_ascii=True: json.dumps(value, ensure_ascii=ensure_ascii)
    return env.from_string((RECIPE.parent / "chat_template.jinja").read_text(encoding="utf-8"))


def as_openai(m: Message) -> dict:
    out: dict = {"role": m.role, "content": m.content}
    if m.reasoning is not None:
        out["reasoning_content"] = m.reasoning
    if m.calls:
        out["tool_calls"] = [{"function": {"name": c.name, "arguments": c.arguments}} for c in m.calls]
    return out


def rendered(chat: Chat, generate: bool, **flags) -> str:
    tools = [{"type": "function", "function": t} for t in chat.tools]
    return template().render(
        messages=[as_openai(m) for m in chat.messages], tools=tools, add_generation_prompt=generate,
        enable_thinking=chat.thinking, reasoning_effort=chat.effort, **flags,
    )


class Template(unittest.TestCase):
    def test_equals_the_text_of_training(self) -> None:
        for family in mix_families.ALL:
            for seed in range(8):
                chat = family.make(Draw(f"{family.name}/{seed}")).chat
                pieces = render(chat)
                text = "".join(p.text for p in pieces[:-1])  # the last piece is the stop token
                self.assertEqual(rendered(chat, False), text, family.name)

    def test_prompt_ends_in_thinking_or_not(self) -> None:
        for thinking in (True, False):
            chat = Chat([Message("user", "Hello")], thinking=thinking)
            self.assertEqual(rendered(chat, True), prompt_text(chat))
        self.assertEqual(
            template().render(messages=[{"role": "user", "content": "Hi"}], add_generation_prompt=True),
            "[gMASK]<sop><|system|>Reasoning Effort: Max<|user|>Hi<|assistant|><think>",
        )

    def test_reasoning_inside_the_content_is_found(self) -> None:
        messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>b</think>\nc "}]
        self.assertTrue(template().render(messages=messages).endswith("<|assistant|><think>b</think>c"))

    def test_earlier_thinking_is_dropped_unless_asked_for(self) -> None:
        chat = Chat([Message("user", "a"), Message("assistant", "b", "because"), Message("user", "c")])
        self.assertIn("<think></think>b", rendered(chat, True))
        self.assertIn("<think>because</think>b", rendered(chat, True, clear_thinking=False))

    def test_deferred_tools_and_the_strict_key_are_left_out(self) -> None:
        tools = [{"name": "a", "strict": True}, {"name": "b", "defer_loading": True}]
        text = template().render(messages=[], tools=tools)
        self.assertIn('<tools>\n{"name": "a"}\n</tools>', text)

    def test_text_parts_are_joined_and_results_share_one_observation(self) -> None:
        messages = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                    {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}]
        text = template().render(messages=messages)
        self.assertTrue(text.endswith("<|user|>ab<|observation|><tool_response>1</tool_response><tool_response>2</tool_response>"))


if __name__ == "__main__":
    unittest.main()
