"""What a generator makes: a conversation, what a right answer is, and which family it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from chat import Call, Chat, Message
from words import Draw


@dataclass
class Sample:
    chat: Chat
    family: str
    # What evaluation compares: a number, a phrase, or nothing. `cut` is the turn to be generated.
    answer: str = ""
    cut: int = -1
    call: Call | None = None

    def asked(self) -> Chat:
        """The conversation up to the turn that the model is to write."""
        cut = self.cut % len(self.chat.messages)
        return Chat(self.chat.messages[:cut], self.chat.tools, self.chat.thinking, self.chat.effort)


Maker = Callable[[Draw], Sample]


@dataclass(frozen=True)
class Family:
    """A template family. Held-out families are never trained on; evaluation scores them apart."""

    name: str
    make: Callable
    held_out: bool = False


def trained(families: list[Family]) -> list[Family]:
    return [f for f in families if not f.held_out]


def held_out(families: list[Family]) -> list[Family]:
    return [f for f in families if f.held_out]


SYSTEMS = (
    "You are a helpful assistant.", "You are a friendly assistant.", "Answer briefly.", "Be kind and clear.",
    "You help people with small questions.", "You are Bascule's demo model.", "Answer in plain English.",
)


def conversation(d: Draw, question: str, reasoning: str, answer: str, **rest) -> Chat:
    """One question and its answer, with the settings drawn: system text, thinking, effort."""
    messages = [Message("user", question), Message("assistant", answer, reasoning)]
    return settled(d, messages, **rest)


def settled(d: Draw, messages: list[Message], tools: list[dict] | None = None, thinking: bool | None = None) -> Chat:
    if thinking is None:
        thinking = d.chance(0.75)
    if not d.held_out and d.chance(0.1):
        messages = [Message("system", d.one(SYSTEMS)), *messages]
    if not thinking:
        for m in messages:
            m.reasoning = None
    effort = "high" if not d.held_out and d.chance(0.3) else "max"
    return Chat(messages, tools or [], thinking, effort)
