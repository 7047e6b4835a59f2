"""Short stories in simple English, put together from sentences that always fit."""

from __future__ import annotations

from chat import Chat, Message
from samples import Family, Sample, conversation, settled
from words import ANIMALS, COLOURS, PLACES, Draw, a, cap

SMALL = "little small young old kind shy brave clever quiet cheerful curious gentle".split()
FINDS = ("lamp", "key", "letter", "map", "boat", "bell", "drum", "ring", "kite", "ladder", "mirror", "coin", "lantern", "book",
         "button", "feather", "flute", "wagon", "clock", "chest")
WEATHER = ("The sun was warm and the sky was blue.", "It had rained all night, and the grass was still wet.",
           "Snow lay on the roofs, and the air was cold and clear.", "A soft wind blew from the hills.",
           "Grey clouds hung low over the valley.", "The first leaves were falling from the trees.",
           "The morning was still, and nobody else was awake.", "It was so hot that even the birds were silent.")
WISHES = ("wanted to see the sea", "wished for a friend", "wanted to learn to sing", "dreamed of a long journey",
          "hoped to find something new", "wanted to help somebody", "was tired of being alone", "wanted to bake a cake",
          "longed to see what lay behind the hill", "wanted to build a small house")
TROUBLES = (
    "But the door was locked, and nobody answered.", "But a dark cloud came, and soon the rain fell hard.",
    "But the bridge over the stream was broken.", "But the path was steep, and the night came quickly.",
    "But somebody had taken it away in the night.", "But it was far too heavy to carry alone.",
    "But the others only laughed and walked on.", "But the wind caught it and blew it into a tall tree.",
)
TRIES = ("{He} sat down on a stone and thought for a while.", "{He} did not give up so easily.", "{He} tried once, and then once more.",
         "{He} called out, but only the echo answered.", "{He} took a deep breath and counted to ten.",
         "At first {he} wanted to cry, but then {he} had an idea.", "{He} looked to the left and to the right.")
HELPS = (
    "Then {friend} came along the road. \"Can I help you?\" asked {friend}.",
    "\"Why are you so sad?\" asked {friend}, who had been watching.",
    "{Friend} heard the noise and came to look. \"Let us do it together,\" said {friend}.",
    "Just then {friend} looked out of the window. \"Wait for me!\" called {friend}.",
    "After a while {friend} passed by and stopped. \"Two are stronger than one,\" said {friend}.",
)
ENDS = (
    "From that day on they were the best of friends.", "And they walked home together, tired and happy.",
    "That night {he} slept well and dreamed of the next day.", "And whenever it rained, they remembered that day and laughed.",
    "\"Thank you,\" said {name}. \"I will never forget this.\"", "Since then the door has always been open for everyone.",
    "And the {find} still stands by the window, where everyone can see it.", "They shared some bread and watched the stars come out.",
)
LESSONS = ("A small friend can be a great help.", "Those who share have more.", "It is good to try once more.",
           "Nobody is too small to help.", "A kind word costs nothing.", "Patience opens many doors.")


def told(d: Draw, hero: tuple[str, str, str], place: str, find: str, friend: str) -> list[str]:
    """The sentences of one story. hero is (name, he, what)."""
    name, he, what = hero
    fill = {"name": name, "he": he, "He": cap(he), "friend": friend, "Friend": cap(friend), "find": find, "place": place}
    start = d.one((
        f"Once upon a time there was {a(what)} called {name}, who lived near the {place}.",
        f"Once there was {a(what)} named {name}. {cap(he)} lived in a house beside the {place}.",
        f"In a village by the {place} lived {a(what)} called {name}.",
        f"{name} was {a(what)} who lived close to the {place}.",
    ))
    wish = d.one((f"Every day {name} {d.one(WISHES)}.", f"More than anything, {name} {d.one(WISHES)}.", f"{name} {d.one(WISHES)}."))
    found = d.one((
        f"One morning {name} went to the {place} and found {a(find)} {d.one(('under a tree', 'behind a wall', 'in the grass', 'on the steps'))}.",
        f"One day, near the {place}, {he} saw {a(find)} lying {d.one(('on the ground', 'in the sand', 'beside the road', 'under a bush'))}.",
        f"One evening {he} was walking past the {place} when {he} noticed {a(d.one(COLOURS))} {find}.",
    ))
    thought = d.one((
        f"\"What a beautiful {find}!\" said {name}.", f"{cap(he)} had never seen such a {find} before.",
        f"\"I wonder who lost this {find},\" {he} thought.", f"{name} picked up the {find} and looked at it from all sides.",
    ))
    mended = d.one((
        f"Together they worked until the sun went down, and at last the {find} was safe.",
        f"{cap(friend)} held one end and {name} held the other, and so they carried the {find} home.",
        f"{cap(friend)} knew a way, and before long everything was well again.",
        f"They asked at every house, and in the end they found out whose {find} it was.",
        f"It took the whole day, but they did not stop until it was done.",
    ))
    parts = [start, d.one(WEATHER), wish, found, thought, d.one(TROUBLES), d.one(TRIES), d.one(HELPS), mended, d.one(ENDS)]
    if d.chance(0.3):
        parts.append(d.one(LESSONS))
    if d.chance(0.3):
        parts.pop(1)
    return [p.format(**fill) for p in parts]


def cast(d: Draw) -> tuple[tuple[str, str, str], str, str, str]:
    name, he, *_ = d.person()
    animal = d.one(ANIMALS)
    what = f"{d.one(SMALL)} {animal if d.chance(0.5) else ('girl' if he == 'she' else 'boy')}"
    friend = d.one((f"the {d.one(SMALL)} {d.one([x for x in ANIMALS if x != animal])}", d.names(3)[-1], "the old woman", "the baker", "the miller"))
    if friend == name:
        friend = "the miller"
    return (name, he, what), d.one(PLACES), d.one(FINDS), friend


def laid_out(d: Draw, parts: list[str]) -> str:
    if d.chance(0.5):
        return " ".join(parts)
    cut = d.num(3, 5)
    return " ".join(parts[:cut]) + "\n\n" + " ".join(parts[cut:])


def finished(d: Draw, question: str, plan: str, parts: list[str], family: str, wanted: str = "") -> Sample:
    """`wanted` is what was asked for and must come up in the story."""
    return Sample(conversation(d, question, plan, laid_out(d, parts)), family, wanted)


def about_hero(d: Draw) -> Sample:
    hero, place, find, friend = cast(d)
    subject = a(hero[2])
    question = d.one((f"Tell me a story about {subject}.", f"Write a short story about {subject}.", f"Please tell a story about {subject} called {hero[0]}.",
                      f"I would like a story about {subject}.", f"Can you tell me a short story about {subject}?"))
    return finished(d, question, f"A story about {subject}: {hero[0]} finds {a(find)}, and a friend helps.", told(d, hero, place, find, friend), "about_hero", hero[2])


def about_thing(d: Draw) -> Sample:
    hero, place, find, friend = cast(d)
    question = d.one((f"Tell me a story about {a(find)}.", f"Write a story with {a(find)} in it.", f"A short story about {a(find)}, please."))
    return finished(d, question, f"{hero[0]} finds {a(find)} near the {place}.", told(d, hero, place, find, friend), "about_thing", find)


def hero_and_thing(d: Draw) -> Sample:
    hero, place, find, friend = cast(d)
    question = d.one((f"Write a short story about {a(hero[2])} and {a(find)}.", f"Tell a story about {hero[0]}, {a(hero[2])}, and {a(find)}.",
                      f"Tell me about {a(hero[2])} who finds {a(find)}."))
    return finished(d, question, f"{hero[0]} is {a(hero[2])} and finds {a(find)}.", told(d, hero, place, find, friend), "hero_and_thing", find)


def anything(d: Draw) -> Sample:
    hero, place, find, friend = cast(d)
    question = d.one(("Tell me a story.", "Tell me a short story, please.", "Write a story for children.", "Can you tell me a bedtime story?"))
    return finished(d, question, f"A story about {a(hero[2])} called {hero[0]} and {a(find)}.", told(d, hero, place, find, friend), "anything")


def carry_on(d: Draw) -> Sample:
    hero, place, find, friend = cast(d)
    parts = told(d, hero, place, find, friend)
    cut = d.num(2, 5)
    question = d.one(("Go on with this story: ", "Finish this story: ", "How does this story end? ")) + " ".join(parts[:cut])
    return Sample(conversation(d, question, f"The story is about {hero[0]}. A friend helps.", " ".join(parts[cut:])), "carry_on")


def at_place(d: Draw) -> Sample:
    hero, place, find, friend = cast(d)
    question = f"Tell me something that happens at the {place}."
    return finished(d, question, f"{hero[0]} goes to the {place}.", told(d, hero, place, find, friend), "at_place", place)


def lost_thing(d: Draw) -> Sample:
    hero, place, find, friend = cast(d)
    question = f"How did {hero[0]} come by the {find}? Make it a story."
    return finished(d, question, f"{hero[0]} finds {a(find)}.", told(d, hero, place, find, friend), "lost_thing", find)


def plain(d: Draw) -> str:
    """A story as text alone, for language modelling."""
    return laid_out(d, told(d, *cast(d)))


def story_questions(d: Draw) -> Sample:
    """A story, and then questions about it in the same conversation."""
    hero, place, find, friend = cast(d)
    name, he, what = hero
    asked = [("Who is the story about?", f"It is about {name}, {a(what)}."), (f"What did {name} find?", f"{name} found {a(find)}."),
             (f"Where did {name} live?", f"{name} lived near the {place}."), (f"Who helped {name}?", f"{cap(friend)} helped {name}.")]
    messages = [Message("user", "Tell me a short story."), Message("assistant", laid_out(d, told(d, hero, place, find, friend)))]
    for question, answer in d.some(asked, d.num(1, 3)):
        messages += [Message("user", question), Message("assistant", answer, answer)]
    chat: Chat = settled(d, messages)
    return Sample(chat, "story_questions")


FAMILIES = [
    Family("about_hero", about_hero), Family("about_thing", about_thing), Family("hero_and_thing", hero_and_thing),
    Family("anything", anything), Family("carry_on", carry_on), Family("story_questions", story_questions),
    Family("at_place", at_place, held_out=True), Family("lost_thing", lost_thing, held_out=True),
]
