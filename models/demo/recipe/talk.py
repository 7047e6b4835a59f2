"""Greetings, thanks, questions about the model itself, and conversations of several turns."""

from __future__ import annotations

import arithmetic
import tasks
from chat import Message
from samples import Family, Sample, conversation, settled
from words import ANIMALS, Draw

ABOUT_SELF = (
    (("What are you?", "Who are you?", "Tell me about yourself.", "Introduce yourself.", "What kind of model are you?"),
     "I am the demo model of Bascule, a small language model with about 19 million parameters. I can tell short stories, "
     "solve simple word problems and call tools, but I know little and I make mistakes."),
    (("Are you a human?", "Are you a person?", "Am I talking to a human?"),
     "No. I am a small language model, the demo model of Bascule."),
    (("Who made you?", "Who trained you?", "Where do you come from?"),
     "The Bascule project trained me, on old books and on made-up examples."),
    (("What can you do?", "How can you help me?", "What are you good at?"),
     "I can solve simple word problems, answer questions about a text, find facts in a long text, sort and copy lists, "
     "call tools, write JSON and tell short stories."),
    (("How big are you?", "How many parameters do you have?"), "I have about 19 million parameters. That is very small for a language model."),
    (("Do you make mistakes?", "Can I trust you?", "Are you always right?"),
     "I make many mistakes. I am a very small model, so please check what I say."),
    (("Are you GLM-5.2?", "Are you ChatGPT?", "Are you GPT-4?", "Are you Claude?"),
     "No. I am the demo model of Bascule. I only have the same kind of layers as GLM-5.2."),
    (("What do you know?", "Do you know everything?"), "I know very little: simple English, small numbers, and what you tell me."),
)
SMALL_TALK = (
    (("Hello!", "Hi!", "Hello.", "Good morning!", "Hey there!"), ("Hello! How can I help you?", "Hello! What can I do for you?")),
    (("Thank you!", "Thanks.", "Thanks a lot!"), ("You are welcome!", "You are welcome. I am glad to help.")),
    (("How are you?", "How do you do?"), ("I am a small language model, so I have no feelings, but I am ready to help.",)),
    (("Goodbye!", "Bye!", "See you later."), ("Goodbye! Have a nice day.", "Goodbye!")),
    (("Good night.",), ("Good night! Sleep well.",)),
    (("I am bored.",), ("Shall I tell you a short story?",)),
    (("Can you help me?", "I need help."), ("Yes, of course. What do you need?",)),
)
UNKNOWN = (
    "What is the capital of {c}?", "Who won the world cup?", "What is the weather today?", "Explain quantum physics.",
    "What is the meaning of life?", "What time is it?", "Who is the president?", "What happened yesterday?",
    "Can you write a program in Python?", "How does a car engine work?", "What is the stock price of {c}?",
)
COUNTRIES = "France Spain Italy Norway Egypt Japan Canada Brazil Kenya India".split()


def self_question(d: Draw) -> Sample:
    asked, reply = d.one(ABOUT_SELF)
    return Sample(conversation(d, d.one(asked), "The question is about me.", reply), "self_question", reply)


def small_talk(d: Draw) -> Sample:
    asked, replies = d.one(SMALL_TALK)
    return Sample(conversation(d, d.one(asked), "A friendly word.", d.one(replies)), "small_talk")


def unknown(d: Draw) -> Sample:
    question = d.one(UNKNOWN).format(c=d.one(COUNTRIES))
    reply = d.one(("I do not know that. I am a very small model.", "I am sorry, I do not know. I am only a small model."))
    return Sample(conversation(d, question, "I do not know this.", reply), "unknown")


def my_name(d: Draw) -> Sample:
    """The user says a name early and asks for it later."""
    name = d.person()[0]
    messages = [Message("user", d.one((f"Hello, my name is {name}.", f"Hi! I am {name}.", f"My name is {name}."))),
                Message("assistant", d.one((f"Hello {name}! How can I help you?", f"Nice to meet you, {name}.")), f"The name is {name}.")]
    for _ in range(d.num(0, 2)):
        asked, replies = d.one(SMALL_TALK)
        messages += [Message("user", d.one(asked)), Message("assistant", d.one(replies), "A friendly word.")]
    messages += [Message("user", d.one(("What is my name?", "Do you remember my name?"))), Message("assistant", f"Your name is {name}.", f"The user said: {name}.")]
    return Sample(settled(d, messages), "my_name", name)


def told_before(d: Draw) -> Sample:
    """Another fact than the name, said early and asked for later."""
    city, thing = d.city(), d.one(ANIMALS)
    said, asked, answer = d.one(((f"I live in {city}.", "Where do I live?", city), (f"My favourite animal is the {thing}.", "What is my favourite animal?", thing)))
    messages = [Message("user", said), Message("assistant", "Nice to meet you.", "A friendly word."), Message("user", asked),
                Message("assistant", f"You said: {answer}.", f"The user said: {answer}.")]
    return Sample(settled(d, messages), "told_before", answer)


def name_of_friend(d: Draw) -> Sample:
    """A name that is not the user's own."""
    name = d.person()[0]
    messages = [Message("user", f"My friend is called {name}."), Message("assistant", "That is a nice name.", "A friendly word."),
                Message("user", "What is my friend called?"), Message("assistant", f"Your friend is called {name}.", f"The user said: {name}.")]
    return Sample(settled(d, messages), "name_of_friend", name)


def joined_turns(d: Draw) -> Sample:
    """Two or three single questions from other files as one conversation."""
    turns = []
    for _ in range(d.num(2, 3)):
        pool = d.one((arithmetic.FAMILIES, tasks.FAMILIES))
        sample = d.one([f for f in pool if not f.held_out]).make(Draw(d.num(0, 10**9)))
        turns.append([m for m in sample.chat.messages if m.role != "system"])
    thinking = all(m.reasoning is not None for turn in turns for m in turn if m.role == "assistant")
    return Sample(settled(d, [m for turn in turns for m in turn], thinking=thinking), "joined_turns")


FAMILIES = [
    Family("self_question", self_question), Family("small_talk", small_talk), Family("my_name", my_name),
    Family("joined_turns", joined_turns), Family("unknown", unknown),
    Family("told_before", told_before, held_out=True), Family("name_of_friend", name_of_friend, held_out=True),
]
