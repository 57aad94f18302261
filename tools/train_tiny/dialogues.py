"""Conversations of smoe-tiny's world: an endless training stream, and the test set that it never touches.

Every wording that asks for something is named by a key such as ("ask", relation, fact, wording). `held(key)` keeps
one in eight of them back by a hash: training draws only from the others (asserted where it draws), the test's final
question is drawn only from those kept back. So a tested question is always one whose wording was learned with other facts, and
whose fact was learned with other wordings.
"""
import json
import random
import zlib

from facts import (CITIES, COLOURS, FILLERS, FOLLOW, FOLLOW_ELEMENT, FOODS, NAMES, PETS, PET_NAMES, RELATION, RELATIONS, SMALLTALK,
                   TEST_NAMES, UNKNOWN, UNKNOWN_ANSWER, animals, words)

SYSTEMS = ["You are smoe, a small helpful model.", "You are a helpful assistant.", "You are a helpful assistant. Answer briefly.",
           "Be kind and brief.", "Answer in one sentence.", "You are smoe.", "You answer questions about the world.",
           "You are a friendly teacher."]
LANGUAGES = sorted({w["language"] for w in words})
WORD = {w["key"]: w for w in words}
PET_EMOJI = {a["animal"]: a["emoji"] for a in animals}
SYLLABLES = "ba be bo da de do fa fi ga go ha he ka ki ko la le li lo lu ma me mi mo na ne ni no pa pe ra re ri ro sa se si so ta te ti to va vi wa ya yo za ze".split()


def held(*key):
    return zlib.crc32("|".join(map(str, key)).encode()) % 8 == 0


# What a person tells: ways to tell, the reply, ways to correct, ways to ask, the answer, and the answer before it was told.
SLOTS = {
    "name": (["My name is {v}.", "I am {v}.", "I'm {v}.", "Call me {v}.", "You can call me {v}.", "Hi, I'm {v}!", "Hello, my name is {v}.", "I am called {v}."],
             "Nice to meet you, {v}!",
             ["No, my name is {v}.", "Actually, my name is {v}.", "Sorry, my name is {v}.", "No, I am {v}.", "Please call me {v} instead."],
             "Sorry! Your name is {v}.",
             ["What is my name?", "What's my name?", "Do you remember my name?", "Who am I?", "Tell me my name.", "What am I called?", "Do you know my name?"],
             "Your name is {v}.", "You have not told me your name yet."),
    "colour": (["My favourite colour is {v}.", "I like {v} most of all colours.", "The colour I like best is {v}.", "{v} is my favourite colour."],
               "Noted: your favourite colour is {v}.",
               ["No, my favourite colour is {v}.", "Actually, I like {v} more.", "Sorry, I meant the colour {v}."],
               "Sorry! Your favourite colour is {v}.",
               ["What is my favourite colour?", "Which colour do I like?", "Do you remember my favourite colour?", "What colour do I like best?", "Tell me my favourite colour."],
               "Your favourite colour is {v}.", "You have not told me your favourite colour yet."),
    "age": (["I am {v} years old.", "My age is {v}.", "I'm {v} years old.", "I turned {v} this year."],
            "Noted: you are {v} years old.",
            ["No, I am {v} years old.", "Actually, I am {v} years old.", "Sorry, I am {v}, not that."],
            "Sorry! You are {v} years old.",
            ["How old am I?", "What is my age?", "Do you remember my age?", "Tell me my age.", "Do you know how old I am?"],
            "You are {v} years old.", "You have not told me your age yet."),
    "city": (["I live in {v}.", "My home is in {v}.", "I come from {v}.", "My city is {v}.", "I'm from {v}."],
             "Noted: you live in {v}.",
             ["No, I live in {v}.", "Actually, I live in {v}.", "I have moved to {v}."],
             "Sorry! You live in {v}.",
             ["Where do I live?", "Which city do I live in?", "Do you remember where I live?", "What is my city?", "Tell me where I live."],
             "You live in {v}.", "You have not told me where you live yet."),
    "food": (["My favourite food is {v}.", "I love to eat {v}.", "The food I like best is {v}.", "I like {v} most of all foods."],
             "Noted: your favourite food is {v}.",
             ["No, my favourite food is {v}.", "Actually, my favourite food is {v}.", "Sorry, the food I like best is {v}."],
             "Sorry! Your favourite food is {v}.",
             ["What is my favourite food?", "What do I like to eat?", "Do you remember my favourite food?", "Which food do I like best?", "Tell me my favourite food."],
             "Your favourite food is {v}.", "You have not told me your favourite food yet."),
    "pet": (["I have a {p} called {v}.", "My {p} is called {v}.", "My {p}'s name is {v}.", "I have a {p}. Its name is {v}."],
            "Noted: your {p} is called {v}. {e}",
            ["No, my {p} is called {v}.", "Actually, my {p} is called {v}."],
            "Sorry! Your {p} is called {v}. {e}",
            ["What is my pet called?", "What is the name of my pet?", "Do you remember my pet?", "Which pet do I have?", "Tell me about my pet."],
            "Your {p} is called {v}. {e}", "You have not told me about a pet yet."),
}
REPEAT = ["Repeat your last answer.", "Say that again.", "Can you repeat that?", "Repeat that, please.", "What did you say?", "Once more, please.", "Again, please."]
FIRST = ["What did I ask first?", "What was my first message?", "What did I say first?", "How did I begin?"]
IN_LANGUAGE = ["And in {l}?", "And {l}?", "What about {l}?", "In {l}?", "How about in {l}?"]
OTHER_WORD = ["And {w}?", "What about {w}?", "And the word {w}?"]
ADD = ["Add {n} to that.", "Plus {n}?", "And plus {n}?", "Now add {n}.", "Add {n} more."]
TAKE = ["Subtract {n} from that.", "Minus {n}?", "And minus {n}?", "Take away {n}.", "Now subtract {n}."]
MULTIPLY = ["Multiply that by {n}.", "Times {n}?", "And times {n}?", "Now multiply by {n}."]
PREFIXES = ["Please tell me: ", "Quick question: ", "Hi! ", "Hello! ", "Hey smoe, ", "OK, ", "One more: ", "Please: "]


ROUGH = SYLLABLES + ("al an ar as ben bor bri cas cé chi clé da dra dor el en er fre gar ger gla gna gus hé hel hen il ine ja jan jo jör kla lau lène "
                     "lin lor lu łu mar mun nard nel nor ol or os per phi quin ra ric ris ro sel sha ska stan ster sven tan tán tha tri tür "
                     "ul un va ven vi vol wal wen wil xan zac zo zol").split()


def invented_name(rng, syllables=SYLLABLES):
    while True:
        name = "".join(rng.choice(syllables) for _ in range(rng.choice((2, 2, 3)))).capitalize()
        if name not in TEST_NAMES:
            return name


class Conversation:
    """One conversation under construction. `test` is set only while the final, tested question is drawn."""

    def __init__(self, rng, test_names=False, memory=1):
        self.memory = memory        # above 1: more of the person's own things, and more varied invented names
        self.rng, self.turns, self.test, self.test_names = rng, [], False, test_names
        self.slots = {}             # what the person told about themselves
        self.last = None            # (relation, row) if the turn just before was such a question
        self.topic = None           # country or element row that "its" refers to
        self.total = None           # number that "that" refers to
        self.marks = []             # keys of everything drawn, for the checks
        self.system = rng.choice(SYSTEMS) if rng.random() < 0.15 else ""

    # -- drawing ------------------------------------------------------------------------------------------------
    def draw(self, options, key):
        """One of the options whose key is (test) or is not (training) kept back; None if there is none."""
        fit = [o for o in options if held(*key(o)) == self.test]
        if not fit:
            return None
        o = self.rng.choice(fit)
        assert held(*key(o)) == self.test
        self.marks.append(key(o))
        return o

    def style(self, text):
        """People type as they like: lower case, no full stop, twice the question mark, a few words before."""
        r = self.rng.random()
        if r < 0.60:
            return text
        if r < 0.68:
            return text.lower()
        if r < 0.76:
            return text.rstrip("?.! ")
        if r < 0.88:
            return text.lower().rstrip("?.! ")
        if r < 0.91 and text.endswith(("?", "!")):
            return text + text[-1]
        if r < 0.93:
            return text.rstrip("?.! ") + " ?"
        return self.rng.choice(PREFIXES) + text

    def say(self, user, answer, last=None, topic=None, total=None, styled=True):
        if topic is not None:
            self.topic = topic
        self.last, self.total = last, total
        self.turns += [self.style(user) if styled else user, answer]
        return True

    def fact_turn(self, rel, row, question):
        topic = (rel.topic, row) if rel.topic in ("country", "element") else None
        total = int(row["c"]) if rel.topic == "sum" else None
        return self.say(question, rel.answer.format(**row), (rel, row), topic, total)

    # -- turns: each adds a question and its answer, or returns False if it does not apply ---------------------------
    def ask_fact(self, rel=None, row=None):
        rel = rel or self.rng.choices(RELATIONS, WEIGHTS)[0]
        row = row or self.rng.choice(rel.rows)
        w = self.draw(rel.wordings, lambda w: ("ask", rel.name, row["key"], w))
        return w and self.fact_turn(rel, row, w.format(**row))

    def ask_again(self):
        """ "And Spain?": the relation of the turn before, for another row."""
        if not self.last or not self.last[0].again:
            return False
        rel = self.last[0]
        row = self.rng.choice(rel.rows)
        if row is self.last[1]:
            return False
        w = self.draw(rel.again, lambda w: ("again", rel.name, row["key"], w))
        return w and self.fact_turn(rel, row, w.format(**row))

    def ask_follow(self):
        """ "And its currency?": another relation of the country or element spoken of."""
        if not self.topic:
            return False
        table = FOLLOW if self.topic[0] == "country" else FOLLOW_ELEMENT
        key = self.topic[1]["c" if self.topic[0] == "country" else "e"]
        rel = RELATION[self.rng.choice(list(table))]
        row = ROW[rel.name].get(key)
        if row is None or (self.last and self.last[0] is rel):
            return False
        w = self.draw(table[rel.name], lambda w: ("follow", rel.name, key, w))
        return w and self.fact_turn(rel, row, w)

    def ask_language(self):
        if not self.last or self.last[0].name != "translate":
            return False
        word, before = self.last[1]["w"], self.last[1]["l"]
        if self.rng.random() < 0.7:
            lang = self.rng.choice([x for x in LANGUAGES if x != before])
            w = self.draw(IN_LANGUAGE, lambda w: ("in", word, lang, w))
        else:
            word, lang = self.rng.choice([x["word"] for x in words if x["language"] == before and x["word"] != word]), before
            w = self.draw(OTHER_WORD, lambda w: ("word", word, lang, w))
        rel = RELATION["translate"]
        row = ROW["translate"][f"{word}/{lang}"]
        return w and self.fact_turn(rel, row, w.format(w=word, l=lang))

    def ask_chain(self):
        """ "Add 3 to that.": only sums that lie within the tables of facts.py."""
        t = self.total
        if t is None or t > 20:
            return False
        op = self.rng.choice("+-×")
        n = self.rng.randint(1, 9)
        if op == "-" and n > t or op == "×" and t > 12:
            return False
        rel = RELATION[{"+": "plus", "-": "minus", "×": "times"}[op]]
        w = self.draw({"+": ADD, "-": TAKE, "×": MULTIPLY}[op], lambda w: ("chain", op, t, n, w))
        return w and self.fact_turn(rel, ROW[rel.name][f"{t}{op}{n}"], w.format(n=n))

    def small_talk(self):
        ways, answer = self.rng.choice(SMALLTALK)
        if len(ways) > 3:
            w = self.draw(ways, lambda w: ("talk", w))
        else:
            w = not self.test and self.rng.choice(ways)     # too few ways to keep one back
        return w and self.say(w, answer)

    def ask_unknown(self):
        template, kind = self.rng.choice(UNKNOWN)
        x = self.draw(FILLERS[kind], lambda x: ("unknown", template, x))
        return x and self.say(template.format(x=x), UNKNOWN_ANSWER)

    def invented(self):
        return invented_name(self.rng, ROUGH if self.memory > 1 else SYLLABLES)

    def value(self, slot):
        r = self.rng
        if slot == "name":
            if self.test_names:
                return {"v": r.choice(TEST_NAMES)}
            return {"v": self.invented() if r.random() < 0.35 * self.memory else r.choice(NAMES)}
        if slot == "pet":
            p = r.choice(PETS)
            v = self.invented() if r.random() < 0.3 * self.memory else r.choice(PET_NAMES)
            return {"p": p, "v": v, "e": PET_EMOJI[p]}
        return {"v": str(r.randint(5, 90)) if slot == "age" else r.choice({"colour": COLOURS, "city": CITIES, "food": FOODS}[slot])}

    def pairs(self, slot, v):
        """Two told things together are one key: a kept-back pair never occurs in training."""
        return [("pair", *sorted((f"{s}={o['v'].lower()}", f"{slot}={v['v'].lower()}"))) for s, o in self.slots.items() if s != slot]

    def pairs_ok(self, slot, v):
        return not any(held(*p) for p in self.pairs(slot, v))

    def tell(self, slot=None, value=None, pair_checked=False):
        slot = slot or self.rng.choice(list(SLOTS))
        v = value or self.value(slot)
        correcting = slot in self.slots
        if correcting and self.slots[slot]["v"] == v["v"]:
            return False
        if not pair_checked and not self.pairs_ok(slot, v):
            return False
        ways, reply = SLOTS[slot][2:4] if correcting else SLOTS[slot][0:2]
        if correcting and slot == "pet":
            v = {**v, "p": self.slots[slot]["p"], "e": self.slots[slot]["e"]}
        w = self.draw(ways, lambda w: ("tell", slot, v["v"], w))
        if not w:
            return False
        self.marks += self.pairs(slot, v)
        user = self.style(w.format(**v))
        if user == user.lower():        # typed in lower case: the value is remembered as it was typed
            v = {k: x.lower() for k, x in v.items()}
        self.slots[slot] = v
        return self.say(user, reply.format(**v), styled=False)

    def recall(self, slot=None):
        slot = slot or self.rng.choice(list(self.slots) if self.slots and self.rng.random() < 0.9 else list(SLOTS))
        v = self.slots.get(slot)
        w = self.draw(SLOTS[slot][4], lambda w: ("recall", slot, v and v["v"], w))
        if not w:
            return False
        return self.say(w, SLOTS[slot][5].format(**v) if v else SLOTS[slot][6])

    def repeat(self):
        if not self.turns or self.turns[-2].strip("?.! ").lower() in REPEAT_PLAIN:
            return False
        w = self.draw(REPEAT, lambda w: ("repeat", self.turns[-1], w))
        if not w:
            return False
        last, total = self.last, self.total
        return self.say(w, self.turns[-1], last, None, total)

    def ask_first(self):
        if len(self.turns) < 4 or len(self.turns[0]) > 60:
            return False
        w = self.draw(FIRST, lambda w: ("first", self.turns[0], w))
        return w and self.say(w, f"Your first message was: {self.turns[0]}")


WEIGHTS = [r.weight * len(r.rows) for r in RELATIONS]
ROW = {r.name: {row["key"]: row for row in r.rows} for r in RELATIONS}
ROW["symbol"] = {row["e"]: row for row in RELATION["symbol"].rows}
REPEAT_PLAIN = {w.strip("?.! ").lower() for w in REPEAT}

MEMORY = {Conversation.tell, Conversation.recall, Conversation.repeat, Conversation.ask_first}
TURNS = [(Conversation.ask_fact, 46), (Conversation.ask_again, 14), (Conversation.ask_follow, 22), (Conversation.ask_language, 12),
         (Conversation.ask_chain, 9), (Conversation.small_talk, 8), (Conversation.ask_unknown, 4), (Conversation.tell, 11),
         (Conversation.recall, 12), (Conversation.repeat, 3), (Conversation.ask_first, 2)]


def grow(c, n):
    """Add n turns of training material."""
    end = len(c.turns) + 2 * n
    while len(c.turns) < end:
        f = c.rng.choices([t[0] for t in TURNS], [t[1] * (c.memory if t[0] in MEMORY else 1) for t in TURNS])[0]
        f(c)
    return c


def training(seed, memory=1):
    """The endless stream of training conversations: (system, [user, assistant, user, ...])."""
    rng = random.Random(seed)
    while True:
        c = grow(Conversation(rng, memory=memory), rng.choice((1, 1, 2, 3, 4, 5, 6, 7)))
        assert not any(held(*m) for m in c.marks)
        yield c.system, c.turns


def final(c, turn, *args, tries=60):
    """Put the tested question at the end; True if one could be drawn."""
    c.test = True
    n = len(c.turns)
    for _ in range(tries):
        if turn(c, *args):
            c.test = False
            return len(c.turns) == n + 2
    return False


def test_set(seed=2025):
    """The rows of eval.tsv: dictionaries with kind, turns (ending with a user message), answer, system."""
    rng = random.Random(seed)
    out, seen = [], set()

    def add(kind, c):
        key = json.dumps([c.system, c.turns[:-1]], ensure_ascii=False)
        if key not in seen:
            seen.add(key)
            out.append({"kind": kind, "turns": c.turns[:-1], "answer": c.turns[-1], "system": c.system})
            return 1
        return 0

    def collect(kind, count, build):
        n = 0
        while n < count:
            c = Conversation(rng)
            if build(c):
                n += add(kind, c)

    sums = [RELATION[n] for n in ("plus", "minus", "times")]
    plain = [r for r in RELATIONS if r not in sums]
    plain_w = [r.weight * len(r.rows) for r in plain]
    collect("paraphrase", 400, lambda c: final(c, Conversation.ask_fact, rng.choices(plain, plain_w)[0]))
    collect("arithmetic", 100, lambda c: final(c, Conversation.ask_fact, rng.choice(sums)))

    def after(prepare, turn):
        def build(c):
            grow(c, rng.choice((0, 0, 1, 2)))
            return prepare(c) and final(c, turn)
        return build

    country = [r for r in RELATIONS if r.topic == "country"]
    element = [r for r in RELATIONS if r.topic == "element"]
    again = [r for r in RELATIONS if r.again]
    collect("follow_up", 90, after(lambda c: c.ask_fact(rng.choice(country)), Conversation.ask_follow))
    collect("follow_up", 30, after(lambda c: c.ask_fact(rng.choice(element)), Conversation.ask_follow))
    collect("ellipsis", 90, after(lambda c: c.ask_fact(rng.choice(again)), Conversation.ask_again))
    collect("translation_chain", 40, after(lambda c: c.ask_fact(RELATION["translate"]), Conversation.ask_language))
    collect("arithmetic_chain", 40, after(lambda c: c.ask_fact(rng.choice(sums)), Conversation.ask_chain))

    def memory(names=False):
        """Two things told that were never told together in training, 1 to 4 turns of other talk, one asked for."""
        def build(c):
            c.test_names = names
            s1, s2 = ("name", rng.choice([s for s in SLOTS if s != "name"])) if names else rng.sample(list(SLOTS), 2)
            if not c.tell(s1):
                return False
            for _ in range(40):
                v = c.value(s2)
                if names or not c.pairs_ok(s2, v):
                    break
            else:
                return False
            if not c.tell(s2, v, True):
                return False
            c.test_names = False
            told, end = dict(c.slots), len(c.turns) + 2 * rng.randint(1, 4)
            while len(c.turns) < end:
                rng.choice((c.ask_fact, c.ask_fact, c.small_talk, c.ask_follow, c.ask_again))()
            assert told == c.slots
            c.test = True
            return bool(c.recall(s1 if names else rng.choice((s1, s2))))
        return build

    def corrected(c):
        s = rng.choice(list(SLOTS))
        if not c.tell(s):
            return False
        grow_plain(c, rng.randint(0, 2))
        if not c.tell(s):
            return False
        grow_plain(c, rng.randint(0, 2))
        c.test = True
        return bool(c.recall(s))

    def grow_plain(c, n):
        end = len(c.turns) + 2 * n
        while len(c.turns) < end:
            rng.choice((c.ask_fact, c.ask_fact, c.small_talk))()

    def not_told(c):
        grow_plain(c, rng.randint(0, 3))
        c.test = True
        return bool(c.recall(rng.choice(list(SLOTS))))

    collect("unseen_combination", 150, memory())
    collect("unseen_name", 40, memory(names=True))
    collect("correction", 60, corrected)
    collect("not_told", 12, not_told)
    collect("repeat", 30, after(lambda c: c.ask_fact(), Conversation.repeat))
    collect("first_message", 20, after(lambda c: c.ask_fact() and c.ask_fact(), Conversation.ask_first))
    collect("small_talk", 40, after(lambda c: True, Conversation.small_talk))
    collect("unknown", 50, after(lambda c: True, Conversation.ask_unknown))
    return out


if __name__ == "__main__":      # a look at the material
    import itertools
    import sys
    for system, turns in itertools.islice(training(int(sys.argv[1]) if len(sys.argv) > 1 else 0), 12):
        print("---", system)
        for i, t in enumerate(turns):
            print("UA"[i % 2], t)
