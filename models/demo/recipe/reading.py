"""Questions over a given text, and needles: facts hidden in a long text, to be found again.

The thinking quotes the sentence that holds the answer; the answer repeats it in a few words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from chat import Message
from samples import Family, Sample, conversation, settled
from stories import plain
from words import ANIMALS, CITIES, COLOURS, DAYS, PLACES, Draw, a, cap

JOBS = "baker teacher doctor farmer painter sailor pilot singer gardener tailor miller carpenter nurse cook writer".split()
FOODS = "soup bread rice fish cheese pancakes noodles salad pizza porridge beans pudding".split()
LANGUAGES = "French German Spanish Italian Dutch Polish Greek Danish".split()
SPORTS = "football tennis chess hockey cards golf cricket darts".split()


@dataclass
class Fact:
    sentence: str
    question: str
    reply: str
    answer: str


def lives(d: Draw, n: str) -> Fact:
    v = d.city()
    return Fact(f"{n} lives in {v}.", f"Where does {n} live?", f"{n} lives in {v}.", v)


def works(d: Draw, n: str) -> Fact:
    v = d.one(JOBS)
    return Fact(f"{n} works as a {v}.", f"What is {n}'s job?", f"{n} works as a {v}.", v)


def pet(d: Draw, n: str) -> Fact:
    v, p = d.one(ANIMALS), d.person()[0]
    return Fact(f"{n} has {a(v)} called {p}.", d.one((f"What is the name of {n}'s {v}?", f"What is {n}'s {v} called?")), f"{n}'s {v} is called {p}.", p)


def likes(d: Draw, n: str) -> Fact:
    v = d.one(FOODS)
    return Fact(f"{n} likes {v} best.", f"What does {n} like to eat best?", f"{n} likes {v} best.", v)


def colour(d: Draw, n: str) -> Fact:
    v, t = d.one(COLOURS), d.thing()
    return Fact(f"{n} has {a(v)} {t}.", f"What colour is {n}'s {t}?", f"{n}'s {t} is {v}.", v)


def age(d: Draw, n: str) -> Fact:
    v = d.num(4, 90)
    return Fact(f"{n} is {v} years old.", f"How old is {n}?", f"{n} is {v} years old.", str(v))


def plays(d: Draw, n: str) -> Fact:
    v, day = d.one(SPORTS), d.one(DAYS)
    return Fact(f"{n} plays {v} on {day}.", f"On which day does {n} play {v}?", f"{n} plays {v} on {day}.", day)


def hides(d: Draw, n: str) -> Fact:
    v, t = d.one(PLACES), d.thing()
    return Fact(f"{n} put the {t} in the {v}.", f"Where did {n} put the {t}?", f"{n} put the {t} in the {v}.", v)


def speaks(d: Draw, n: str) -> Fact:
    v = d.one(LANGUAGES)
    return Fact(f"{n} speaks {v} at home.", f"Which language does {n} speak at home?", f"{n} speaks {v} at home.", v)


def born(d: Draw, n: str) -> Fact:
    v = d.num(1900, 2020)
    return Fact(f"{n} was born in {v}.", f"When was {n} born?", f"{n} was born in {v}.", str(v))


FACTS: dict[str, Callable[[Draw, str], Fact]] = {
    f.__name__: f for f in (lives, works, pet, likes, colour, age, plays, hides)
}
HELD_OUT_FACTS: dict[str, Callable[[Draw, str], Fact]] = {f.__name__: f for f in (born, speaks)}


def text_of_facts(d: Draw, kinds: list, n: int) -> list[Fact]:
    """Facts about a few people, no two with the same question."""
    people, facts, seen = d.names(d.num(2, 4)), [], set()
    while len(facts) < n:
        f = d.one(kinds)(d, d.one(people))
        key = f.question if " 's" not in f.question else f.sentence
        if key not in seen:
            seen.add(key)
            facts.append(f)
    return facts


INTRO = ("Read this text: {t}\n{q}", "{t}\n\n{q}", "{t} {q}", "Here is a text.\n{t}\nQuestion: {q}", "Text: {t}\n\n{q}")


def about_text(kinds: list, name: str) -> Callable[[Draw], Sample]:
    def make(d: Draw) -> Sample:
        facts = text_of_facts(d, kinds, d.num(3, 9))
        f = d.one(facts)
        question = d.one(INTRO).format(t=" ".join(x.sentence for x in facts), q=f.question)
        return Sample(conversation(d, question, f"The text says: {f.sentence}", f.reply), name, f.answer)

    return make


def about_new(kind: Callable[[Draw, str], Fact]) -> Callable[[Draw], Sample]:
    """A fact of a kind that training never tells, among others; it is asked for."""

    def make(d: Draw) -> Sample:
        facts = text_of_facts(d, list(FACTS.values()), d.num(2, 8))
        f = kind(d, d.names(1)[0])
        facts.insert(d.num(0, len(facts)), f)
        question = d.one(INTRO).format(t=" ".join(x.sentence for x in facts), q=f.question)
        return Sample(conversation(d, question, f"The text says: {f.sentence}", f.reply), f"about_{kind.__name__}", f.answer)

    return make


def many_questions(d: Draw) -> Sample:
    facts = text_of_facts(d, list(FACTS.values()), d.num(4, 9))
    asked = d.some(facts, d.num(2, 4))
    messages = [Message("user", "Read this text: " + " ".join(f.sentence for f in facts) + "\n" + asked[0].question)]
    for i, f in enumerate(asked):
        if i:
            messages.append(Message("user", f.question))
        messages.append(Message("assistant", f.reply, f"The text says: {f.sentence}"))
    return Sample(settled(d, messages), "many_questions", asked[-1].answer)


def not_said(d: Draw) -> Sample:
    """A question that the text does not answer."""
    facts = text_of_facts(d, list(FACTS.values()), d.num(3, 7))
    known = {f.question for f in facts}
    missing = next(f for f in iter(lambda: d.one(list(FACTS.values()))(d, d.names(1)[0]), None) if f.question not in known
                   and not any(f.question.split("'s")[0].split()[-1] in k for k in known))
    question = d.one(INTRO).format(t=" ".join(x.sentence for x in facts), q=missing.question)
    return Sample(conversation(d, question, "The text does not say it.", "The text does not say."), "not_said", "does not say")


# Needles --------------------------------------------------------------------------------------------------------


@dataclass
class Needle:
    sentence: str
    question: str
    reply: str
    answer: str


def secret_word(d: Draw) -> Needle:
    v = d.code()
    return Needle(f"The secret word is {v}.", d.one(("What is the secret word?", "Tell me the secret word.", "Which secret word is in the text?")),
                  f"The secret word is {v}.", v)


def number_of(d: Draw) -> Needle:
    n, v = d.person()[0], str(d.num(100, 99999))
    return Needle(f"The number of {n} is {v}.", d.one((f"What is the number of {n}?", f"Which number does {n} have?")), f"The number of {n} is {v}.", v)


def password_of(d: Draw) -> Needle:
    n, v = d.city(), d.code()
    return Needle(f"The password for {n} is {v}.", d.one((f"What is the password for {n}?", f"Tell me the password for {n}.")), f"The password for {n} is {v}.", v)


def code_of(d: Draw) -> Needle:
    n, v = d.one(PLACES), d.code()
    return Needle(f"The code of the {n} door is {v}.", d.one((f"What is the code of the {n} door?", f"Which code opens the {n} door?")),
                  f"The code of the {n} door is {v}.", v)


def hidden_in(d: Draw) -> Needle:
    n, p, v = d.person()[0], d.one(PLACES), d.thing()
    return Needle(f"{n} has hidden {a(v)} in the {p}.", f"What has {n} hidden in the {p}?", f"{n} has hidden {a(v)} in the {p}.", v)


def remember(d: Draw) -> Needle:
    n, v = d.one(COLOURS), d.code()
    return Needle(f"Please remember: the {n} key is {v}.", d.one((f"What is the {n} key?", f"Which is the {n} key?")), f"The {n} key is {v}.", v)


def favourite(d: Draw) -> Needle:
    n, v = d.person()[0], d.code()
    return Needle(f"By the way, the favourite word of {n} is {v}.", f"What is the favourite word of {n}?", f"The favourite word of {n} is {v}.", v)


def ticket(d: Draw) -> Needle:
    n, v = d.person()[0], str(d.num(1000, 9999))
    return Needle(f"{n} holds ticket number {v}.", f"Which ticket number does {n} hold?", f"{n} holds ticket number {v}.", v)


NEEDLES = {f.__name__: f for f in (secret_word, number_of, password_of, code_of, hidden_in, remember)}
HELD_OUT_NEEDLES = {f.__name__: f for f in (favourite, ticket)}

Filler = Callable[[Draw, int], list[str]]


def story_filler(d: Draw, characters: int) -> list[str]:
    """Sentences of made-up stories, at least so many characters."""
    out: list[str] = []
    total = 0
    while total < characters:
        parts = plain(d).replace("\n\n", " ").replace('" ', '" \n').split(". ")
        parts = [p.rstrip(".").replace("\n", "") + "." for p in parts if p]
        out += parts
        total += sum(len(p) + 1 for p in parts)
    return out


def distinct_needles(d: Draw, kinds: list, n: int) -> list[Needle]:
    out: list[Needle] = []
    seen: set[str] = set()
    while len(out) < n:
        needle = d.one(kinds)(d)
        key = needle.sentence.replace(needle.answer, "")
        if key not in seen:
            seen.add(key)
            out.append(needle)
    return out


def haystack(d: Draw, filler: list[str], needles: list[Needle], depth: float | None = None) -> str:
    """The needles among the sentences; the first at `depth` of the text if given."""
    sentences = list(filler)
    for i, needle in enumerate(needles):
        at = round(depth * len(filler)) if i == 0 and depth is not None else d.num(0, len(sentences))
        sentences.insert(at, needle.sentence)
    return " ".join(sentences)


def needle_sample(
    d: Draw, characters: int, filler: Filler = story_filler, kinds: dict | None = None, depth: float | None = None,
    n_needles: int | None = None, n_asked: int | None = None,
) -> Sample:
    """A long text with hidden facts and one or more questions. Evaluation asks for one, at a given depth."""
    kinds = kinds or NEEDLES
    n = n_needles or d.num(1, 4 + characters // 1500)
    needles = distinct_needles(d, list(kinds.values()), n)
    text = haystack(d, filler(d, characters), needles, depth)
    asked = [needles[0]] if depth is not None else d.some(needles, min(n, n_asked or d.num(1, 8)))
    first = d.one(("{t}\n\n{q}", "Read this text.\n\n{t}\n\n{q}", "{q}\n\n{t}\n\n{q}", "{t}\n{q}")) if not d.held_out else "{t}\n\n{q}"
    messages = [Message("user", first.format(t=text, q=asked[0].question))]
    for i, needle in enumerate(asked):
        if i:
            messages.append(Message("user", needle.question))
        messages.append(Message("assistant", needle.reply, f"The text says: {needle.sentence}"))
    thinking = None if not d.held_out else True
    return Sample(settled(d, messages, thinking=thinking), "needle", asked[-1].answer)


FAMILIES = [
    Family("about_text", about_text(list(FACTS.values()), "about_text")),
    Family("many_questions", many_questions), Family("not_said", not_said),
    Family("needle_short", lambda d: needle_sample(d, d.num(200, 2600))),
    Family("about_born", about_new(born), held_out=True), Family("about_speaks", about_new(speaks), held_out=True),
]
