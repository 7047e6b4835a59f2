"""Word lists and small helpers of the generators. Names are split: some are for evaluation only."""

from __future__ import annotations

import random

GIRLS = (
    "Anna Mary Lucy Emma Sara Lily Nora Ella Rosa Jane Kate Mia Zoe Alice Clara Grace Helen Ida Julia Maya Ruth Eva Nina Olga "
    "Amy Beth Carla Dora Edith Fiona Gina Hazel Irene Joan Karen Laura Molly Nancy Olivia Paula Rita Sofia Tina Vera Wendy "
    "Yara Ada Bella Cora Daisy Elsa Freya Greta Holly Iris Jenny Kira Leah Maria Nell Pia Rosie Sally Tess Una Violet "
    "Agnes Alma Becky Betty Cecilia Chloe Diana Doris Eliza Erica Esther Flora Georgia Hannah Heidi Hilda Isabel Jessica Judy Kathy "
    "Lena Linda Lucia Mandy Margaret Martha Miriam Mona Naomi Nicole Pamela Peggy Rachel Rebecca Ruby Sabrina Sandra Sheila Sylvia Thea"
).split()
BOYS = (
    "Tom Ben Sam Max Jack Leo Paul Adam Noah Luke Mark John Peter Henry Oscar Hugo Felix Simon David Jacob Daniel Eric Frank "
    "George Harry Ian James Kevin Liam Martin Nick Owen Philip Robert Steve Tim Victor Walter Alan Bill Carl Dan Ed Fred Greg "
    "Hans Ivan Joe Karl Lars Mike Ned Otto Pete Ray Sven Ted Will Alex Bruno Colin Dean Evan Finn Gus "
    "Albert Andrew Anton Axel Barry Bernard Caleb Charles Chris Cyril Dennis Derek Dylan Edgar Elias Emil Ernest Floyd Gary Gilbert "
    "Harold Herman Howard Hubert Igor Isaac Jasper Jeff Jerry Jonathan Keith Kurt Lewis Lorenz Louis Marco Max Nathan Neil Oliver"
).split()
ONSETS = "b br c ch d dr f fl g gr h j k kl l m n p pr qu r s sh sk st t th tr v w y z".split()
VOWELS = "a e i o u a e i o ai ea ee ia ie oa ou".split()
CODAS = "b d g k l ll m n nd nn r rd rn s ss t tt x z".split()
HELD_OUT_GIRLS = "Mabel Tilda Ronja Abby Selma Wilma Petra Lotte".split()
HELD_OUT_BOYS = "Milo Arthur Jonas Ralph Egon Theo Boris Quinn".split()

THINGS = (
    "apple pear plum book pencil ball marble coin stamp card sticker shell stone button cookie cake egg flower rose toy car "
    "balloon ribbon nut orange lemon banana carrot potato onion cup plate spoon box bag hat sock glove candle key bottle "
    "brush crayon badge bead peach grape muffin donut sandwich kite doll puzzle"
).split()
HELD_OUT_THINGS = "acorn walnut ticket lamp scarf melon".split()
ANIMALS = "cat dog hen duck goat cow horse sheep pig rabbit mouse goose fox owl bear frog".split()
COLOURS = "red blue green yellow white black brown pink grey purple orange golden".split()
CITIES = (
    "Paris London Rome Berlin Madrid Oslo Vienna Dublin Lisbon Athens Cairo Tokyo Boston Chicago Prague Warsaw Geneva Milan "
    "Naples Hamburg Munich Zurich Bergen Lyon Porto"
).split()
HELD_OUT_CITIES = "Turin Leeds Malmo Basel Bristol".split()
PLACES = "garden kitchen school park barn market harbour library station forest bakery tower cellar attic mill".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty"
).split()
IRREGULAR = {"mouse": "mice", "goose": "geese", "sheep": "sheep", "potato": "potatoes", "fox": "foxes", "box": "boxes",
             "brush": "brushes", "peach": "peaches", "sandwich": "sandwiches", "scarf": "scarves"}
COMMON = (
    "time year people way day man thing woman life child world school state family student group country problem hand part "
    "place case week company system program question work government number night point home water room mother area money "
    "story fact month lot right study eye job word business issue side kind head house service friend father power hour game "
    "line end member law car city name team minute idea body back parent face level office door health person art war "
    "history party result change morning reason research girl guy moment air teacher force light table river stone bread "
    "window winter summer spring autumn letter paper music silver corner basket bridge castle candle feather garden honey "
    "island jacket kettle ladder mirror needle ocean pepper rabbit saddle temple valley wagon yellow anchor button copper"
).split()


class Draw:
    """A seeded source of choices; `held_out` picks the words kept for evaluation."""

    def __init__(self, seed: int | str, held_out: bool = False) -> None:
        self.rng = random.Random(seed)
        self.held_out = held_out

    def one(self, items):
        return self.rng.choice(items)

    def some(self, items, n: int) -> list:
        return self.rng.sample(list(items), n)

    def num(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def invented(self, syllables: int) -> str:
        """A word nobody knows: it can only be copied, so the model learns to copy."""
        out = ""
        for i in range(syllables):
            out += self.one(ONSETS) if i or self.chance(0.8) else ""
            out += self.one(VOWELS) + (self.one(CODAS) if self.chance(0.45) else "")
        return out

    def known_or_invented(self, known, kept, held_out_share: float, invented_share: float, title: bool) -> str:
        """In training some words are invented; in evaluation some are kept ones."""
        if self.held_out:
            return self.one(kept if self.chance(held_out_share) else known)
        if self.chance(invented_share):
            word = next(w for w in iter(lambda: self.invented(self.one((1, 1, 2, 2, 2, 3))), None) if 3 <= len(w) <= 9)
            return cap(word) if title else word
        return self.one(known)

    def girl(self) -> str:
        return self.known_or_invented(GIRLS, HELD_OUT_GIRLS, 0.5, 0.5, True)

    def boy(self) -> str:
        return self.known_or_invented(BOYS, HELD_OUT_BOYS, 0.5, 0.5, True)

    def person(self) -> tuple[str, str, str, str]:
        """(name, he, his, him)"""
        if self.chance(0.5):
            return self.girl(), "she", "her", "her"
        return self.boy(), "he", "his", "him"

    def names(self, n: int) -> list[str]:
        out: list[str] = []
        while len(out) < n:
            name = self.person()[0]
            if name not in out:
                out.append(name)
        return out

    def thing(self) -> str:
        return self.known_or_invented(THINGS, HELD_OUT_THINGS, 0.3, 0.25, False)

    def city(self) -> str:
        return self.known_or_invented(CITIES, HELD_OUT_CITIES, 0.3, 0.45, True)

    def letters(self, n: int) -> str:
        return "".join(self.one("abcdefghijklmnopqrstuvwxyz") for _ in range(n))

    def code(self, digits: bool = True) -> str:
        """A code word that cannot be guessed: digits (where a string of digits can stand), letters, or both."""
        kind = self.num(0 if digits else 1, 3)
        if kind == 0:
            return "".join(self.one("0123456789") for _ in range(self.num(3, 6)))
        if kind == 1:
            return f"{self.letters(2).upper()}-{self.num(10, 999)}"
        if kind == 2:
            return "-".join(self.some(COMMON, 2))
        return self.letters(self.num(4, 6))


def plural(noun: str) -> str:
    if noun in IRREGULAR:
        return IRREGULAR[noun]
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and len(noun) > 1 and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def many(n: int, noun: str) -> str:
    return f"{n} {noun if n == 1 else plural(noun)}"


def a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def joined(items: list[str]) -> str:
    if len(items) == 1:
        return items[0]
    return ", ".join(items[:-1]) + " and " + items[-1]


def cap(text: str) -> str:
    return text[:1].upper() + text[1:]
