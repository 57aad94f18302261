"""The world of smoe-tiny: relations over plain facts, each with several question wordings and exactly one answer.

A Relation is a table: every row gives the fields that its question wordings and its answer are filled with. The
answer is always a whole sentence that names the thing asked for, so that a later turn can lean on it.
"""
import csv
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent / "facts"


def table(name):
    """The rows of facts/<name>.tsv as dictionaries; '-' marks a field that is left out on purpose."""
    with open(HERE / f"{name}.tsv", encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


@dataclass
class Relation:
    name: str
    wordings: list            # format strings over a row's fields: ways to ask
    answer: str               # format string: the one right answer
    rows: list                # dictionaries; row["key"] names the fact
    topic: str = ""           # "country": its follow-up questions apply afterwards
    again: list = field(default_factory=list)  # "And {c}?": same relation, another row
    weight: float = 1.0       # how often one row is asked, relative to the others

    def __post_init__(self):
        for row in self.rows:   # {C} is {c} with a capital first letter
            row.update({k.upper(): v[:1].upper() + v[1:] for k, v in list(row.items()) if len(k) == 1})
        keys = [row["key"] for row in self.rows]
        assert len(set(keys)) == len(keys), self.name
        assert len(set(self.wordings)) == len(self.wordings), self.name


def rows(source, key, **fields):
    """Rows from a table: fields maps our field letters to column names; rows with a '-' drop out."""
    out = []
    for r in source:
        if "-" not in [r[c] for c in fields.values()]:
            out.append({"key": r[key], **{f: r[c] for f, c in fields.items()}})
    return out


def flag(iso):
    return "".join(chr(0x1F1E6 + ord(ch) - ord("A")) for ch in iso)


def an(noun):
    return ("an " if noun[0] in "aeiou" and not noun.startswith(("euro", "uni", "ewe")) else "a ") + noun


NUMBER = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
          "seventeen eighteen nineteen twenty").split()
TENS = {30: "thirty", 40: "forty", 50: "fifty", 60: "sixty", 70: "seventy", 80: "eighty", 90: "ninety",
        100: "one hundred", 1000: "one thousand"}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
PLANETS = "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split()
ROMAN = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX".split()

countries = table("countries")
for r in countries:
    r["flag"] = flag(r["iso"])
elements = table("elements")
animals = table("animals")
for r in animals:
    r["an"] = an(r["animal"])
opposites = table("opposites")
opposites += [{"word": r["opposite"], "opposite": r["word"]} for r in opposites]
units = table("units")
for r in units:
    # "an hour", but "a euro" and "a hour" would be wrong: written out because sound decides, not spelling
    r["an"] = ("an " if r["big"] == "hour" else "a ") + r["big"]
    r["key"] = f"{r['big']}/{r['small']}"
things = table("things")
native = table("native")
words = []
for r in table("translations"):
    words += [{"key": f"{w}/{r['language']}", "word": w, "language": r["language"], "text": r[w]}
              for w in ("hello", "thank you", "water", "yes", "good night")]

AND_C = ["And {c}?", "What about {c}?", "And of {c}?", "How about {c}?", "The same for {c}, please."]
AND_E = ["And {e}?", "What about {e}?", "How about {e}?"]


def sums(op):
    out = []
    for a in range(21):
        for b in range(21):
            if op == "-" and b > a or op == "×" and (a > 12 or b > 12):
                continue
            c = {"+": a + b, "-": a - b, "×": a * b}[op]
            out.append({"key": f"{a}{op}{b}", "a": str(a), "b": str(b), "c": str(c)})
    return out


def steps(seq, a, b):
    return [{"key": f"{x}", a: x, b: y} for x, y in zip(seq, seq[1:] + seq[:1])]


RELATIONS = [
    Relation("capital", ["What is the capital of {c}?", "What's the capital of {c}?", "Which city is the capital of {c}?",
                         "Name the capital of {c}.", "Tell me the capital of {c}.", "The capital of {c}?",
                         "Do you know the capital of {c}?", "Capital of {c}?", "What is {c}'s capital?",
                         "What city is the capital of {c}?"],
             "The capital of {c} is {v}.", rows(countries, "country", c="country", v="capital"), "country", AND_C, 1.3),
    Relation("capital_of", ["Which country has the capital {v}?", "{v} is the capital of which country?",
                            "What country is {v} the capital of?", "Of which country is {v} the capital?",
                            "{v} is the capital of what?", "Whose capital is {v}?"],
             "{v} is the capital of {c}.", rows(countries, "country", c="country", v="capital"), "country",
             ["And {v}?", "What about {v}?", "How about {v}?"]),
    Relation("currency", ["What is the currency of {c}?", "What money do they use in {c}?", "What currency does {c} use?",
                          "Which currency is used in {c}?", "How do people pay in {c}?", "The currency of {c}?",
                          "What's the currency of {c}?", "Tell me the currency of {c}."],
             "The currency of {c} is the {v}.", rows(countries, "country", c="country", v="currency"), "country", AND_C),
    Relation("language", ["What language do people speak in {c}?", "What do people speak in {c}?",
                          "Which language is spoken in {c}?", "What is the language of {c}?",
                          "What language is spoken in {c}?", "Which language do they speak in {c}?",
                          "The language of {c}?"],
             "People in {c} speak {v}.", rows(countries, "country", c="country", v="language"), "country", AND_C),
    Relation("continent", ["On which continent is {c}?", "What continent is {c} in?", "Where is {c}?",
                           "Where in the world is {c}?", "Which continent does {c} belong to?",
                           "In which continent does {c} lie?"],
             "{C} is in {v}.", rows(countries, "country", c="country", v="continent"), "country", AND_C, 0.7),
    Relation("flag", ["What is the flag of {c}?", "Show me the flag of {c}.", "The flag of {c}?", "What does the flag of {c} look like?",
                      "Flag of {c}, please.", "Draw the flag of {c}.", "Give me the flag of {c}."],
             "The flag of {c} is {v}.", rows(countries, "country", c="country", v="flag"), "country", AND_C),
    Relation("written", ["How is {c} written in {l}?", "How do you write {c} in {l}?", "Write {c} in {l}.",
                         "What does {c} look like in {l}?", "Spell {c} in {l}.", "{c} in {l}?"],
             "{c} is written {v} in {l}.", rows(native, "city", c="city", v="written", l="language"), "", [], 1.5),
    Relation("symbol", ["What is the symbol of {e}?", "What is the chemical symbol for {e}?", "Which symbol does {e} have?",
                        "The symbol of {e}?", "How is {e} abbreviated in chemistry?", "Tell me the symbol for {e}.",
                        "What's the symbol of {e}?"],
             "The symbol of {e} is {s}.", rows(elements, "element", e="element", s="symbol"), "element", AND_E),
    Relation("symbol_of", ["Which element has the symbol {s}?", "What element is {s}?", "What is {s} in chemistry?",
                           "{s} is the symbol of which element?", "What does the symbol {s} stand for?"],
             "{s} is the symbol of {e}.", rows(elements, "element", e="element", s="symbol"), "element",
             ["And {s}?", "What about {s}?"]),
    Relation("number", ["What is the atomic number of {e}?", "Which atomic number does {e} have?", "The atomic number of {e}?",
                        "How many protons does {e} have?", "Where is {e} in the periodic table?",
                        "What number is {e} in the periodic table?"],
             "The atomic number of {e} is {n}.", rows(elements, "element", e="element", n="number"), "element", AND_E),
    Relation("number_of", ["Which element has atomic number {n}?", "What is element number {n}?", "Which element has {n} protons?",
                           "What is element {n}?", "Name element number {n}."],
             "Element number {n} is {e}.", rows(elements, "element", e="element", n="number"), "element",
             ["And number {n}?", "What about number {n}?"]),
    Relation("plus", ["What is {a} + {b}?", "{a} + {b}", "{a} + {b} = ?", "What is {a} plus {b}?", "Add {a} and {b}.",
                      "How much is {a} plus {b}?", "Calculate {a} + {b}.", "{a} plus {b}?", "What is the sum of {a} and {b}?"],
             "{a} + {b} = {c}.", sums("+"), "sum", ["And {a} + {b}?", "What about {a} + {b}?"], 0.75),
    Relation("minus", ["What is {a} - {b}?", "{a} - {b}", "{a} - {b} = ?", "What is {a} minus {b}?", "Subtract {b} from {a}.",
                       "How much is {a} minus {b}?", "Calculate {a} - {b}.", "{a} minus {b}?", "Take {b} away from {a}."],
             "{a} - {b} = {c}.", sums("-"), "sum", ["And {a} - {b}?", "What about {a} - {b}?"], 0.9),
    Relation("times", ["What is {a} × {b}?", "{a} × {b}", "{a} * {b}", "What is {a} times {b}?", "Multiply {a} by {b}.",
                       "How much is {a} times {b}?", "Calculate {a} × {b}.", "{a} times {b}?", "{a} x {b} = ?"],
             "{a} × {b} = {c}.", sums("×"), "sum", ["And {a} × {b}?", "What about {a} times {b}?"], 1.2),
    Relation("unit", ["How many {s} are in {b}?", "How many {s} does {b} have?", "{B} has how many {s}?", "How many {s} make {b}?",
                      "{B} is how many {s}?", "What is {b} in {s}?"],
             "{B} has {n} {s}.", rows(units, "key", b="an", s="small", n="count"), "", ["And how many {s} in {b}?"], 1.3),
    Relation("opposite", ["What is the opposite of {w}?", "Opposite of {w}?", "The opposite of {w}?", "What's the opposite of {w}?",
                          "Which word is the opposite of {w}?", "Tell me the opposite of {w}.", "Name the opposite of {w}."],
             "The opposite of {w} is {v}.", rows(opposites, "word", w="word", v="opposite"), "",
             ["And {w}?", "What about {w}?", "And of {w}?"], 1.2),
    Relation("young", ["What is a young {a} called?", "What do you call a baby {a}?", "What is the young of {t}?",
                       "Name the young of {t}.", "A baby {a} is called?", "What is a baby {a}?"],
             "A young {a} is called a {v}.", rows(animals, "animal", a="animal", t="an", v="young"), "",
             ["And a young {a}?", "And {t}?"], 1.3),
    Relation("sound", ["What does {t} say?", "What sound does {t} make?", "How does {t} sound?", "Which sound does {t} make?",
                       "What noise does {t} make?"],
             "{T} says {v}.", rows(animals, "animal", t="an", v="sound"), "", ["And {t}?", "What about {t}?"], 1.5),
    Relation("emoji", ["Show me {t}.", "Do you have an emoji for {t}?", "The emoji for {t}?", "Draw {t}.", "Send me {t}.",
                       "Show me the emoji for {t}.", "What does {t} look like?"],
             "Here is {t}: {v}", rows(animals, "animal", t="an", v="emoji"), "", ["And {t}?", "What about {t}?"], 1.5),
    Relation("colour", ["What colour is the {t}?", "Which colour does the {t} have?", "What is the colour of the {t}?",
                        "The {t} has which colour?", "Tell me the colour of the {t}."],
             "The {t} is {v}.", rows(things, "thing", t="thing", v="colour"), "", ["And the {t}?", "What about the {t}?"], 1.5),
    Relation("translate", ["How do you say {w} in {l}?", "What is {w} in {l}?", "Translate {w} into {l}.", "Say {w} in {l}.",
                           "{w} in {l}?", "What is the {l} word for {w}?", "Translate to {l}: {w}"],
             "In {l}, {w} is {v}.", rows(words, "key", w="word", l="language", v="text"), "word", [], 1.8),
    Relation("day_after", ["Which day comes after {a}?", "What day is after {a}?", "What comes after {a}?", "The day after {a}?"],
             "After {a} comes {b}.", steps(DAYS, "a", "b"), "", ["And after {a}?"], 2),
    Relation("day_before", ["Which day comes before {b}?", "What day is before {b}?", "What comes before {b}?", "The day before {b}?"],
             "Before {b} comes {a}.", steps(DAYS, "a", "b"), "", ["And before {b}?"], 2),
    Relation("month_after", ["Which month comes after {a}?", "What month follows {a}?", "What comes after {a}?", "The month after {a}?"],
             "After {a} comes {b}.", steps(MONTHS, "a", "b"), "", ["And after {a}?"], 2),
    Relation("month_before", ["Which month comes before {b}?", "What month is before {b}?", "What comes before {b}?", "The month before {b}?"],
             "Before {b} comes {a}.", steps(MONTHS, "a", "b"), "", ["And before {b}?"], 2),
    Relation("month_number", ["Which month is number {n}?", "What is month number {n}?", "Name month {n} of the year.", "Month number {n}?"],
             "Month number {n} is {m}.", [{"key": m, "m": m, "n": str(i + 1)} for i, m in enumerate(MONTHS)], "",
             ["And number {n}?"], 1.5),
    Relation("planet", ["Which planet is number {n} from the Sun?", "What is planet number {n}?", "Name planet {n} of the Sun.", "Planet number {n}?"],
             "Planet number {n} is {p}.", [{"key": p, "p": p, "n": str(i + 1)} for i, p in enumerate(PLANETS)], "",
             ["And number {n}?"], 2),
    Relation("planet_number", ["Which number is {p} from the Sun?", "Where does {p} stand among the planets?", "What number is the planet {p}?", "Which planet number is {p}?"],
             "{p} is planet number {n} from the Sun.", [{"key": p, "p": p, "n": str(i + 1)} for i, p in enumerate(PLANETS)], "",
             ["And {p}?"], 2),
    Relation("letter", ["Which letter comes after {a}?", "What letter follows {a}?", "The letter after {a}?", "What is the letter after {a}?"],
             "After {a} comes {b}.", steps([chr(65 + i) for i in range(26)], "a", "b")[:-1], "", ["And after {a}?"], 1.5),
    Relation("spelled", ["How do you write {n} in words?", "Write {n} in words.", "Spell the number {n}.", "{n} in words?", "How is the number {n} spelled?"],
             "The number {n} is written {w}.", [{"key": str(n), "n": str(n), "w": w} for n, w in [*enumerate(NUMBER), *TENS.items()]],
             "", ["And {n}?", "What about {n}?"], 1.3),
    Relation("roman", ["What is {n} in Roman numerals?", "Write {n} as a Roman numeral.", "{n} in Roman numerals?", "Which Roman numeral is {n}?"],
             "In Roman numerals, {n} is {r}.", [{"key": r, "n": str(i + 1), "r": r} for i, r in enumerate(ROMAN)], "",
             ["And {n}?", "What about {n}?"], 1.5),
]
RELATION = {r.name: r for r in RELATIONS}

# Questions that lean on a country named before: (relation, ways to ask).
FOLLOW = {
    "capital": ["And its capital?", "What is its capital?", "And the capital?", "What's the capital there?", "Its capital?", "Which city is its capital?"],
    "currency": ["And its currency?", "What is its currency?", "And the currency?", "What money do they use there?", "How do people pay there?", "Its currency?"],
    "language": ["And its language?", "What do people speak there?", "And the language?", "What language do they speak there?", "Which language is spoken there?"],
    "continent": ["And where is it?", "On which continent is it?", "Where is that?", "Which continent is that in?", "And the continent?"],
    "flag": ["And its flag?", "What is its flag?", "Show me its flag.", "And the flag?", "What does its flag look like?"],
}
# The same for a chemical element.
FOLLOW_ELEMENT = {
    "symbol": ["And its symbol?", "What is its symbol?", "And the symbol?", "Its symbol?"],
    "number": ["And its atomic number?", "What is its atomic number?", "And the number?", "Its atomic number?", "How many protons does it have?"],
}

# Small talk: (ways to say it, the one answer).
SMALLTALK = [
    (["Hello!", "Hello", "Hello there!", "Hi!", "Hi", "Hi there!", "Hey!", "Hey", "Hello smoe!", "Hi smoe!"], "Hello! How can I help you? 😊"),
    (["Good morning!", "Good morning, smoe!", "Morning!"], "Good morning! ☀️"),
    (["Good evening!", "Good evening, smoe!", "Evening!"], "Good evening! 🌙"),
    (["Good night!", "Good night, smoe!", "I am going to bed."], "Good night! Sleep well. 😴"),
    (["Thank you!", "Thanks!", "Thanks a lot!", "Thank you very much!", "Thank you, smoe!", "Great, thanks!", "Many thanks!"], "You are welcome! 😊"),
    (["Bye!", "Goodbye!", "See you!", "Bye bye!", "See you later!", "Goodbye, smoe!"], "Goodbye! 👋"),
    (["How are you?", "How are you today?", "How do you do?", "Are you well?", "How is it going?", "How are you doing?"], "I am fine, thank you! And you?"),
    (["Who are you?", "What is your name?", "What's your name?", "What are you called?", "Tell me who you are.", "And who are you?"], "I am smoe, a very small language model."),
    (["What can you do?", "What do you know?", "How can you help me?", "What can I ask you?", "Help!", "Help me."], "I know capitals, currencies, flags, elements, sums, units, animals and a few words in many languages."),
    (["Are you a human?", "Are you a person?", "Are you real?", "Are you a robot?", "Are you a machine?"], "I am a small language model, not a person."),
    (["How big are you?", "How large are you?", "How many parameters do you have?", "What size are you?"], "I have about 12 million parameters."),
    (["How many experts do you have?", "How many experts are in you?", "What are your experts?"], "I have 12 experts in each layer and use 3 of them for each token."),
    (["Who made you?", "Who built you?", "Who trained you?", "Where do you come from?"], "I was trained from scratch for the smoe engine."),
    (["Tell me a joke.", "Tell a joke!", "Do you know a joke?", "Make me laugh.", "A joke, please."], "Why was six afraid of seven? Because seven eight nine! 😄"),
    (["Tell me another joke.", "Another joke, please.", "One more joke!", "Do you know another joke?"], "What do you call a bear with no teeth? A gummy bear! 🐻"),
    (["Sing a song.", "Sing for me.", "Can you sing?", "Sing something!"], "La la la! 🎵"),
    (["I am sad.", "I feel sad.", "I feel bad today.", "I am not happy."], "I am sorry to hear that. I hope you feel better soon. 💛"),
    (["I am happy.", "I feel great!", "I am very happy today.", "I feel good."], "That is great! 🎉"),
    (["I am fine.", "I am fine, thanks.", "I am well.", "I'm good, thanks."], "I am glad to hear that! 😊"),
    (["You are great!", "You are nice.", "I like you.", "Well done!", "Good job!", "You are clever."], "Thank you! That is kind of you. 😊"),
    (["You are wrong.", "That is wrong.", "That is not right.", "You made a mistake."], "I am sorry. I am a very small model and I make mistakes."),
    (["Sorry!", "I am sorry.", "My mistake.", "Excuse me."], "No problem! 👍"),
    (["OK", "Okay.", "All right.", "I see.", "Good."], "👍"),
    (["Do you like music?", "Do you like pizza?", "Do you like cats?", "Do you like the sea?"], "I am a small model, so I have no favourites."),
    (["Count to five.", "Count from one to five.", "Can you count to five?"], "One, two, three, four, five."),
    (["Count to ten.", "Count from one to ten.", "Can you count to ten?"], "One, two, three, four, five, six, seven, eight, nine, ten."),
    (["Name the days of the week.", "What are the days of the week?", "List the days of the week."], ", ".join(DAYS) + "."),
    (["Name the planets.", "What are the planets?", "List the planets."], ", ".join(PLANETS) + "."),
    (["What are the seasons?", "Name the seasons.", "Name the four seasons."], "Spring 🌸, summer ☀️, autumn 🍂 and winter ❄️."),
    (["Say something in Japanese.", "Speak Japanese!", "Do you speak Japanese?"], "はい、少しだけ。"),
    (["Say something in French.", "Speak French!", "Do you speak French?"], "Oui, un tout petit peu : voilà !"),
    (["What is the largest planet?", "Which planet is the largest?", "Name the biggest planet."], "The largest planet is Jupiter."),
    (["What is the smallest planet?", "Which planet is the smallest?"], "The smallest planet is Mercury."),
    (["How many legs does a spider have?", "A spider has how many legs?"], "A spider has 8 legs."),
    (["How many continents are there?", "What is the number of continents?"], "There are seven continents."),
    (["How many planets are there?", "How many planets does the Sun have?"], "There are eight planets."),
    (["How many letters are in the alphabet?", "How many letters does the alphabet have?"], "The alphabet has 26 letters."),
    (["What is water made of?", "What is the formula of water?", "Which atoms are in water?"], "Water is H₂O: hydrogen and oxygen."),
]

UNKNOWN_ANSWER = "I do not know that. I am a very small model."
# Outside the world: any of these with any filler gets the one polite answer.
UNKNOWN = [
    ("Who wrote {x}?", "book"), ("What happens in {x}?", "book"), ("When was {x} published?", "book"), ("Have you read {x}?", "book"),
    ("What is the weather in {x}?", "place"), ("How many people live in {x}?", "place"), ("Who is the mayor of {x}?", "place"),
    ("What time is it in {x}?", "place"), ("How far is it to {x}?", "place"), ("What should I see in {x}?", "place"),
    ("What is the capital of {x}?", "myth"), ("What is the currency of {x}?", "myth"), ("Where is {x}?", "myth"),
    ("Show me the flag of {x}.", "myth"), ("What language do people speak in {x}?", "myth"),
    ("How do I cook {x}?", "dish"), ("What is in {x}?", "dish"), ("How many calories does {x} have?", "dish"), ("Is {x} healthy?", "dish"),
    ("Explain {x}.", "topic"), ("What is {x}?", "topic"), ("How does {x} work?", "topic"), ("Who invented {x}?", "topic"),
    ("Write an essay about {x}.", "topic"), ("Write a poem about {x}.", "topic"), ("Why is {x} important?", "topic"),
    ("Who won the {x}?", "event"), ("When is the {x}?", "event"), ("Where was the {x} held?", "event"), ("Who lost the {x}?", "event"),
    ("How much does {x} cost?", "goods"), ("Where can I buy {x}?", "goods"), ("Can you repair {x}?", "goods"), ("Which is the best brand of {x}?", "goods"),
]
FILLERS = {
    "book": ["Hamlet", "Faust", "Don Quixote", "War and Peace", "Moby Dick", "the Odyssey", "Dracula", "Emma", "Ulysses", "the Iliad",
             "Frankenstein", "Robinson Crusoe", "Candide", "Middlemarch", "Dubliners", "Jane Eyre"],
    "place": ["Boston", "Hamburg", "Lyon", "Mumbai", "Sydney", "Toronto", "Chicago", "Naples", "Porto", "Seville", "Geneva", "Leeds",
              "Dallas", "Perth", "Kraków", "Nagoya"],
    "myth": ["Atlantis", "Narnia", "Wonderland", "Mordor", "Utopia", "Camelot", "El Dorado", "Lilliput", "Neverland", "Oz", "Avalon",
             "Gondor", "Shangri-La", "Valhalla"],
    "dish": ["lasagne", "goulash", "paella", "ramen", "fondue", "risotto", "borscht", "curry", "falafel", "moussaka", "pancakes",
             "strudel", "kimchi", "gazpacho"],
    "topic": ["gravity", "inflation", "democracy", "photosynthesis", "evolution", "quantum physics", "philosophy", "jazz", "chess",
              "the internet", "electricity", "the moon landing", "algebra", "the Renaissance", "insurance", "a compiler", "poetry",
              "a black hole", "the stock market", "football"],
    "event": ["football match", "election", "World Cup", "chess final", "song contest", "tennis final", "marathon", "cycling race",
              "Olympic Games", "boxing match", "hockey game"],
    "goods": ["a bicycle", "a laptop", "a ticket", "a guitar", "a phone", "a sofa", "a camera", "a new car", "a watch", "an umbrella",
              "a piano", "a tent"],
}

# What a person may tell about themselves.
NAMES = ("Ana Ben Clara David Emma Felix Grace Hugo Ida Jonas Karin Leo Maria Nina Oscar Paula Quentin Rosa Simon Tara Umberto "
         "Vera Walter Xenia Yara Zoe Adam Bella Carlos Dina Erik Fatima Georg Hana Ivan Julia Kofi Lena Mateo Nora Omar Petra "
         "Rafael Sara Tomas Ursula Victor Wanda Yusuf Zara Aisha Bruno Chen Diego Elena Frida Gita Hassan Ines Jakob Kenji Layla "
         "Marco Noor Olga Pablo Rita Sven Theo Uma Viktor Wei Yuki Amir Birgit Cem Dora Emil Fiona Gustav Helga Igor Jin Kaya "
         "Lars Mina Nils Otto Priya Ravi Sofia Tariq Ulla Vijay Wim Ximena Yannick Zofia André Björn Chloé Désirée Élodie "
         "François Günther Håkon Iñigo José Jürgen Łukasz Márta Noël Øystein Renée Søren Zoë Ángel Željko Anaïs "
         "Kim Pat Sam Max Tom Bob Alice Mary John Peter Paul Anna Laura Lisa Mark Luke Tim Jane Kate Lucy Ella Mia Liam").split()
# Names that only the test uses: can it copy a word that it never saw as a name?
TEST_NAMES = ("Agnes Boris Celia Dario Edgar Flora Gloria Henrik Irma Jasper Klara Linus Marta Norbert Olivia Pedro Rolf Selma "
              "Thea Ugo Valentin Wilma Zacharias Aurelio Zoltán Cédric Hélène Jörg Łucja Ramón").split()
COLOURS = "red blue green yellow orange purple pink brown black white grey teal violet turquoise silver gold".split()
FOODS = ["pizza", "rice", "soup", "bread", "cheese", "chocolate", "noodles", "salad", "sushi", "cake", "crêpes", "tacos", "apple pie",
         "jalapeños", "pasta", "dumplings", "ice cream", "potatoes", "curry", "pancakes"]
CITIES = sorted({r["capital"] for r in countries if " City" not in r["capital"]} | {r["city"] for r in native})
PETS = ["dog", "cat", "horse", "rabbit", "mouse", "duck", "goat", "snake", "turtle", "fish", "hedgehog", "chicken"]
PET_NAMES = ("Milo Luna Bella Rocky Coco Max Daisy Bruno Lily Toby Nala Simba Oreo Misty Rex Fluffy Pixie Gizmo Ruby Oscar Pepper "
             "Tiger Snowy Biscuit Ziggy Muffin Pingu Kiki Bubbles Rusty").split()
