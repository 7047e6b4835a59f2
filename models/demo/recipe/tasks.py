"""Small exercises: copying, lists, sorting, counting, spelling, dates, opposites, greetings, who are you."""

from __future__ import annotations

from chat import Chat, Message
from samples import Family, Sample, conversation, settled
from words import ANIMALS, CITIES, COLOURS, COMMON, DAYS, MONTHS, MONTH_DAYS, NUMBER_WORDS, Draw, cap, joined, plural

KINDS = {"animals": ANIMALS, "colours": COLOURS, "cities": CITIES, "days": DAYS, "months": MONTHS}
OPPOSITES = dict(
    (p.split("-") for p in "hot-cold big-small up-down left-right day-night old-young good-bad fast-slow high-low open-closed "
     "full-empty light-dark wet-dry hard-soft rich-poor early-late long-short loud-quiet happy-sad strong-weak near-far "
     "first-last clean-dirty thick-thin sweet-sour".split())
)


def words(d: Draw, low: int, high: int) -> list[str]:
    pool = d.one((COMMON, ANIMALS, COLOURS, [d.letters(d.num(3, 6)) for _ in range(12)]))
    return d.some(pool, min(len(pool), d.num(low, high)))


def copy(d: Draw) -> Sample:
    text = d.one((" ".join(words(d, 2, 10)), ", ".join(words(d, 2, 8)), d.code(), " ".join(str(d.num(0, 999)) for _ in range(d.num(2, 8)))))
    question = d.one(("Repeat: {t}", "Copy this: {t}", "Say exactly this: {t}", "Write this again: {t}", "Repeat after me: {t}")).format(t=text)
    return Sample(conversation(d, question, "Copy the text.", text), "copy", text)


def backwards(d: Draw) -> Sample:
    items = words(d, 2, 7)
    text = ", ".join(reversed(items))
    question = f"{d.one(('Write these words in reverse order', 'Say these words backwards', 'Turn this list around'))}: {', '.join(items)}"
    return Sample(conversation(d, question, "From the last to the first.", text), "backwards", text)


def sort_numbers(d: Draw) -> Sample:
    items = d.some(range(0, d.one((20, 100, 100, 999))), d.num(3, 8))
    down = d.chance(0.3)
    text = ", ".join(map(str, sorted(items, reverse=down)))
    how = "from large to small" if down else d.one(("from small to large", "in ascending order", "by size"))
    return Sample(conversation(d, f"Sort these numbers {how}: {', '.join(map(str, items))}", f"Sorted {how}.", text), "sort_numbers", text)


def sort_words(d: Draw) -> Sample:
    items = d.some(d.one((COMMON, ANIMALS, COLOURS, CITIES)), d.num(3, 7))
    text = ", ".join(sorted(items))
    question = f"{d.one(('Sort these words by the alphabet', 'Put these words in alphabetical order', 'Sort alphabetically'))}: {', '.join(items)}"
    return Sample(conversation(d, question, "By the first letter, then the next.", text), "sort_words", text)


def largest(d: Draw) -> Sample:
    items = d.some(range(0, 999 if d.chance(0.3) else 100), d.num(3, 8))
    most = d.chance(0.5)
    v = max(items) if most else min(items)
    question = f"Which is the {'largest' if most else 'smallest'} of these numbers: {', '.join(map(str, items))}?"
    return Sample(conversation(d, question, f"The {'largest' if most else 'smallest'} is {v}.", f"{v}"), "largest", str(v))


def count_items(d: Draw) -> Sample:
    items = words(d, 2, 12)
    lines = ", ".join(f"{i + 1} {w}" for i, w in enumerate(items))
    question = f"How many words are in this list: {', '.join(items)}?"
    return Sample(conversation(d, question, lines, f"There are {len(items)} words.", thinking=True), "count_items", str(len(items)))


def pick(d: Draw) -> Sample:
    items = words(d, 3, 8)
    i = d.num(1, len(items))
    nth = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")[i - 1]
    if d.chance(0.2):
        i, nth = len(items), "last"
    question = f"What is the {nth} word of this list: {', '.join(items)}?"
    return Sample(conversation(d, question, f"The {nth} word is {items[i - 1]}.", items[i - 1]), "pick", items[i - 1])


def list_kind(d: Draw) -> Sample:
    kind = d.one(("animals", "colours", "cities"))
    n = d.num(2, 8)
    items = d.some(KINDS[kind], n)
    style = d.num(0, 2)
    question = d.one((f"List {n} {kind}.", f"Name {NUMBER_WORDS[n]} {kind}.", f"Give me {n} {kind}."))
    if style == 0:
        text = "\n".join(f"- {x}" for x in items)
    else:
        text = "\n".join(f"{i + 1}. {x}" for i, x in enumerate(items))
    question += d.one((" Use a list with dashes.", " Write them with dashes.")) if style == 0 else d.one(("", " Number them."))
    return Sample(conversation(d, question, f"{cap(NUMBER_WORDS[n])} {kind}: {joined(items)}.", text), "list_kind")


def spell(d: Draw) -> Sample:
    w = d.one((d.one(COMMON), d.one(ANIMALS), d.person()[0]))
    text = "-".join(w)
    return Sample(conversation(d, f"{d.one(('Spell the word', 'Spell', 'How do you spell'))} {w}{d.one(('.', '')) }", "Letter by letter.", text), "spell", text)


def unspell(d: Draw) -> Sample:
    w = d.one((d.one(COMMON), d.one(ANIMALS), d.one(COLOURS)))
    return Sample(conversation(d, f"Which word is this: {'-'.join(w)}", "Put the letters together.", w), "unspell", w)


def letters_of(d: Draw) -> Sample:
    w = d.one((COMMON, ANIMALS, COLOURS))
    w = d.one(w)
    lines = ", ".join(f"{i + 1} {c}" for i, c in enumerate(w))
    return Sample(conversation(d, f"How many letters has the word {w}?", lines, f"The word {w} has {len(w)} letters.", thinking=True), "letters_of", str(len(w)))


def first_letter(d: Draw) -> Sample:
    w = d.one((d.one(COMMON), d.one(ANIMALS)))
    last = d.chance(0.5)
    v = w[-1] if last else w[0]
    return Sample(conversation(d, f"What is the {'last' if last else 'first'} letter of {w}?", "-".join(w), v), "first_letter", v)


def upper(d: Draw) -> Sample:
    w = " ".join(d.some(COMMON, d.num(1, 3)))
    return Sample(conversation(d, f"Write in capital letters: {w}", "All letters large.", w.upper()), "upper", w.upper())


def next_day(d: Draw) -> Sample:
    i = d.num(0, 6)
    after = d.chance(0.6)
    v = DAYS[(i + (1 if after else -1)) % 7]
    question = d.one((f"Which day comes {'after' if after else 'before'} {DAYS[i]}?", f"What is the day {'after' if after else 'before'} {DAYS[i]}?"))
    return Sample(conversation(d, question, f"{'After' if after else 'Before'} {DAYS[i]} comes {v}.", f"{v}."), "next_day", v)


def days_later(d: Draw) -> Sample:
    i, n = d.num(0, 6), d.num(2, 10)
    passed = [DAYS[(i + k) % 7] for k in range(1, n + 1)]
    question = f"Today is {DAYS[i]}. Which day is it in {n} days?"
    return Sample(conversation(d, question, ", ".join(f"{k + 1} {x}" for k, x in enumerate(passed)), f"It is {passed[-1]}.", thinking=True), "days_later", passed[-1])


def month(d: Draw) -> Sample:
    i = d.num(0, 11)
    kind = d.num(0, 2)
    if kind == 0:
        q, v, line = f"Which month comes after {MONTHS[i]}?", MONTHS[(i + 1) % 12], f"After {MONTHS[i]} comes {MONTHS[(i + 1) % 12]}."
    elif kind == 1:
        q, v, line = f"How many days has {MONTHS[i]}?", str(MONTH_DAYS[i]), f"{MONTHS[i]} has {MONTH_DAYS[i]} days."
    else:
        q, v, line = f"Which number has the month {MONTHS[i]}?", str(i + 1), f"{MONTHS[i]} is month {i + 1}."
    return Sample(conversation(d, q, line, line), "month", v)


def date_form(d: Draw) -> Sample:
    day, m, y = d.num(1, 28), d.num(0, 11), d.num(1950, 2035)
    iso = f"{y}-{m + 1:02d}-{day:02d}"
    return Sample(conversation(d, f"Write the date {day} {MONTHS[m]} {y} as year-month-day.", f"{MONTHS[m]} is month {m + 1}.", iso), "date_form", iso)


def date_later(d: Draw) -> Sample:
    m = d.num(0, 11)
    day, n = d.num(1, MONTH_DAYS[m]), d.num(1, 20)
    total = day + n
    if total <= MONTH_DAYS[m]:
        lines, v = f"{day} + {n} = {total}", f"{total} {MONTHS[m]}"
    else:
        v = f"{total - MONTH_DAYS[m]} {MONTHS[(m + 1) % 12]}"
        lines = f"{day} + {n} = {total}\n{MONTHS[m]} has {MONTH_DAYS[m]} days.\n{total} - {MONTH_DAYS[m]} = {total - MONTH_DAYS[m]}"
    return Sample(conversation(d, f"Which date is {n} days after {day} {MONTHS[m]}?", lines, f"It is {v}.", thinking=True), "date_later", v)


def opposite(d: Draw) -> Sample:
    x, y = d.one(list(OPPOSITES.items()))
    if d.chance(0.5):
        x, y = y, x
    return Sample(conversation(d, f"What is the opposite of {x}?", f"{cap(x)} and {y} are opposites.", f"The opposite of {x} is {y}."), "opposite", y)


def plural_of(d: Draw) -> Sample:
    t = d.thing()
    return Sample(conversation(d, f"What is the plural of {t}?", f"One {t}, two {plural(t)}.", f"The plural of {t} is {plural(t)}."), "plural_of", plural(t))


def odd_even(d: Draw) -> Sample:
    n = d.num(0, 999)
    v = "even" if n % 2 == 0 else "odd"
    return Sample(conversation(d, f"Is {n} odd or even?", f"The last digit is {n % 10}, so it is {v}.", f"{n} is {v}."), "odd_even", v)


def count_letter(d: Draw) -> Sample:
    w = d.one((d.one(COMMON), d.one(ANIMALS)))
    c = d.one(w)
    lines = ", ".join(x for x in w if x == c)
    question = f"How often does the letter {c} stand in {w}?"
    return Sample(conversation(d, question, lines, f"The letter {c} stands {w.count(c)} times in {w}.", thinking=True), "count_letter", f"{w.count(c)} times")


FAMILIES = [
    Family(f.__name__, f, f.__name__ in ("pick", "days_later", "upper", "plural_of", "count_letter"))
    for f in (copy, backwards, sort_numbers, sort_words, largest, count_items, pick, list_kind, spell, unspell, letters_of, first_letter,
              upper, next_day, days_later, month, date_form, date_later, opposite, plural_of, odd_even,
              count_letter)
]
