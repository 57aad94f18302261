"""The sample of texts for the tokenizer goldens: everything that a byte-level BPE with NFC can get wrong.

Characters come from unicodedata.ucd_3_2_0, which never changes, and from listed ranges of later age. Characters younger
than Unicode 12 are left out: libraries of different age classify them differently, and no golden can settle that.
"""

import random
import unicodedata

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "Don't you'll we've I'm they'd it's she'll rock'n'roll o'clock 'tis",
    "Die Größe des Flußbetts überraschte Jürgen; „schön“, sagte er – äußerst höflich.",
    "L'été dernier, à Noël, le garçon naïf mangeait des crêpes chez l'œnologue.",
    "¿Dónde está el niño? ¡Mañana, señor, mañana!",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Zażółć gęślą jaźń, powiedział Łukasz.",
    "Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul ışıl ışıl.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Ὦ ἄνδρες Ἀθηναῖοι",
    "Tiếng Việt có nhiều dấu thanh: ngã, nặng, hỏi, huyền, sắc.",
    "人工智能正在改变世界,但我们需要谨慎。《论语》第一章:学而时习之。",
    "今日は良い天気ですね。カタカナとひらがな、ガギグゲゴ、パピプペポ!",
    "안녕하세요, 세계! 한국어는 자모로 이루어져 있습니다.",
    "مرحبا بالعالم، كيف حالك؟ السَّلامُ عَلَيْكُم ١٢٣٤٥",
    "שָׁלוֹם עוֹלָם! מה שלומך היום?",
    "नमस्ते दुनिया, क्षेत्र में ज़रूरत है। १२३४",
    "বাংলা ভাষায় স্বাগতম। তাঁর কোঁকড়া চুল।",
    "தமிழ் மொழி அழகானது, கொடுத்தான்.",
    "สวัสดีชาวโลก ภาษาไทยไม่มีการเว้นวรรคระหว่างคำ ๑๒๓",
    "བོད་སྐད་ནི་སྐད་ཡིག་མཛེས་པོ་ཞིག་རེད།",
    "မြန်မာဘာသာ စကား၊ ကျေးဇူးတင်ပါတယ်။",
    "ខ្ញុំស្រឡាញ់ភាសាខ្មែរ",
    "ქართული ენა ლამაზია. Ქართული",
    "Հայերեն լեզուն գեղեցիկ է։ եւ և",
    "ሰላም ልዑል! የኢትዮጵያ ቋንቋ፡፡",
    "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ꭰꭱꭲ",
    "ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ᠎ᠡ",
    "Ελληνικά ΣΊΣΥΦΟΣ σίσυφος ς, Straße STRASSE ẞ, ſſ, Dž dž DŽ, fi fl ffi",
    "E = mc², H₂O, ½ + ⅓ = ⅚, ∑ᵢ₌₁ⁿ xᵢ ≤ ∫₀^∞ e⁻ˣ dx ≠ ∅ ⇒ ∀x∈ℝ, ①②③ Ⅷ ⅷ 〇一二",
    "Ångström Å Å K Ω µ ﬁ ﷺ ㎏ ㍿ ℌ 𝔸𝔹ℂ 𝒜𝓑 𝟘𝟙𝟚 𝟗𝟗",
    "Price: $1,234,567.89 (€1.234.567,89) 50% off!!! #1 @user a+b=c x<y>z ~`^_|\\",
    "https://example.com/a/b?c=d&e=f%20g#h user.name+tag@example.co.uk C:\\Users\\x ../y ~/.z",
    "2024-02-29T23:59:60.123456789Z 192.168.0.1 ::1 0xDEADBEEF 1e-10 3.14159265358979323846 007",
    "👨‍👩‍👧‍👦 👩🏽‍🚀 🏳️‍🌈 🇩🇪🇯🇵🇺🇸 1️⃣ ❤️ ☺︎ 😀😃😄 🤦🏿‍♂️ 🧑‍🤝‍🧑",
    "zero\u200bwidth non\u200cjoiner joiner\u200d soft\u00adhyphen bom\ufeff word\u2060joiner",
    "nb\u00a0sp thin\u2009sp ideographic\u3000sp line\u2028sep para\u2029sep next\u0085line mvs\u180esep ogham\u1680sp",
    "replacement \ufffd\ufffd char, private \ue000\uf8ff use, \U000f0000\U0010fffd, nonchar \ufdd0\uffff\U0001fffe",
    "RTL \u202eoverride\u202c and \u2067isolate\u2069 marks\u200e\u200f",
    "Z̸̢͎̓a̷̰͗l̵̗͝g̶̡̊ő̵̲ ţ̶̺e̷͕͒x̸̩̄t̵̘̏",
]

CODE = [
    "#include <stdio.h>\n\nint main(void)\n{\n    for (int i = 0; i < 10; i++) {\n        printf(\"%d\\n\", i);\n    }\n    return 0;\n}\n",
    "def f(x: int = 3, *args, **kwargs) -> dict[str, list[int]]:\n\t\"\"\"Doc.\"\"\"\n\treturn {f'{k!r}': [v] for k, v in kwargs.items() if v is not None}\n",
    "SELECT t.id, COUNT(*) AS n FROM tbl t LEFT JOIN u ON u.id=t.u_id WHERE t.x>=10 AND u.name LIKE '%foo%' GROUP BY 1;\r\n",
    "<!DOCTYPE html>\n<html lang=\"en\"><head><title>&amp;&#x20;</title></head>\n<body class='a b'><!-- c --></body></html>",
    "{\"a\": [1, 2.5, -3e8, null, true], \"b\": {\"c\": \"\\u00e9\\n\"}}",
    "fn main() { let v: Vec<_> = (0..n).map(|x| x.pow(2)).collect(); println!(\"{:?}\", &v[..]); }",
    "const f = async ({a, ...b}) => await Promise.all(a?.map((x) => x ?? b[`k${x}`]));// done",
    "#!/bin/sh\nset -euo pipefail\nfind . -name '*.c' -print0 | xargs -0 grep -nE \"foo|bar\" 2>/dev/null || true\n",
    "| a | b |\n|---|:-:|\n| 1 | **2** |\n\n- [ ] todo\n- [x] `done`\n\n```c\nint x;\n```\n\n> quote\n\n***\n",
    "\\begin{align}\n  \\frac{\\partial u}{\\partial t} &= \\alpha \\nabla^2 u \\\\\n\\end{align}",
    "if(a==b&&c!=d||!e){x+=y<<2>>1;z=~w^v|u&t;}else{return(*p)->q[i++]--;}",
    "diff --git a/x b/x\n@@ -1,3 +1,3 @@\n-old\n+new\n \n",
]

# Letters with a mark, in decomposed form; singletons; exclusions; reorderings; Hangul. NFC changes nearly all of them.
NORMALISED = [
    "e\u0301", "E\u0301cole", "a\u030a", "A\u030a", "\u212b", "\u2126", "\u212a", "\u1e9b\u0323", "d\u0323\u0307",
    "d\u0307\u0323", "q\u0307\u0323", "q\u0323\u0307", "\u0344", "\u0340\u0341\u0343", "\u0374\u037e\u0387", "\u0958\u095f",
    "\u09dc\u09dd\u09df", "\u0a33\u0a36\u0a59", "\u0b5c", "\u0f43\u0f69", "\u0f73\u0f75\u0f81", "\u2add\u0338", "\ufb1d\ufb2c",
    "\u1100\u1161", "\u1100\u1161\u11a8", "\uac00\u11a8", "\uac01\u11a8", "\u1112\u1161\u11ab\u1100\u1173\u11af", "\u11a8\u1161",
    "\U0001d15e\U0001d1c0", "\U0002f800\U0002fa1d", "\uf900\ufa0e\ufa30", "\u2000\u2001", "\u2329\u232a", "\u0338=\u0338<\u0338>\u0338",
    "\u1fef\u1ffd\u1f71\u1fbe", "o\u0328\u0304", "o\u0304\u0328", "\u01ed\u01ec", "a\u0315\u0300\u05ae\u0300\u0062", "\u0061\u0323\u0302",
    "\u1eb7\u1ead", "a\u0323\u0306\u0301", "\u0cc6\u0cc2\u0cd5", "\u0dd9\u0dcf\u0dca", "\u0dd9\u0dca\u0dcf", "\u30ab\u3099\u30cf\u309a", "\u3046\u3099",
    "\U00011099\U000110ba", "\U00011131\U00011127", "\U00011347\U0001133e", "\u0627\u0653\u0654\u0655", "\u0653\u0627", "\u0301", "\u0301e",
    " \u0301", "\n\u0301", "1\u0301", "e" + "\u0301" * 40, "a" + "\u0323\u0301" * 20, "\u0f71\u0f72\u0f74\u0f71",
]

EMOJI = [
    "👨‍👩‍👧‍👦", "👩🏽‍🚀", "🏳️‍🌈", "🇩🇪", "🇯🇵🇺", "1️⃣", "❤️‍🔥", "☺︎", "🤦🏿‍♂️", "🧑‍🤝‍🧑", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "😀", "✌🏻", "‍", "️", "🏽",
]

CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Re", "'vE", "'M", "'LL", "'lL", "'D",
                "'\u017f", "'x", "''s", "'l", "'r", "'", "\u2019s", "\u2019LL"]

SPACES = [" ", "\t", "\n", "\r", "\r\n", "\u00a0", "\u3000", "\u2003", "\u0085", "\u000b", "\u000c", "\u2028", "\u180e",
          "\u200b", "\u001c", "\u001f"]

# Later than Unicode 3.2, not later than 12, one or more for each plane that has characters.
LATER_RANGES = [
    (0x0250, 0x02AF), (0x0800, 0x0815), (0x1D00, 0x1DBF), (0x2C00, 0x2C2E), (0x2C60, 0x2C7F), (0x2DE0, 0x2DFF), (0xA640, 0xA66E),
    (0xA720, 0xA7AE), (0xAB70, 0xABBF), (0xA500, 0xA62B), (0x10000, 0x1000B), (0x10330, 0x1034A), (0x10400, 0x1044F),
    (0x10A00, 0x10A03), (0x11005, 0x1106F), (0x12000, 0x12399), (0x13000, 0x1342E), (0x16800, 0x16A38), (0x17000, 0x187EC),
    (0x1B000, 0x1B11E), (0x1D165, 0x1D169), (0x1D400, 0x1D454), (0x1D7CE, 0x1D7FF), (0x1E900, 0x1E943), (0x1E950, 0x1E959),
    (0x1EE00, 0x1EE03), (0x1F000, 0x1F02B), (0x1F100, 0x1F10C), (0x1F300, 0x1F5FF), (0x1F600, 0x1F64F), (0x1F680, 0x1F6C5),
    (0x1F900, 0x1F90B), (0x1F90D, 0x1F93F), (0x20000, 0x2A6D6), (0x2A700, 0x2B734), (0x2B820, 0x2CEA1), (0x2F800, 0x2FA1D), (0xE0100, 0xE01EF),
    (0xE0020, 0xE007F), (0xF0000, 0xF00FF), (0x10FF00, 0x10FFFD), (0x40000, 0x40010), (0x8FFFE, 0x8FFFF), (0xDFFFE, 0xDFFFF),
]

MARKS = [chr(c) for c in range(0x300, 0x370)] + list("\u0591\u05b0\u05bc\u064b\u0651\u093c\u094d\u0e48\u0eb8\u0f71\u3099\u309a\u20d0")


def characters_by_category():
    """Every character of Unicode 3.2 but U+0000, by general category."""
    old = unicodedata.ucd_3_2_0
    groups = {}
    for code in range(1, 0x110000):
        category = old.category(chr(code))
        if category not in ("Cn", "Cs", "Co"):
            groups.setdefault(category, []).append(chr(code))
    return groups


class Sample:
    def __init__(self, seed, specials):
        self.random = random.Random(seed)
        self.specials = specials
        self.groups = characters_by_category()

    def some(self, pool, low, high):
        return "".join(self.random.choice(pool) for _ in range(self.random.randint(low, high)))

    def sentences(self):
        for text in SENTENCES + CODE:
            yield text
            yield unicodedata.ucd_3_2_0.normalize("NFD", text)
            yield text.upper()
            yield text.swapcase()
            yield "  " + text.replace(" ", "  ") + " \n"
            yield text.replace(" ", self.random.choice(SPACES))
            yield text[self.random.randrange(len(text)):][: self.random.randint(1, 20)]

    def contractions(self):
        for c in CONTRACTIONS:
            for before in ("we", "WE", " ", "", "3", "!", "\n", "é", "we "):
                yield before + c + self.random.choice(["", " x", "x", "'s", "1", "\n"])

    def whitespace(self):
        for n in list(range(1, 36)) + [64, 100, 129, 257]:
            for space in (" ", "\n", "\t", "\r\n"):
                yield space * n
                yield "a" + space * n + self.random.choice(["b", "1", "!", "\n", "é", "中", "'s"])
        for _ in range(200):
            ends = self.random.choice(["", "a", "1", ".", "中"]), self.random.choice(["", "a", "1", ".", "中"])
            yield ends[0] + self.some(SPACES, 1, 8) + ends[1]

    def digits(self):
        digits = [chr(c) for start in (0x30, 0x660, 0x966, 0xFF10, 0x1D7CE) for c in range(start, start + 10)]
        for n in range(1, 20):
            yield self.some("0123456789", n, n)
            yield self.some(digits, n, n)
            yield " " + self.some("0123456789.,-+eE_ ", n, n)

    def punctuation(self):
        marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
        for m in marks:
            yield m * self.random.randint(2, 12)
            yield "a " + m + "b" + m + "\n"
        for _ in range(150):
            yield self.some(marks + " \n\r", 1, 12) + self.some("ab1 ", 0, 3)

    def added_tokens(self):
        for s in self.specials:
            yield from (s, s + s, " " + s, s + " ", "a" + s + "b", s[:-1], s[1:], s.upper(), s + "\n", s + "\u0338", "e\u0301" + s + "\u0301")
        for _ in range(120):
            pieces = self.specials + ["user\n", "Hi", " ", "\n\n", "<|", "|>", "<", "e\u0301", "中", "</", "think>"]
            yield self.some(pieces, 2, 9)

    def unicode(self):
        for code in range(1, 256):
            yield chr(code)
        for category, chars in sorted(self.groups.items()):
            for _ in range(14):
                yield self.some(chars, 1, 8)
                yield self.random.choice(["a", " ", "1", "."]) + self.some(chars, 1, 3) + self.random.choice(["b", " ", "2", ","])
        for low, high in LATER_RANGES:
            for _ in range(4):
                yield self.some([chr(c) for c in range(low, high + 1)], 1, 6)

    def normalised(self):
        yield from NORMALISED
        for text in NORMALISED:
            yield "x" + text + "y " + text
        bases = self.groups["Ll"] + self.groups["Lu"] + list("aeiouAEIOUcnsz<=>가각あカ अ")
        for _ in range(250):
            yield "".join(self.random.choice(bases) + self.some(MARKS, 0, 4) for _ in range(self.random.randint(1, 4)))

    def emoji(self):
        yield from EMOJI
        for _ in range(60):
            yield self.some(EMOJI + [" ", "a", "!"], 2, 6)

    def long(self):
        yield from ("a" * 1000, "ab" * 700, " " * 3000, "\n" * 300, "=" * 500, "0" * 400, "中" * 300, "é" * 300, "e\u0301" * 200, "😀" * 100)
        letters = "etaoinshrdlucmfwypvbgkqjxz"
        yield self.some(letters, 2000, 2000)
        yield self.some(letters + letters.upper() + "0123456789+/", 1500, 1500)
        yield self.some(self.groups["Lo"], 500, 500)
        yield SENTENCES[19].replace(" ", "") * 10

    def mixtures(self):
        pieces = SENTENCES + CODE + CONTRACTIONS + SPACES + EMOJI + NORMALISED + self.specials
        for _ in range(350):
            text = ""
            for _ in range(self.random.randint(2, 5)):
                piece = self.random.choice(pieces)
                start = self.random.randrange(len(piece))
                text += piece[start: start + self.random.randint(1, 15)]
            yield text

    def nul(self):
        yield from ("\0", "a\0b", "\0\0\0 \0", "\n\0\n", "é\0<|im_end|>\0")

    def texts(self):
        """All texts once, in a fixed order; the few with a NUL character come last."""
        kinds = (self.sentences, self.contractions, self.whitespace, self.digits, self.punctuation, self.added_tokens,
                 self.unicode, self.normalised, self.emoji, self.long, self.mixtures, self.nul)
        seen = {"": None}
        for kind in kinds:
            for text in kind():
                seen.setdefault(text)
        return list(seen)
