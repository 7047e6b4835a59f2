"""Sums written out the way the model is to think them: one small step after the other."""

from __future__ import annotations

from chat import Chat
from samples import Family, Sample, conversation
from words import Draw


def plus(a: int, b: int) -> tuple[str, int]:
    return f"{a} + {b} = {a + b}", a + b


def minus(a: int, b: int) -> tuple[str, int]:
    return f"{a} - {b} = {a - b}", a - b


def times(a: int, b: int) -> tuple[str, int]:
    """A product; beyond the table of twelve it is split at the tens of the longer factor."""
    if a <= 12 and b <= 12 or a % 10 == 0 and a <= 100 and b < 10 or b % 10 == 0 and b <= 100 and a < 10:
        return f"{a} * {b} = {a * b}", a * b
    big, small = (a, b) if a >= b else (b, a)
    unit = 100 if big > 100 else 10
    high, low = big // unit * unit, big % unit
    if low == 0:
        return f"{a} * {b} = {a * b}", a * b
    return f"{a} * {b} = {high} * {small} + {low} * {small} = {high * small} + {low * small} = {a * b}", a * b


def over(a: int, b: int) -> tuple[str, int]:
    return f"{a} / {b} = {a // b}", a // b


def amount(d: Draw, top: int = 20) -> int:
    """A number of things: mostly small, sometimes up to 100, seldom up to a few hundred."""
    x = d.num(1, 10)
    if x <= 6:
        return d.num(2, top)
    if x <= 9:
        return d.num(5, max(top, 100))
    return d.num(20, max(top, 400))


ASKED = {
    "+": ("What is {a} + {b}?", "Add {a} and {b}.", "{a} plus {b}?", "How much is {a} + {b}?", "Calculate {a} + {b}."),
    "-": ("What is {a} - {b}?", "Subtract {b} from {a}.", "{a} minus {b}?", "How much is {a} - {b}?", "Calculate {a} - {b}."),
    "*": ("What is {a} * {b}?", "Multiply {a} by {b}.", "{a} times {b}?", "How much is {a} x {b}?", "Calculate {a} * {b}."),
    "/": ("What is {a} / {b}?", "Divide {a} by {b}.", "How much is {a} / {b}?", "Calculate {a} / {b}."),
}


def pair(d: Draw, sign: str) -> tuple[int, int]:
    top = d.one((10, 20, 100, 100, 300, 1000))
    if sign == "+":
        return d.num(0, top), d.num(0, top)
    if sign == "-":
        a = d.num(0, top)
        return a, d.num(0, a)
    if sign == "*":
        return (d.num(2, 12), d.num(2, 12)) if d.chance(0.5) else (d.num(2, 99), d.num(2, 12 if d.chance(0.7) else 40))
    b = d.num(2, 12)
    return b * d.num(1, 12 if d.chance(0.6) else 60), b


STEP = {"+": plus, "-": minus, "*": times, "/": over}


def one_sum(d: Draw) -> Sample:
    sign = d.one("+-*/")
    a, b = pair(d, sign)
    line, value = STEP[sign](a, b)
    text = d.one(ASKED[sign]).format(a=a, b=b)
    return Sample(conversation(d, text, line, f"{a} {sign} {b} = {value}"), "one_sum", str(value))


def drill(d: Draw) -> Sample:
    """Many sums in one answer: dense practice."""
    n = d.num(4, 12)
    asked, solved = [], []
    for _ in range(n):
        sign = d.one("++--*/")
        a, b = pair(d, sign)
        asked.append(f"{a} {sign} {b}")
        solved.append(STEP[sign](a, b)[0])
    chat: Chat = conversation(d, "Solve: " + ", ".join(asked), "One after the other.", "\n".join(solved))
    return Sample(chat, "drill", "\n".join(solved))


def chain(d: Draw) -> Sample:
    """a + b - c step by step."""
    a, b = d.num(1, 60), d.num(1, 60)
    c = d.num(1, a + b)
    first, s = plus(a, b)
    second, value = minus(s, c)
    text = d.one(("What is {a} + {b} - {c}?", "Work out {a} + {b} - {c}.")).format(a=a, b=b, c=c)
    return Sample(conversation(d, text, f"{first}\n{second}", f"{a} + {b} - {c} = {value}"), "chain", str(value))


def compare(d: Draw) -> Sample:
    top = d.one((20, 100, 1000))
    a = d.num(0, top)
    b = d.one([x for x in (d.num(0, top), a + 1, a + 10) if x != a])
    big = max(a, b)
    text = d.one(("Which is larger, {a} or {b}?", "Which number is bigger: {a} or {b}?", "Is {a} or {b} the larger number?"))
    line = f"{big} > {min(a, b)}"
    return Sample(conversation(d, text.format(a=a, b=b), line, f"{big} is larger."), "compare", str(big))


def sequence(d: Draw) -> Sample:
    start, step = d.num(0, 50), d.num(1, 12)
    shown = [start + i * step for i in range(4)]
    value = shown[-1] + step
    text = f"What comes next: {', '.join(map(str, shown))}?"
    line = f"{minus(shown[1], shown[0])[0]}\n{plus(shown[-1], step)[0]}"
    return Sample(conversation(d, text, line, f"The next number is {value}."), "sequence", str(value))


FAMILIES = [
    Family("one_sum", one_sum), Family("drill", drill), Family("chain", chain), Family("compare", compare),
    Family("sequence", sequence, held_out=True),
]
