"""Tool calls to toy tools, and answers from their results.

Every tool has its description, several ways to ask for it, a made-up result and the answer from it.
Held-out tools are never offered in training: the model must read their description.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Callable

import arithmetic
import talk
from chat import Call, Message
from samples import Family, Sample, settled
from words import ANIMALS, COLOURS, COMMON, DAYS, PLACES, Draw, a, cap, plural

FOODS = "soup bread rice fish pancakes noodles salad pizza porridge pudding".split()
LANGUAGES = "French German Spanish Italian Dutch Polish Greek Danish".split()
ARTISTS = "Mozart Bach Haydn Chopin Verdi Vivaldi Schubert Brahms".split()
CURRENCIES = "dollars euros pounds francs crowns yen".split()
SKIES = "sunny cloudy rainy windy snowy foggy".split()


@dataclass
class Request:
    question: str
    arguments: dict
    result: dict
    reply: str


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    parameters: dict[str, tuple[str, str]]  # name to (type, description)
    ask: Callable[[Draw], Request]
    optional: tuple[str, ...] = ()

    def schema(self, d: Draw) -> dict:
        properties = {k: {"type": t, "description": text} for k, (t, text) in self.parameters.items()}
        if d.chance(0.3):
            properties = {k: {"type": v["type"]} for k, v in properties.items()}
        required = [k for k in self.parameters if k not in self.optional]
        body = {"type": "object", "properties": properties}
        if required or d.chance(0.5):
            body["required"] = required
        return {"name": self.name, "description": self.description, "parameters": body}


def clock(d: Draw) -> str:
    return f"{d.num(6, 22)}:{d.one(('00', '15', '30', '45'))}"


def weather(d: Draw) -> Request:
    c, sky, t = d.city(), d.one(SKIES), d.num(-10, 35)
    q = d.one((f"What is the weather in {c}?", f"How is the weather in {c} today?", f"Is it raining in {c}?", f"Tell me the weather in {c}.",
               f"Do I need an umbrella in {c}?"))
    return Request(q, {"city": c}, {"sky": sky, "temperature": t}, f"In {c} it is {sky} with {t} degrees.")


def timer(d: Draw) -> Request:
    m = d.num(1, 90)
    q = d.one((f"Set a timer for {m} minutes.", f"Start a timer of {m} minutes.", f"Wake me in {m} minutes.", f"Please set a {m} minute timer."))
    return Request(q, {"minutes": m}, {"status": "started"}, f"The timer is set for {m} minutes.")


def event(d: Draw) -> Request:
    title, day, time = d.one(("dinner", "meeting", "swimming", "piano lesson", "dentist", "party", "lunch", "walk")), d.one(DAYS), clock(d)
    q = d.one((f"Add {title} on {day} at {time} to my calendar.", f"Put {title} into my calendar for {day} at {time}.", f"I have {title} on {day} at {time}. Please note it."))
    return Request(q, {"title": title, "day": day, "time": time}, {"status": "added"}, f"I have added {title} on {day} at {time}.")


def message(d: Draw) -> Request:
    n = d.person()[0]
    text = d.one(("I am late", "see you soon", "happy birthday", "dinner is ready", "call me back", "I miss you", "the train is gone", "thank you for the gift"))
    q = d.one((f"Tell {n}: {text}", f"Send {n} the message: {text}", f"Write to {n}: {text}"))
    return Request(q, {"to": n, "text": text}, {"status": "sent"}, f"The message to {n} has been sent.")


def convert(d: Draw) -> Request:
    a, (x, y) = d.num(1, 500), d.some(CURRENCIES, 2)
    v = d.num(1, 900)
    q = d.one((f"How much are {a} {x} in {y}?", f"Convert {a} {x} to {y}.", f"Change {a} {x} into {y}."))
    return Request(q, {"amount": a, "from": x, "to": y}, {"amount": v}, f"{a} {x} are {v} {y}.")


def calculator(d: Draw) -> Request:
    a, b, s = d.num(100, 9999), d.num(10, 999), d.one("+-*")
    v = {"+": a + b, "-": a - b, "*": a * b}[s]
    word = {"+": "plus", "-": "minus", "*": "times"}[s]
    q = d.one((f"What is {a} {s} {b}?", f"Calculate {a} {s} {b}.", f"How much is {a} {word} {b}?"))
    return Request(q, {"expression": f"{a} {s} {b}"}, {"result": v}, f"{a} {s} {b} = {v}")


def local_time(d: Draw) -> Request:
    c, t = d.city(), clock(d)
    q = d.one((f"What time is it in {c}?", f"Tell me the time in {c}.", f"How late is it in {c}?"))
    return Request(q, {"city": c}, {"time": t}, f"In {c} it is {t}.")


def recipe(d: Draw) -> Request:
    f, m = d.one(FOODS), d.num(10, 90)
    q = d.one((f"Find a recipe for {f}.", f"How do I cook {f}?", f"I want to make {f}. Is there a recipe?"))
    return Request(q, {"dish": f}, {"title": f"simple {f}", "minutes": m}, f"I found a recipe for simple {f}. It takes {m} minutes.")


def music(d: Draw) -> Request:
    x = d.one(ARTISTS)
    q = d.one((f"Play something by {x}.", f"Play music by {x}.", f"I want to hear {x}."))
    return Request(q, {"artist": x}, {"status": "playing"}, f"I am playing music by {x}.")


def translate(d: Draw) -> Request:
    w, lang, v = d.one(COMMON), d.one(LANGUAGES), d.letters(d.num(4, 8))
    q = d.one((f"What is {w} in {lang}?", f"Translate {w} into {lang}.", f"How do you say {w} in {lang}?"))
    return Request(q, {"text": w, "language": lang}, {"translation": v}, f"The {lang} word for {w} is {v}.")


def list_files(d: Draw) -> Request:
    names = [f"{w}.txt" for w in d.some(COMMON, d.num(1, 4))]
    q = d.one(("Which files do I have?", "List my files.", "Show me my files."))
    return Request(q, {}, {"files": names}, "You have these files: " + ", ".join(names) + ".")


def item_price(d: Draw) -> Request:
    t, p = d.thing(), d.num(1, 200)
    q = d.one((f"What does a new {t} cost?", f"How much are {plural(t)} in the shop?", f"Look up the price of the {t}."))
    return Request(q, {"item": t}, {"price": p, "currency": "euros"}, f"The {t} costs {p} euros.")


def lights(d: Draw) -> Request:
    room, on = d.one(("kitchen", "bedroom", "hall", "garden", "cellar", "bathroom")), d.chance(0.5)
    q = d.one((f"Turn the lights in the {room} {'on' if on else 'off'}.", f"Switch {'on' if on else 'off'} the {room} light.", f"Lights {'on' if on else 'off'} in the {room}, please."))
    return Request(q, {"room": room, "on": on}, {"status": "done"}, f"The lights in the {room} are {'on' if on else 'off'}.")


def search_notes(d: Draw) -> Request:
    w = d.one(COMMON)
    found = " ".join(d.some(COMMON, 4))
    q = d.one((f"Search my notes for {w}.", f"What did I write about the {w}?", f"Find my note about {w}."))
    return Request(q, {"query": w}, {"note": found}, f"Your note says: {found}")


def table(d: Draw) -> Request:
    place, n, t = d.one(("Mario", "Golden Lion", "Old Mill", "Blue Door", "Sea View")), d.num(2, 9), clock(d)
    q = d.one((f"Book a table for {n} at {place} at {t}.", f"Reserve a table at {place} for {n} people at {t}."))
    return Request(q, {"restaurant": place, "people": n, "time": t}, {"status": "booked"}, f"The table for {n} at {place} is booked for {t}.")


def train(d: Draw) -> Request:
    x, y = d.city(), d.city()
    t = clock(d)
    q = d.one((f"When does the next train from {x} to {y} leave?", f"Find a train from {x} to {y}."))
    return Request(q, {"from": x, "to": y}, {"departure": t}, f"The next train from {x} to {y} leaves at {t}.")


def define(d: Draw) -> Request:
    w = d.one(COMMON)
    v = " ".join(d.some(COMMON, 3))
    q = d.one((f"What does the word {w} mean?", f"Look up the meaning of {w}."))
    return Request(q, {"word": w}, {"meaning": v}, f"The word {w} means: {v}")


def room(d: Draw) -> Request:
    c, n = d.city(), d.num(1, 9)
    q = d.one((f"Find me a hotel in {c} for {n} nights.", f"I need a hotel in {c} for {n} nights."))
    price = d.num(40, 300)
    return Request(q, {"city": c, "nights": n}, {"price": price}, f"I found a hotel in {c}. It costs {price} euros a night.")


TOOLS = [
    Tool("get_weather", "Get the weather in a city", {"city": ("string", "name of the city")}, weather),
    Tool("set_timer", "Start a timer", {"minutes": ("integer", "how long")}, timer),
    Tool("add_event", "Add an event to the calendar", {"title": ("string", "what"), "day": ("string", "day of the week"), "time": ("string", "hours and minutes")}, event),
    Tool("send_message", "Send a message to a person", {"to": ("string", "who gets it"), "text": ("string", "the message")}, message),
    Tool("convert_currency", "Convert money", {"amount": ("number", "how much"), "from": ("string", "currency"), "to": ("string", "currency")}, convert),
    Tool("calculator", "Work out a sum", {"expression": ("string", "the sum")}, calculator),
    Tool("get_time", "Get the local time of a city", {"city": ("string", "name of the city")}, local_time),
    Tool("find_recipe", "Find a recipe", {"dish": ("string", "what to cook")}, recipe),
    Tool("play_music", "Play music", {"artist": ("string", "whose music")}, music),
    Tool("translate", "Translate a word", {"text": ("string", "the word"), "language": ("string", "into which language")}, translate),
    Tool("list_files", "List the files of the user", {}, list_files),
    Tool("get_price", "Get the price of an item in the shop", {"item": ("string", "name of the item")}, item_price),
    Tool("set_lights", "Turn the lights of a room on or off", {"room": ("string", "which room"), "on": ("boolean", "true for on")}, lights),
    Tool("search_notes", "Search the notes of the user", {"query": ("string", "what to look for")}, search_notes),
]
HELD_OUT_TOOLS = [
    Tool("book_table", "Book a table in a restaurant", {"restaurant": ("string", "name"), "people": ("integer", "how many"), "time": ("string", "hours and minutes")}, table),
    Tool("find_train", "Find the next train", {"from": ("string", "city"), "to": ("string", "city")}, train),
    Tool("find_hotel", "Find a hotel", {"city": ("string", "which city"), "nights": ("integer", "how many nights")}, room),
    Tool("define_word", "Look up the meaning of a word", {"word": ("string", "the word")}, define),
]
# How a made-up argument is said, what it holds, and its type.
SAID = {
    "time": ("at {v}", "string", clock), "day": ("on {v}", "string", lambda d: d.one(DAYS)), "people": ("for {v} people", "integer", lambda d: d.num(2, 20)),
    "city": ("in {v}", "string", Draw.city), "to": ("to {v}", "string", lambda d: d.one((d.city(), d.person()[0]))), "from": ("from {v}", "string", Draw.city),
    "name": ("called {v}", "string", lambda d: d.person()[0]), "colour": ("in {v}", "string", lambda d: d.one(COLOURS)), "number": ("number {v}", "integer", lambda d: d.num(1, 999)),
    "days": ("for {v} days", "integer", lambda d: d.num(2, 30)), "place": ("at the {v}", "string", lambda d: d.one(PLACES)), "with": ("with {v}", "string", lambda d: d.person()[0]),
}
VERBS = "rent buy sell find clean paint reserve hire plan start stop cancel repair watch check count show list open close order".split()


def spoken_tool(d: Draw) -> Tool:
    """A made-up tool that is asked for in plain words: `Rent a boat in Oslo for 3 days.`"""
    verb, noun = d.one(VERBS), d.one((d.one(COMMON), d.thing(), d.one(ANIMALS)))
    keys = d.some(SAID, d.num(1, 3))
    values = {k: SAID[k][2](d) for k in keys}
    words = " ".join(SAID[k][0].format(v=v) for k, v in values.items())
    what = d.one((f"the {noun}", a(noun), f"my {noun}"))

    def ask(_: Draw) -> Request:
        q = d.one((f"{cap(verb)} {what} {words}.", f"Please {verb} {what} {words}.", f"I want to {verb} {what} {words}.", f"Can you {verb} {what} {words}?"))
        return Request(q, values, {"status": "done"}, d.one((f"Done: {verb} {what} {words}.", f"I did it: {verb} {what} {words}.")))

    described = d.one((f"{cap(verb)} {a(noun)}", f"{cap(verb)} the {noun}", f"Helps to {verb} {plural(noun)}"))
    return Tool(f"{verb}_{noun}", described, {k: (SAID[k][1], f"the {k}") for k in keys}, ask)


MADE_UP = ("open", "close", "read", "count", "check", "order", "rate", "print", "move", "lock")


def made_up_tool(d: Draw) -> Tool:
    """A tool with a drawn name and drawn arguments, so that names must be read, not known."""
    verb, noun = d.one(MADE_UP), d.one(COMMON)
    keys = d.some(COMMON, d.num(1, 3))
    values = {k: d.one((d.one(COMMON), d.num(1, 99), d.code(digits=False), d.person()[0])) for k in keys}
    kinds = {k: ("integer" if isinstance(v, int) else "string", f"the {k}") for k, v in values.items()}
    given = " and ".join(f"{k} {v}" for k, v in values.items())

    def ask(_: Draw) -> Request:
        q = d.one((f"Please {verb} the {noun} with {given}.", f"{cap(verb)} the {noun}: {given}.", f"{cap(verb)} my {noun} with {given}."))
        return Request(q, values, {"status": "done"}, f"I did it: {verb} the {noun} with {given}.")

    return Tool(f"{verb}_{noun}", f"{cap(verb)} the {noun}", kinds, ask)



def offered(d: Draw, used: list[Tool], pool: list[Tool]) -> list[dict]:
    names = {t.name for t in used}
    others = d.some([t for t in pool if t.name not in names], d.num(0, 3))
    if not d.held_out and d.chance(0.3):
        others.append(spoken_tool(d))
    tools = used + [t for t in others if t.name not in names]
    d.rng.shuffle(tools)
    return [t.schema(d) for t in tools]


def tool_thought(tool: Tool) -> str:
    return f"I call {tool.name}."


def result_text(result: dict) -> str:
    return json.dumps(result, ensure_ascii=False)


def one_call(tools: list[Tool], name: str, finish: bool) -> Callable[[Draw], Sample]:
    def make(d: Draw) -> Sample:
        tool = d.one(tools)
        if tools is TOOLS and not d.held_out and d.chance(0.5):
            tool = d.one((made_up_tool, spoken_tool))(d)
        r = tool.ask(d)
        call = Call(tool.name, r.arguments)
        messages = [Message("user", r.question), Message("assistant", "", tool_thought(tool), [call])]
        cut = -1
        if finish:
            messages += [Message("tool", result_text(r.result)), Message("assistant", r.reply, "I have the result.")]
            cut = -3
        chat = settled(d, messages, offered(d, [tool], TOOLS))
        return Sample(chat, name, r.reply, cut, call)

    return make


def from_result(tools: list[Tool], name: str) -> Callable[[Draw], Sample]:
    """Evaluated on the answer that follows the result."""

    def make(d: Draw) -> Sample:
        sample = one_call(tools, name, True)(d)
        sample.cut, sample.call = -1, None
        return sample

    return make


def two_calls(d: Draw) -> Sample:
    """Two calls in one turn, their results, one answer."""
    tool = d.one([t for t in TOOLS if t.name in ("get_weather", "get_time", "get_price", "find_recipe")])
    r = tool.ask(d)
    s = next(x for x in iter(lambda: tool.ask(d), None) if x.arguments != r.arguments)
    v, w = next(iter(r.arguments.values())), next(iter(s.arguments.values()))
    asked = {"get_weather": f"What is the weather in {v} and in {w}?", "get_time": f"What time is it in {v} and in {w}?",
             "get_price": f"What do the {v} and the {w} cost?", "find_recipe": f"Find recipes for {v} and for {w}."}[tool.name]
    messages = [
        Message("user", asked), Message("assistant", "", f"I call {tool.name} twice.", [Call(tool.name, r.arguments), Call(tool.name, s.arguments)]),
        Message("tool", result_text(r.result)), Message("tool", result_text(s.result)),
        Message("assistant", f"{r.reply} {s.reply}", "I have the results."),
    ]
    return Sample(settled(d, messages, offered(d, [tool], TOOLS)), "two_calls", f"{r.reply} {s.reply}")


def turns(d: Draw) -> Sample:
    """Several requests one after the other in a conversation with tools."""
    used = d.some(TOOLS, d.num(2, 3))
    messages: list[Message] = []
    for tool in used:
        r = tool.ask(d)
        messages += [Message("user", r.question), Message("assistant", "", tool_thought(tool), [Call(tool.name, r.arguments)]),
                     Message("tool", result_text(r.result)), Message("assistant", r.reply, "I have the result.")]
    return Sample(settled(d, messages, offered(d, used, TOOLS)), "turns")


def no_tool(d: Draw) -> Sample:
    """Tools are offered but the question needs none."""
    pool = [f for f in (*talk.FAMILIES[:2], *arithmetic.FAMILIES[2:4])]
    sample = d.one(pool).make(d)
    sample.chat.tools = offered(d, [], [t for t in TOOLS if t.name != "calculator"]) or [TOOLS[0].schema(d)]
    return Sample(sample.chat, "no_tool", sample.answer)


FAMILIES = [
    Family("call", one_call(TOOLS, "call", True)), Family("from_result", from_result(TOOLS, "from_result")), Family("two_calls", two_calls),
    Family("turns", turns), Family("no_tool", no_tool),
    Family("new_tool", one_call(HELD_OUT_TOOLS, "new_tool", True), held_out=True),
    Family("new_result", from_result(HELD_OUT_TOOLS, "new_result"), held_out=True),
]
