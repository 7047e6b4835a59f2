"""Word problems of one to three steps. A family is one situation with several wordings.

The thinking repeats what is known in a few words, then does one sum a line; the answer is one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

from arithmetic import amount, minus, over, plus, times
from samples import Family, Sample, conversation
from words import COLOURS, DAYS, Draw, cap, many, plural


@dataclass
class Problem:
    text: str
    lines: list[str]
    reply: str
    answer: int


GETS = ("buys", "finds", "gets", "is given", "collects", "receives", "makes", "wins")
LOSES = ("gives away", "loses", "sells", "uses", "throws away", "gives {m}", "hands {m}")
NOW = ("How many {t} does {n} have now?", "How many has {he}?", "How many {t} has {n} now?", "How many does {he} have?",
       "How many {t} does {he} have in all?", "How many {t} are there now?")
LEFT = ("How many are left?", "How many {t} are left?", "How many {t} does {n} have left?", "How many has {he} left?",
        "How many remain?")
ALL = ("How many {t} are there in all?", "How many {t} is that in total?", "How many {t} are there altogether?",
       "What is the total number of {t}?", "How many is that?")
BOTH = ("How many {t} do they have together?", "How many {t} do they have in all?", "How many have they together?",
        "What is their total?")
HOLDERS = ("box", "bag", "basket", "tray", "drawer", "shelf", "row", "pack", "jar")


def holder(d: Draw) -> tuple[str, str]:
    one = d.one(HOLDERS)
    return one, {"shelf": "shelves"}.get(one, plural(one))


def two_names(d: Draw) -> tuple[str, str, str, str, str]:
    n, he, his, him = d.person()
    m = next(x for x in iter(lambda: d.person()[0], None) if x != n)
    return n, he, his, him, m


# One step -------------------------------------------------------------------------------------------------------


def has_gets(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    a, b = amount(d), amount(d)
    verb = d.one(GETS)
    start = d.one((f"{n} has {many(a, t)} and {verb} {b} more.", f"{n} has {many(a, t)}. {cap(he)} {verb} {b} more.",
                   f"{n} had {many(a, t)}. Then {he} {verb} {b} more {plural(t)}.",
                   f"{n} {verb} {many(b, t)}. {cap(he)} already has {a}."))
    line, s = plus(a, b)
    return Problem(f"{start} {d.one(NOW).format(t=plural(t), n=n, he=he)}", [f"{n} has {a} and gets {b} more.", line],
                   f"{n} has {many(s, t)}.", s)


def has_loses(d: Draw) -> Problem:
    n, he, _, _, m = two_names(d)
    t = d.thing()
    a = amount(d) + 1
    b = d.num(1, a)
    verb = d.one(LOSES).format(m=m)
    start = d.one((f"{n} has {many(a, t)} and {verb} {b}.", f"{n} has {many(a, t)}. {cap(he)} {verb} {b} of them.",
                   f"{n} had {many(a, t)}. {cap(he)} {verb} {b}.", f"There are {many(a, t)} on the table. {n} takes {b} away."))
    line, s = minus(a, b)
    asked = "How many are left?" if "table" in start else d.one(LEFT).format(t=plural(t), n=n, he=he)
    return Problem(f"{start} {asked}", [f"There are {a} and {b} go away.", line], f"There are {s} left.", s)


def together(d: Draw) -> Problem:
    n, _, _, _, m = two_names(d)
    t = d.thing()
    a, b = amount(d), amount(d)
    verb = d.one(("has", "has", "finds", "buys", "picks"))
    start = d.one((f"{n} {verb} {many(a, t)} and {m} {verb} {b}.", f"{n} {verb} {many(a, t)}. {m} {verb} {many(b, t)}."))
    line, s = plus(a, b)
    return Problem(f"{start} {d.one(BOTH).format(t=plural(t))}", [f"{n}: {a}. {m}: {b}.", line],
                   f"Together they have {many(s, t)}.", s)


def difference(d: Draw) -> Problem:
    n, _, _, _, m = two_names(d)
    t = d.thing()
    b = amount(d)
    a = b + amount(d)
    start = f"{n} has {many(a, t)} and {m} has {b}."
    if d.chance(0.5):
        asked, reply = f"How many more {plural(t)} does {n} have than {m}?", f"{n} has {{s}} more than {m}."
    else:
        asked, reply = f"How many fewer {plural(t)} does {m} have than {n}?", f"{m} has {{s}} fewer than {n}."
    line, s = minus(a, b)
    return Problem(f"{start} {asked}", [f"{n}: {a}. {m}: {b}.", line], reply.format(s=s), s)


def groups(d: Draw) -> Problem:
    t = d.thing()
    one, more = holder(d)
    a, b = d.num(2, 12), d.num(2, 12) if d.chance(0.7) else d.num(10, 40)
    start = d.one((f"There are {a} {more} with {many(b, t)} each.", f"Each {one} holds {many(b, t)}. There are {a} {more}.",
                   f"A {one} has {many(b, t)}. We have {a} such {more}."))
    line, s = times(a, b)
    return Problem(f"{start} {d.one(ALL).format(t=plural(t))}", [f"{a} {more} of {b}.", line], f"There are {many(s, t)}.", s)


def shares(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    b, s = d.num(2, 10), d.num(2, 15)
    start = d.one((f"{n} shares {b * s} {plural(t)} equally among {b} friends.",
                   f"{n} has {b * s} {plural(t)} and divides them equally among {b} children.",
                   f"{b} children share {b * s} {plural(t)} equally."))
    asked = d.one((f"How many {plural(t)} does each get?", "How many does each one get?", f"How many {plural(t)} are there for each?"))
    line, _ = over(b * s, b)
    return Problem(f"{start} {asked}", [f"{b * s} shared among {b}.", line], f"Each gets {many(s, t)}.", s)


def bags(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    one, more = holder(d)
    b, s = d.num(2, 10), d.num(2, 15)
    start = d.one((f"{n} puts {b * s} {plural(t)} into {more} of {b}.", f"{n} has {b * s} {plural(t)}. {cap(he)} puts {b} in each {one}."))
    line, _ = over(b * s, b)
    return Problem(f"{start} How many {more} {d.one(('does ' + he + ' need', 'are there', 'does ' + he + ' fill'))}?",
                   [f"{b * s} in groups of {b}.", line], f"{cap(he)} needs {s} {more}.", s)


def price(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    money = d.one(("dollars", "cents", "coins", "euros"))
    a, b = d.num(2, 15), d.num(2, 10)
    article = "An" if t[0] in "aeiou" else "A"
    start = d.one((f"{article} {t} costs {a} {money}.", f"One {t} costs {a} {money}.", f"The price of one {t} is {a} {money}."))
    asked = d.one((f"How much do {b} {plural(t)} cost?", f"{n} buys {b}. How much does {he} pay?", f"What do {b} {plural(t)} cost?"))
    line, s = times(b, a)
    return Problem(f"{start} {asked}", [f"{b} {plural(t)} at {a} each.", line], f"That costs {s} {money}.", s)


def change(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    money = d.one(("dollars", "cents", "coins", "euros"))
    a = d.one((10, 20, 50, 100))
    b = d.num(1, a - 1)
    start = f"{n} buys {'an' if t[0] in 'aeiou' else 'a'} {t} for {b} {money} and pays with {a} {money}."
    line, s = minus(a, b)
    return Problem(f"{start} {d.one(('How much change does ' + he + ' get?', 'How much money does ' + he + ' get back?'))}",
                   [f"{cap(he)} pays {a}, the price is {b}.", line], f"{cap(he)} gets {s} {money} back.", s)


def at_first(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    b, s = amount(d), amount(d)
    verb = d.one(("bought", "found", "got", "won"))
    text = f"{n} had some {plural(t)}. {cap(he)} {verb} {b} more and now has {s + b}. How many {plural(t)} did {he} have at first?"
    line, _ = minus(s + b, b)
    return Problem(text, [f"Now {s + b}, before that {b} fewer.", line], f"At first {he} had {many(s, t)}.", s)


def as_many(d: Draw) -> Problem:
    n, _, _, _, m = two_names(d)
    t = d.thing()
    k, word = d.one(((2, "twice"), (3, "three times"), (4, "four times"), (5, "five times")))
    a = d.num(2, 25)
    line, s = times(k, a)
    return Problem(f"{n} has {many(a, t)}. {m} has {word} as many. How many {plural(t)} does {m} have?",
                   [f"{m} has {k} times {a}.", line], f"{m} has {many(s, t)}.", s)


def pages(d: Draw) -> Problem:
    n, he, *_ = d.person()
    a = d.num(20, 300)
    b = d.num(5, a - 1)
    text = d.one((f"A book has {a} pages. {n} has read {b}. How many pages are left?",
                  f"{n} reads a book of {a} pages. {cap(he)} has read {b} pages. How many pages must {he} still read?"))
    line, s = minus(a, b)
    return Problem(text, [f"{a} pages, {b} are read.", line], f"{s} pages are left.", s)


def legs(d: Draw) -> Problem:
    animal, k = d.one((("dog", 4), ("cat", 4), ("cow", 4), ("hen", 2), ("duck", 2), ("horse", 4), ("owl", 2)))
    a = d.num(2, 15)
    line, s = times(a, k)
    return Problem(f"{cap(animal)}s have {k} legs. How many legs do {a} {animal}s have?", [f"{a} times {k} legs.", line],
                   f"They have {s} legs.", s)


def age_later(d: Draw) -> Problem:
    n, he, *_ = d.person()
    a, b = d.num(3, 60), d.num(2, 20)
    line, s = plus(a, b)
    return Problem(f"{n} is {a} years old. How old will {he} be in {b} years?", [f"Now {a}, in {b} years {b} more.", line],
                   f"{n} will be {s} years old.", s)


def bus_on(d: Draw) -> Problem:
    a, b = d.num(5, 50), d.num(2, 20)
    line, s = plus(a, b)
    return Problem(f"There are {a} people on a bus. At the next stop {b} people get on. How many people are on the bus now?",
                   [f"There are {a} and {b} get on.", line], f"There are {s} people on the bus.", s)


def distance(d: Draw) -> Problem:
    n, he, *_ = d.person()
    a, b = d.num(2, 12), d.num(2, 12)
    line, s = times(a, b)
    return Problem(f"{n} walks {a} miles every day. How many miles does {he} walk in {b} days?", [f"{b} days of {a} miles.", line],
                   f"{cap(he)} walks {s} miles.", s)


# Two steps ------------------------------------------------------------------------------------------------------


def gets_loses(d: Draw) -> Problem:
    n, he, _, _, m = two_names(d)
    t = d.thing()
    a, b = amount(d), amount(d)
    c = d.num(1, a + b)
    get, lose = d.one(GETS), d.one(LOSES).format(m=m)
    start = d.one((f"{n} has {many(a, t)}. {cap(he)} {get} {b} more and then {lose} {c}.",
                   f"{n} had {many(a, t)}, {get.replace('is', 'was')} {b} more and then {lose} {c}.".replace("buys", "bought"),
                   f"{n} has {many(a, t)} and {get} {b} more. Then {he} {lose} {c}."))
    l1, s = plus(a, b)
    l2, r = minus(s, c)
    return Problem(f"{start} {d.one(LEFT).format(t=plural(t), n=n, he=he)}", [f"{n} has {a}, gets {b}, and {c} go away.", l1, l2],
                   f"{n} has {many(r, t)} left.", r)


def loses_gets(d: Draw) -> Problem:
    n, he, _, _, m = two_names(d)
    t = d.thing()
    a = amount(d) + 2
    b = d.num(1, a - 1)
    c = amount(d)
    get, lose = d.one(GETS), d.one(LOSES).format(m=m)
    text = f"{n} has {many(a, t)}. {cap(he)} {lose} {b}. Then {he} {get} {c} more. {d.one(NOW).format(t=plural(t), n=n, he=he)}"
    l1, s = minus(a, b)
    l2, r = plus(s, c)
    return Problem(text, [f"{n} has {a}, {b} go away, {c} come.", l1, l2], f"{n} has {many(r, t)}.", r)


def groups_minus(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    one, more = holder(d)
    a, b = d.num(2, 10), d.num(2, 12)
    c = d.num(1, a * b - 1)
    lose = d.one(("gives away", "loses", "sells", "uses", "takes out"))
    start = d.one((f"{n} has {a} {more} with {many(b, t)} each. {cap(he)} {lose} {c}.",
                   f"There are {many(b, t)} in each {one}, and {n} has {a} {more}. {cap(he)} {lose} {c} {plural(t)}."))
    l1, s = times(a, b)
    l2, r = minus(s, c)
    return Problem(f"{start} {d.one(LEFT).format(t=plural(t), n=n, he=he)}", [f"{a} {more} of {b}, less {c}.", l1, l2],
                   f"There are {many(r, t)} left.", r)


def groups_plus(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    _, more = holder(d)
    a, b, c = d.num(2, 10), d.num(2, 12), d.num(1, 30)
    get = d.one(("finds", "buys", "gets", "makes"))
    text = f"{n} has {a} {more} of {many(b, t)}. {cap(he)} {get} {c} more. {d.one(NOW).format(t=plural(t), n=n, he=he)}"
    l1, s = times(a, b)
    l2, r = plus(s, c)
    return Problem(text, [f"{a} {more} of {b}, and {c} more.", l1, l2], f"{n} has {many(r, t)}.", r)


def cost_change(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    money = d.one(("dollars", "cents", "coins", "euros"))
    a, b = d.num(2, 8), d.num(2, 12)
    paid = d.one([p for p in (20, 50, 100) if p > a * b])
    text = d.one((f"{n} buys {many(a, t)} at {b} {money} each and pays with {paid} {money}.",
                  f"One {t} costs {b} {money}. {n} buys {a} and pays with {paid} {money}."))
    l1, s = times(a, b)
    l2, r = minus(paid, s)
    return Problem(f"{text} How much change does {he} get?", [f"{a} at {b} each, paid with {paid}.", l1, l2],
                   f"{cap(he)} gets {r} {money} back.", r)


def twice_together(d: Draw) -> Problem:
    n, _, _, _, m = two_names(d)
    t = d.thing()
    k, word = d.one(((2, "twice"), (3, "three times"), (4, "four times")))
    a = d.num(2, 25)
    l1, s = times(k, a)
    l2, r = plus(a, s)
    return Problem(f"{n} has {many(a, t)}. {m} has {word} as many. {d.one(BOTH).format(t=plural(t))}",
                   [f"{m} has {k} times {a}.", l1, l2], f"Together they have {many(r, t)}.", r)


def more_together(d: Draw) -> Problem:
    n, _, _, _, m = two_names(d)
    t = d.thing()
    a = amount(d)
    if d.chance(0.5):
        b = amount(d)
        text, (l1, s) = f"{m} has {b} more than {n}", plus(a, b)
    else:
        b = d.num(1, a)
        text, (l1, s) = f"{m} has {b} fewer than {n}", minus(a, b)
    l2, r = plus(a, s)
    return Problem(f"{n} has {many(a, t)}. {text}. {d.one(BOTH).format(t=plural(t))}", [f"{text}.", l1, l2],
                   f"Together they have {many(r, t)}.", r)


def gets_shares(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    c, r = d.num(2, 8), d.num(2, 10)
    a = d.num(1, c * r - 1)
    b = c * r - a
    text = f"{n} has {many(a, t)} and buys {b} more. {cap(he)} shares them equally among {c} friends. How many does each friend get?"
    l1, s = plus(a, b)
    l2, _ = over(s, c)
    return Problem(text, [f"{a} and {b} more, shared among {c}.", l1, l2], f"Each friend gets {many(r, t)}.", r)


def loses_shares(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    c, r, b = d.num(2, 8), d.num(2, 10), d.num(1, 20)
    lose = d.one(("loses", "eats", "keeps", "sells"))
    text = d.one((f"{n} has {c * r + b} {plural(t)}. {cap(he)} {lose} {b} and shares the rest equally among {c} friends.",
                  f"{n} has {c * r + b} {plural(t)}. {cap(he)} {lose} {b}. The rest goes into {c} bags, the same number in each."))
    asked = "How many are in each bag?" if "bags" in text else "How many does each friend get?"
    l1, s = minus(c * r + b, b)
    l2, _ = over(s, c)
    return Problem(f"{text} {asked}", [f"{c * r + b} less {b}, divided by {c}.", l1, l2], f"It is {many(r, t)} each.", r)


def bus_off_on(d: Draw) -> Problem:
    a = d.num(5, 50)
    b, c = d.num(1, a), d.num(1, 20)
    l1, s = minus(a, b)
    l2, r = plus(s, c)
    return Problem(f"There are {a} people on a train. {b} get off and {c} get on. How many people are on the train now?",
                   [f"There are {a}, {b} leave, {c} come.", l1, l2], f"There are {r} people on the train.", r)


def earns_spends(d: Draw) -> Problem:
    n, he, *_ = d.person()
    a, b = d.num(2, 12), d.num(2, 10)
    c = d.num(1, a * b - 1)
    l1, s = times(b, a)
    l2, r = minus(s, c)
    return Problem(f"{n} earns {a} dollars a day. {cap(he)} works {b} days and then spends {c} dollars. How many dollars does {he} have left?",
                   [f"{b} days at {a} dollars, less {c}.", l1, l2], f"{cap(he)} has {r} dollars left.", r)


def pages_days(d: Draw) -> Problem:
    n, he, *_ = d.person()
    c, r, b = d.num(2, 12), d.num(2, 12), d.num(3, 40)
    text = f"A book has {c * r + b} pages. {n} has read {b}. {cap(he)} reads {c} pages a day. In how many days will {he} finish it?"
    l1, s = minus(c * r + b, b)
    l2, _ = over(s, c)
    return Problem(text, [f"{c * r + b} pages, {b} are read, {c} a day.", l1, l2], f"{cap(he)} will finish it in {r} days.", r)


def three_people(d: Draw) -> Problem:
    x, y, z = d.names(3)
    t = d.thing()
    a, b, c = amount(d), amount(d), amount(d)
    verb = d.one(("has", "finds", "picks", "buys"))
    text = d.one((f"{x} {verb} {many(a, t)}, {y} {verb} {b} and {z} {verb} {c}.", f"{x} {verb} {a}, {y} {verb} {b}, and {z} {verb} {many(c, t)}."))
    l1, s = plus(a, b)
    l2, r = plus(s, c)
    return Problem(f"{text} {d.one(BOTH).format(t=plural(t))}", [f"{x}: {a}. {y}: {b}. {z}: {c}.", l1, l2],
                   f"Together they have {many(r, t)}.", r)


def two_colours(d: Draw) -> Problem:
    t = d.thing()
    p, q, o = d.some(COLOURS, 3)
    a, b = amount(d), amount(d)
    c = amount(d)
    text = f"A box holds {a} {p} {plural(t)}, {b} {q} {plural(t)} and {c} {o} {plural(t)}. {d.one(ALL).format(t=plural(t))}"
    l1, s = plus(a, b)
    l2, r = plus(s, c)
    return Problem(text, [f"{cap(p)}: {a}. {cap(q)}: {b}. {cap(o)}: {c}.", l1, l2], f"There are {many(r, t)}.", r)


# Three steps ----------------------------------------------------------------------------------------------------


def two_costs(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    u = next(x for x in iter(d.thing, None) if x != t)
    money = d.one(("dollars", "cents", "coins", "euros"))
    a, b, c, e = d.num(2, 9), d.num(2, 12), d.num(2, 9), d.num(2, 12)
    text = d.one((f"{n} buys {many(a, t)} at {b} {money} each and {many(c, u)} at {e} {money} each. How much does {he} pay?",
                  f"One {t} costs {b} {money} and one {u} costs {e} {money}. How much do {a} {plural(t)} and {c} {plural(u)} cost?"))
    l1, s = times(a, b)
    l2, v = times(c, e)
    l3, r = plus(s, v)
    return Problem(text, [f"{a} at {b}, and {c} at {e}.", l1, l2, l3], f"That costs {r} {money}.", r)


def two_groups(d: Draw) -> Problem:
    t = d.thing()
    _, more = holder(d)
    p, q = d.some(COLOURS, 2)
    a, b, c, e = d.num(2, 9), d.num(2, 12), d.num(2, 9), d.num(2, 12)
    text = f"There are {a} {p} {more} with {many(b, t)} each and {c} {q} {more} with {many(e, t)} each. {d.one(ALL).format(t=plural(t))}"
    l1, s = times(a, b)
    l2, v = times(c, e)
    l3, r = plus(s, v)
    return Problem(text, [f"{a} {more} of {b}, and {c} {more} of {e}.", l1, l2, l3], f"There are {many(r, t)}.", r)


def cost_plus_change(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    u = next(x for x in iter(d.thing, None) if x != t)
    money = d.one(("dollars", "coins", "euros"))
    a, b, c = d.num(2, 6), d.num(2, 8), d.num(2, 30)
    text = f"{n} has 100 {money}. {cap(he)} buys {many(a, t)} at {b} {money} each and {'an' if u[0] in 'aeiou' else 'a'} {u} for {c} {money}. How many {money} does {he} have left?"
    l1, s = times(a, b)
    l2, v = plus(s, c)
    l3, r = minus(100, v)
    return Problem(text, [f"{a} at {b}, and {c}, out of 100.", l1, l2, l3], f"{cap(he)} has {r} {money} left.", r)


def chain_of_three(d: Draw) -> Problem:
    x, y, z = d.names(3)
    t = d.thing()
    k, word = d.one(((2, "twice"), (3, "three times")))
    a, b = d.num(2, 20), d.num(1, 15)
    l1, s = times(k, a)
    l2, v = plus(s, b)
    asked = f"How many {plural(t)} does {z} have?"
    lines, r = [f"{y} has {k} times {a}, {z} has {b} more.", l1, l2], v
    reply = f"{z} has {many(r, t)}."
    if d.chance(0.5):
        l3, u = plus(a, s)
        l4, r = plus(u, v)
        lines, asked, reply = lines + [l3, l4], d.one(BOTH).format(t=plural(t)), f"Together they have {many(r, t)}."
    return Problem(f"{x} has {many(a, t)}. {y} has {word} as many. {z} has {b} more than {y}. {asked}", lines, reply, r)


def groups_loses_shares(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    _, more = holder(d)
    while True:
        a, b, c = d.num(2, 9), d.num(2, 12), d.num(2, 6)
        e = d.num(1, 12)
        if a * b > e and (a * b - e) % c == 0:
            break
    text = f"{n} has {a} {more} of {many(b, t)}. {cap(he)} loses {e} and shares the rest equally among {c} friends. How many does each friend get?"
    l1, s = times(a, b)
    l2, v = minus(s, e)
    l3, r = over(v, c)
    return Problem(text, [f"{a} {more} of {b}, less {e}, shared among {c}.", l1, l2, l3], f"Each friend gets {many(r, t)}.", r)


def gets_loses_shares(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    while True:
        a, b, e, c = d.num(5, 40), d.num(2, 30), d.num(1, 20), d.num(2, 6)
        if (a + b - e) % c == 0 and a + b > e:
            break
    text = f"{n} has {many(a, t)} and finds {b} more. {cap(he)} loses {e} and divides the rest equally into {c} bags. How many are in each bag?"
    l1, s = plus(a, b)
    l2, v = minus(s, e)
    l3, r = over(v, c)
    return Problem(text, [f"{a} and {b} more, less {e}, into {c} bags.", l1, l2, l3], f"There are {many(r, t)} in each bag.", r)


def saves(d: Draw) -> Problem:
    n, he, *_ = d.person()
    a, b, c = d.num(5, 40), d.num(2, 10), d.num(2, 10)
    e = d.num(1, a + b * c - 1)
    t = d.thing()
    text = f"{n} has {a} dollars and saves {b} dollars a week for {c} weeks. Then {he} buys {'an' if t[0] in 'aeiou' else 'a'} {t} for {e} dollars. How many dollars has {he} left?"
    l1, s = times(c, b)
    l2, v = plus(a, s)
    l3, r = minus(v, e)
    return Problem(text, [f"{a} and {c} weeks of {b}, less {e}.", l1, l2, l3], f"{cap(he)} has {r} dollars left.", r)


def half_then_more(d: Draw) -> Problem:
    n, he, _, _, m = two_names(d)
    t = d.thing()
    a, b = 2 * d.num(2, 25), d.num(1, 20)
    text = f"{n} has {many(a, t)}. {cap(he)} gives half of them to {m}. Then {he} finds {b} more. How many {plural(t)} does {he} have now?"
    l1, s = over(a, 2)
    l2, v = minus(a, s)
    l3, r = plus(v, b)
    return Problem(text, [f"Half of {a} goes to {m}, then {b} more.", l1, l2, l3], f"{n} has {many(r, t)}.", r)


def trip(d: Draw) -> Problem:
    n, he, *_ = d.person()
    a, b, c, e = d.num(2, 9), d.num(2, 6), d.num(2, 9), d.num(2, 6)
    text = f"{n} rides {a} miles an hour for {b} hours and then {c} miles an hour for {e} hours. How many miles does {he} ride?"
    l1, s = times(b, a)
    l2, v = times(e, c)
    l3, r = plus(s, v)
    return Problem(text, [f"{b} hours at {a}, then {e} hours at {c}.", l1, l2, l3], f"{cap(he)} rides {r} miles.", r)


def packs_needed(d: Draw) -> Problem:
    n, he, *_ = d.person()
    t = d.thing()
    k, packs, p = d.num(2, 10), d.num(2, 9), d.num(2, 9)
    text = f"{n} needs {k * packs} {plural(t)}. They come in packs of {k}, and a pack costs {p} dollars. How much does {he} pay?"
    l1, s = over(k * packs, k)
    l2, r = times(s, p)
    return Problem(text, [f"{k * packs} in packs of {k}, {p} dollars a pack.", l1, l2], f"{cap(he)} pays {r} dollars.", r)


STEPS: dict[int, list[tuple]] = {
    1: [(has_gets, False), (has_loses, False), (together, False), (difference, False), (groups, False), (shares, False),
        (bags, False), (price, False), (change, False), (at_first, False), (as_many, False), (pages, False), (legs, False),
        (age_later, True), (bus_on, True), (distance, True)],
    2: [(gets_loses, False), (loses_gets, False), (groups_minus, False), (groups_plus, False), (cost_change, False),
        (twice_together, False), (more_together, False), (loses_shares, False), (pages_days, False), (three_people, False),
        (two_colours, False), (packs_needed, False), (gets_shares, True), (bus_off_on, True), (earns_spends, True)],
    3: [(two_costs, False), (two_groups, False), (cost_plus_change, False), (chain_of_three, False), (groups_loses_shares, False),
        (saves, False), (gets_loses_shares, True), (half_then_more, True), (trip, True)],
}


BEFORE = ("Here is a problem: ", "Solve this: ", "Can you solve this? ", "Question: ", "Please help me. ", "A word problem: ", "It is {day} today. ")
AFTER = (" Think step by step.", " Answer with a number.", " Please explain.", " Show your work.", " Be careful.", "\nAnswer:")


def worded(d: Draw, text: str) -> str:
    """In training, now and then with words around the problem."""
    if d.held_out or d.chance(0.75):
        return text
    return d.one(BEFORE).format(day=d.one(DAYS)) + text if d.chance(0.6) else text + d.one(AFTER)


def sample_of(problem, d: Draw) -> Sample:
    p = problem(d)
    thinking = None if not d.held_out else True
    chat = conversation(d, worded(d, p.text), "\n".join(p.lines), p.reply, thinking=thinking)
    if not chat.thinking:
        chat.messages[-1].content = " ".join(line + "." if line[-1] != "." else line for line in p.lines[1:]) + " " + p.reply
    return Sample(chat, problem.__name__, str(p.answer))


def family(problem, held: bool) -> Family:
    return Family(problem.__name__, lambda d: sample_of(problem, d), held)


FAMILIES = [family(problem, held) for group in STEPS.values() for problem, held in group]
