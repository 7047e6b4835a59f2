"""JSON on request: objects from given values, from sentences, lists, nested, and single fields read from JSON."""

from __future__ import annotations

import json

from samples import Family, Sample, conversation
from words import ANIMALS, COLOURS, COMMON, Draw, joined, many

JOBS = "baker teacher doctor farmer painter sailor pilot singer".split()


def person(d: Draw) -> dict:
    """A few facts of a person, in drawn order."""
    values = {"name": d.person()[0], "age": d.num(1, 99), "city": d.city(), "job": d.one(JOBS), "colour": d.one(COLOURS), "pet": d.one(ANIMALS),
              "married": d.chance(0.5), "children": d.num(0, 6)}
    keys = d.some([k for k in values if k != "name"], d.num(1, 4))
    return {"name": values["name"], **{k: values[k] for k in keys}}


def spoken(value) -> str:
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def thought(value) -> str:
    return f"A JSON object with {joined(list(value))}." if isinstance(value, dict) else f"A JSON list of {len(value)}."


def finished(d: Draw, question: str, value, name: str) -> Sample:
    text = json.dumps(value, ensure_ascii=False)
    return Sample(conversation(d, question, thought(value), text), name, text)


def from_pairs(d: Draw) -> Sample:
    p = person(d)
    pairs = ", ".join(f"{k} {spoken(v)}" for k, v in p.items())
    q = d.one(("Write a JSON object with {p}.", "Give me JSON: {p}.", "Make a JSON object: {p}", "Return as JSON: {p}", "Answer with JSON only: {p}"))
    return finished(d, q.format(p=pairs), p, "from_pairs")


def from_keys(d: Draw) -> Sample:
    values = {k: d.one((d.num(0, 999), d.one(COMMON), d.code(digits=False), d.chance(0.5))) for k in d.some(COMMON, d.num(1, 5))}
    pairs = ", ".join(f"{k} = {spoken(v)}" for k, v in values.items())
    q = d.one(("Turn this into JSON: {p}", "Write as a JSON object: {p}", "JSON, please: {p}"))
    return finished(d, q.format(p=pairs), values, "from_keys")


def from_sentence(d: Draw) -> Sample:
    n, age, city, job = d.person()[0], d.num(5, 90), d.city(), d.one(JOBS)
    full = {"name": n, "age": age, "city": city, "job": job}
    keys = ["name", *d.some(["age", "city", "job"], d.num(1, 3))]
    text = d.one((f"{n} is {age} years old, lives in {city} and works as a {job}.", f"{n}, {age}, is a {job} from {city}.",
                  f"The {job} {n} lives in {city} and is {age} years old."))
    q = f"{text} {d.one(('Write a JSON object with the keys', 'Give me JSON with', 'Return a JSON object with'))} {joined(keys)}."
    return finished(d, q, {k: full[k] for k in keys}, "from_sentence")


def list_of(d: Draw) -> Sample:
    items = d.some(d.one((COMMON, ANIMALS, COLOURS, range(1000))), d.num(2, 6))
    q = d.one(("Write these as a JSON list: {p}", "Make a JSON array of {p}.", "As a JSON list, please: {p}"))
    return finished(d, q.format(p=", ".join(map(str, items))), items, "list_of")


def list_of_objects(d: Draw) -> Sample:
    people = [{"name": n, "age": d.num(1, 99)} for n in d.names(d.num(2, 4))]
    q = d.one(("Write a JSON list of objects with name and age: {p}.", "A JSON list of people with name and age, please: {p}."))
    return finished(d, q.format(p=", ".join(f"{p['name']} ({p['age']})" for p in people)), people, "list_of_objects")


def nested(d: Draw) -> Sample:
    n = d.person()[0]
    pet = {"kind": d.one(ANIMALS), "name": d.person()[0]}
    value = {"name": n, "age": d.num(5, 90), "pet": pet}
    q = f"Write JSON for {n}, {value['age']} years old, with a pet: {d.one(('the', 'a'))} {pet['kind']} called {pet['name']}."
    return finished(d, q, value, "nested")


def with_list(d: Draw) -> Sample:
    n, key = d.person()[0], d.one(("pets", "friends", "colours", "things"))
    items = {"pets": lambda k: d.some(ANIMALS, k), "friends": d.names, "colours": lambda k: d.some(COLOURS, k), "things": lambda k: d.some(COMMON, k)}[key](d.num(1, 4))
    q = f"{d.one(('Write JSON for', 'Give me a JSON object for', 'As JSON, please:'))} {n} with the {key} {joined(items)}."
    return finished(d, q, {"name": n, key: items}, "with_list")


def two_parts(d: Draw) -> Sample:
    x, y = d.names(2)
    value = {"first": {"name": x, "age": d.num(1, 99)}, "second": {"name": y, "age": d.num(1, 99)}}
    q = f"Write a JSON object with first and second: {x} is {value['first']['age']} and {y} is {value['second']['age']} years old."
    return finished(d, q, value, "two_parts")


def shopping(d: Draw) -> Sample:
    items = {d.thing(): d.num(1, 12) for _ in range(d.num(2, 4))}
    q = f"{d.one(('My shopping list as JSON', 'Write this shopping list as a JSON object'))}: {joined([many(n, t) for t, n in items.items()])}."
    return finished(d, q, items, "shopping")


def field_of(d: Draw) -> Sample:
    p = person(d)
    k = d.one(list(p))
    q = f"{json.dumps(p, ensure_ascii=False)}\nWhat is the value of {k}?"
    return Sample(conversation(d, q, f"{k}: {spoken(p[k])}", spoken(p[k])), "field_of", spoken(p[k]))


FAMILIES = [
    Family("from_pairs", from_pairs), Family("from_keys", from_keys), Family("from_sentence", from_sentence), Family("list_of", list_of),
    Family("nested", nested), Family("with_list", with_list), Family("two_parts", two_parts), Family("shopping", shopping), Family("field_of", field_of),
    Family("list_of_objects", list_of_objects, held_out=True), Family("from_table", lambda d: from_table(d), held_out=True),
    Family("renamed", lambda d: renamed(d), held_out=True),
]


def from_table(d: Draw) -> Sample:
    p = person(d)
    table = "\n".join(f"{k}: {spoken(v)}" for k, v in p.items())
    return finished(d, f"{table}\nWrite this as JSON.", p, "from_table")


def renamed(d: Draw) -> Sample:
    """JSON in, JSON out, one key with another name."""
    p = person(d)
    old, new = d.one(list(p)), d.one([w for w in COMMON if w not in p])
    value = {new if k == old else k: v for k, v in p.items()}
    return finished(d, f"{json.dumps(p, ensure_ascii=False)}\nRename the key {old} to {new}.", value, "renamed")
