"""Conversations in GLM-5.2's format: the same text that `chat_template.jinja` renders, as a function.

`render` returns pieces with a flag that says whether the model is to learn them, which Jinja cannot.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

PREFIX = "[gMASK]<sop>"
TOOLS_BEFORE = (
    "<|system|>\n# Tools\n\nThese functions can be called to help with the request. Each line between the tags "
    "describes one of them as JSON.\n<tools>\n"
)
TOOLS_AFTER = (
    "</tools>\n\nTo call a function, write its name and arguments like this:\n"
    "<tool_call>{name}<arg_key>{key}</arg_key><arg_value>{value}</arg_value>...</tool_call>"
)


@dataclass
class Call:
    name: str
    arguments: dict


@dataclass
class Message:
    role: str
    content: str = ""
    reasoning: str | None = None
    calls: list[Call] = field(default_factory=list)


@dataclass
class Chat:
    """A conversation to learn from: messages, tools offered, thinking on or off, the effort."""

    messages: list[Message]
    tools: list[dict] = field(default_factory=list)
    thinking: bool = True
    effort: str = "max"


@dataclass
class Piece:
    text: str
    learn: bool


def dump(value) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def tools_block(tools: list[dict]) -> str:
    if not tools:
        return ""
    lines = "".join(json.dumps(tool, ensure_ascii=False) + "\n" for tool in tools)
    return TOOLS_BEFORE + lines + TOOLS_AFTER


def call_text(call: Call) -> str:
    pairs = "".join(f"<arg_key>{k}</arg_key><arg_value>{dump(v)}</arg_value>" for k, v in call.arguments.items())
    return f"<tool_call>{call.name}{pairs}</tool_call>"


def opening(chat: Chat) -> str:
    effort = ""
    if chat.thinking:
        effort = "<|system|>Reasoning Effort: " + ("High" if chat.effort == "high" else "Max")
    return PREFIX + effort + tools_block(chat.tools)


def assistant_pieces(message: Message, after_last_user: bool) -> list[Piece]:
    keep = message.reasoning is not None and after_last_user
    think = f"<think>{message.reasoning}</think>" if keep else "<think></think>"
    body = message.content.strip() + "".join(call_text(c) for c in message.calls)
    head, rest = ("<|assistant|><think>", think[len("<think>") :] + body) if keep else ("<|assistant|>" + think, body)
    return [Piece(head, False), Piece(rest, True)]


def render(chat: Chat) -> list[Piece]:
    """The conversation, without a generation prompt; a stop token follows the last answer.

    The token after an answer is the role token of the next turn, which the model learns as its stop: the
    observation after calls, the user otherwise.
    """
    pieces = [Piece(opening(chat), False)]
    last_user = max((i for i, m in enumerate(chat.messages) if m.role == "user"), default=-1)
    previous = ""
    for i, m in enumerate(chat.messages):
        stop = previous == "assistant"
        if m.role == "assistant":
            pieces += assistant_pieces(m, i > last_user)
        elif m.role == "tool":
            if previous != "tool":
                pieces.append(Piece("<|observation|>", stop))
            pieces.append(Piece(f"<tool_response>{m.content}</tool_response>", False))
        else:
            pieces.append(Piece(f"<|{m.role}|>", stop))
            pieces.append(Piece(m.content, False))
        previous = m.role
    if previous == "assistant":
        calls = bool(chat.messages[-1].calls)
        pieces.append(Piece("<|observation|>" if calls else "<|user|>", True))
    return pieces


def prompt_text(chat: Chat) -> str:
    """What the model sees before it answers: the messages up to the first assistant turn to be generated."""
    head = "".join(p.text for p in render(Chat(chat.messages, chat.tools, chat.thinking, chat.effort)))
    return head + "<|assistant|>" + ("<think>" if chat.thinking else "<think></think>")
