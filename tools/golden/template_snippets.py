"""The template language in small pieces, each a case of its own, so that a failure names the construct that fails.

SNIPPETS: section -> templates, one a line; in `whitespace`, \\n, \\r and \\t stand for the characters themselves.
`rare` holds what no published chat template is known to need: an implementation may refuse it, but must not render it
wrongly.
"""

VARIABLES = {
    "text": " hello World, o'neil #",
    "s": "Hello!",
    "accents": "ÉCOLE grün 中文 😀x",
    "numbers": [3, 1, 4, 1, 5, 9, 2, 6],
    "mixed": ["a", None, 2, True, 1.5],
    "empty": [],
    "words": ["banana", "Apple", "cherry"],
    "floats": [0.0, -0.0, 1.0, 0.1, 1.5, 1e16, 1e15, 123456789012345.6, 1e-4, 1e-5, 1.7976931348623157e308, 5e-324,
               3.141592653589793, 100.0, 2.5e20, 1e22, 0.30000000000000004],
    "value": {"text": "a \"b\" \\ / \n\t\u0001\u007f <i>é中😀</i> \u2028 'q'", "int": -12, "big": 9007199254740993,
              "list": [], "dict": {}, "nested": [[1, [2]], {"k": None}], "t": True, "f": False},
    "table": {"b": 2, "A": 3, "a": 1},
    "shadow": {"items": "mine", "keys": 1, "get": "g"},
    "map": {"a": 1, "b": {"c": [4, 5]}},
    "list": [1, [2], "three"],
    "rows": [[1, 2], [], [3]],
    "nested": [[1, [2, 3]], [4, [5, 6]]],
    "people": [
        {"name": "Ann", "age": 31, "city": "Rome", "admin": True},
        {"name": "Bob", "age": 25, "city": "Oslo", "admin": False},
        {"name": "cy", "age": 42, "city": "Rome"},
    ],
    "tree": [{"name": "r", "children": [{"name": "x"}, {"name": "y", "children": [{"name": "z"}]}]}, {"name": "s"}],
    "yes": True,
    "no": False,
    "nothing": None,
    "html": "<a href='x'>&\"</a>",
}

SNIPPETS = {
    "arithmetic": r"""
{{ 7 + 2 }} {{ 7 - 2 }} {{ 7 * 2 }}
{{ 7 / 2 }} {{ 6 / 2 }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 // -2 }} {{ 7.5 // 2 }}
{{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 % 2 }}
{{ 2 ** 10 }} {{ 2 ** -1 }}
{{ -2 ** 2 }} {{ 2 ** 3 ** 2 }}
{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 10 - 3 - 2 }} {{ 10 - -3 }} {{ +4 }}
{{ 0.1 + 0.2 }} {{ 1.0 }} {{ 1e16 }} {{ 1e-5 }} {{ 1e3 }} {{ 100000000000000000000.0 }} {{ 1.5e300 * 1e10 }}
{% for f in floats %}{{ f }} {% endfor %}
{{ 1_000 }} {{ 0x1f }} {{ 0b101 }} {{ 0o17 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1 + "a" }}
{{ "a" + 1 }}
{{ none + 1 }}
{{ true + 1 }}
{{ [1] + [2] }} {{ "ab" * 3 }} {{ [0] * 3 }}
""",
    "comparison": r"""
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ "a" < "b" }} {{ "Z" < "a" }} {{ "1" == 1 }} {{ 1 != 2 }}
{{ [1, 2] == [1, 2] }} {{ {"a": 1, "b": 2} == {"b": 2, "a": 1} }} {{ [1, 2] < [1, 3] }}
{{ none == false }} {{ true == 1 }} {{ none == none }} {{ "" == none }}
{{ 1 < "a" }}
{{ none < 1 }}
{{ true and false }} {{ true or false }} {{ not true }} {{ not "" }} {{ not 1 == 2 }}
{{ "" or "fallback" }} {{ "x" and "y" }} {{ 0 or none or [] or "end" }} {{ 0 and 1 }}
{{ "b" in "abc" }} {{ "" in "abc" }} {{ 1 in [1] and 2 not in [1] }} {{ "a" in table }} {{ "zz" not in table }}
{{ 1 in "1" }}
{{ 1 in 5 }}
{{ "yes" if yes else "no" }} {{ "only" if no }}| {{ 1 if no else 2 if no else 3 }} {{ ("a" if yes else "b") ~ "c" }}
{{ "a" ~ 1 ~ nothing ~ yes ~ 1.5 ~ missing ~ [1] }}
{{ (yes and no) == false }} {{ not (yes and no) }} {{ yes and not no or no }}
{{ yes == (not no) }}
""",
    "values": r"""
{{ nothing }} {{ yes }} {{ no }} {{ none }} {{ None }} {{ true }} {{ True }} {{ false }} {{ False }}
{{ numbers }} {{ mixed }} {{ empty }} {{ {} }} {{ map }}
{{ (1, 2) }} {{ (1,) }} {{ () }} {{ [] }} {{ [1, [2, "x"]] }}
{{ ["a", 'b"c', "d'e", "f'\"g", "\n\t\\", "é中😀", "\x01\x7f"] }}
{{ {"a": none, "b": [true, 1.0], 3: "c"} }}
{{ value }}
{{ 'single' }} {{ "double" }} {{ 'it\'s' }} {{ "tab\tnl\\n quote\" \x41\u00e9" }}
{{ "adjacent" "strings" }}
{{ "line\nbreak" }}
{{ "{{ literal }} {% x %}" }}
{{ s[0] }} {{ s[-1] }} {{ s[1:3] }} {{ s[::-1] }} {{ s[2:] }} {{ s[:-2] }} {{ s[100:] }}| {{ s[::2] }} {{ s[-3:-1] }}
{{ accents[0] }} {{ accents[-2] }} {{ accents | length }} {{ accents[1:3] }} {{ accents[::-1] }}
{{ list[0] }} {{ list[-1][0] }} {{ list[1:] }} {{ list[::-1] }} {{ list[:1] }} {{ list[5:] }} {{ list[-2:][0] }}
{{ map.a }} {{ map["b"].c }} {{ map["b"]["c"] }} {{ map.b.c[1] }} {{ map.b["c"][-1] }} {{ list.0 }} {{ list.1.0 }}
{{ shadow["items"] }} {{ shadow["keys"] }} {{ shadow.items is string }} {{ shadow["items"] is string }}
{{ table.keys() | list }} {{ table.values() | list }} {{ table.items() | list }}
{{ table.get("a") }} {{ table.get("zz") }} {{ table.get("zz", 9) }}
{{ missing }}|{{ map.missing }}|{{ map["missing"] }}|{{ list[99] }}|{{ s.missing }}|{{ nothing.x }}
{{ missing.x }}
{{ missing["x"] }}
{{ map.missing.x }}
{{ list[99].x }}
{{ missing() }}
{{ s.missing() }}
{{ missing + "x" }}
{{ "x" + missing }}
{{ missing | length }}
{{ missing == none }} {{ missing == "" }} {{ not missing }} {{ missing or "d" }} {{ (missing or {}).x }}
{% for x in missing %}x{% endfor %}nothing
{% if missing %}a{% else %}b{% endif %}{% if map.missing is defined %}c{% endif %}
{{ 5() }}
{{ numbers.x }}{{ 5.x }}
{{ 1[0] }}
{{ none[0] }}
""",
    "filters": r"""
{{ text | upper }}|{{ text | lower }}|{{ text | title }}|{{ text | capitalize }}|{{ text | trim }}|{{ text | length }}|{{ text | count }}
{{ accents | upper }}|{{ accents | lower }}|{{ accents | title }}|{{ accents | capitalize }}
{{ "\n\t x \r\n" | trim }}|{{ "\u00a0x\u3000\u2028" | trim }}|{{ "xxaxx" | trim("x") }}|{{ text | trim(" #") }}
{{ text | replace("o", "0") }}|{{ text | replace("o", "0", 1) }}|{{ "aaa" | replace("", "-") }}|{{ 121 | replace(1, 3) }}
{{ missing | default("d") }}|{{ "" | default("d") }}|{{ "" | default("d", true) }}|{{ none | default("d") }}|{{ none | d("d", boolean=true) }}|{{ map.missing | default([]) }}|{{ missing | default }}
{{ numbers | first }} {{ numbers | last }} {{ empty | first }} {{ empty | last }} {{ "abc" | first }} {{ "abc" | last }}
{{ numbers | join }} {{ numbers | join(", ") }} {{ mixed | join("+") }} {{ empty | join(",") }} {{ "abc" | join("-") }} {{ people | join(", ", attribute="name") }}
{{ numbers | length }} {{ map | length }} {{ empty | length }} {{ "é中😀" | length }}
{{ 5 | length }}
{{ numbers | list }} {{ "abc" | list }} {{ table | list }}
{{ numbers | sum }} {{ numbers | max }} {{ numbers | min }} {{ empty | sum }} {{ people | sum(attribute="age") }}
{{ numbers | sort }} {{ numbers | sort(reverse=true) }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ people | sort(attribute="age") | map(attribute="name") | join(" ") }}
{{ numbers | reverse | list }} {{ "abc" | reverse }} {{ numbers | unique | list }} {{ ["a", "A", "b"] | unique | list }}
{{ people | map(attribute="name") | list }} {{ people | map(attribute="admin", default="?") | list }} {{ words | map("upper") | list }} {{ words | map("length") | list }} {{ words | map("replace", "a", "4") | join("/") }}
{{ rows | map("first") | list }} {{ nested | map(attribute=1) | list }} {{ nested | map(attribute="1.0") | list }}
{{ people | selectattr("admin") | map(attribute="name") | list }} {{ people | rejectattr("admin") | map(attribute="name") | list }} {{ people | selectattr("admin", "defined") | list | length }}
{{ people | selectattr("age", ">", 30) | map(attribute="name") | list }} {{ people | selectattr("city", "equalto", "Rome") | list | length }} {{ people | rejectattr("city", "eq", "Rome") | list | length }} {{ people | selectattr("city", "in", ["Oslo"]) | first }}
{{ numbers | select("odd") | list }} {{ numbers | reject("even") | list }} {{ numbers | select("gt", 3) | list }} {{ mixed | select | list }} {{ mixed | reject("none") | list }} {{ mixed | select("string") | list }}
{{ numbers | map("odd") | list }}
{{ numbers | select("nonsense") | list }}
{{ numbers | nonsense }}
{{ value | tojson }}
{{ value | tojson(indent=2) }}
{{ value | tojson(indent=4) }}
{{ value | tojson(separators=(",", ":")) }}
{{ table | tojson(sort_keys=true) }} {{ "é中" | tojson(ensure_ascii=true) }} {{ [] | tojson(indent=2) }} {{ {"a": [], "b": {}} | tojson(indent=2) }}
{{ text | tojson }} {{ numbers | tojson }} {{ none | tojson }} {{ true | tojson }} {{ 1.0 | tojson }} {{ "" | tojson }} {{ {"b": 1, "a": [true, none]} | tojson }}
{{ floats | tojson }}
{{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }}
{{ missing | tojson }}
{{ html | tojson }} {{ html }} {{ html | safe }}
{{ "12" | int + 1 }} {{ "x" | int }} {{ "x" | int(7) }} {{ 3.7 | int }} {{ -3.7 | int }} {{ " 5 " | int }} {{ "3.9" | int }} {{ "" | int }}
{{ "3.5" | float }} {{ "x" | float }} {{ 3 | float }} {{ "1e3" | float }}
{{ 2.5 | round }} {{ 3.5 | round }} {{ 3.14159 | round(2) }} {{ 2.1 | round(0, "ceil") }} {{ 2.9 | round(method="floor") }} {{ -3 | abs }} {{ 7 | round }}
{{ 7 | string + "!" }} {{ none | string }} {{ [1, "a"] | string }} {{ 1.0 | string | length }}
{{ table | dictsort }} {{ table | dictsort(true) }} {{ table | dictsort(by="value") }} {{ table | dictsort(reverse=true) }}
{{ table | items | list }} {{ missing | items | list }}
{{ "a\nb\n\nc" | indent }}|{{ "a\nb\n\nc" | indent(2, true) }}|{{ "a\nb" | indent(first=true, width=3) }}|{{ "a\n\nb" | indent(2, blank=true) }}
{{ "abc" | upper | lower | title }} {{ (numbers | first) + (numbers | last) }} {{ numbers | length + 1 }} {{ -3 | abs }} {{ (1 - 3) | abs }}
{{ "a" ~ "b" | upper }} {{ ("a" ~ "b") | upper }} {{ ("x" * 3) | length }} {{ not empty | length }}
{{ "x" * 3 | length }}
{{ html | escape }} {{ html | e }}
""",
    "tests": r"""
{{ missing is defined }} {{ map.a is defined }} {{ map.z is defined }} {{ missing is undefined }} {{ map.a is not undefined }}
{{ nothing is none }} {{ 0 is none }} {{ nothing is not none }} {{ none is defined }}
{{ "s" is string }} {{ 1 is string }} {{ nothing is string }} {{ list is string }} {{ 1 is not string }}
{{ 1 is number }} {{ 1.5 is number }} {{ true is number }} {{ "1" is number }}
{{ 1 is integer }} {{ 1.0 is integer }} {{ true is integer }} {{ 1.5 is float }} {{ 1 is float }}
{{ true is boolean }} {{ 1 is boolean }} {{ yes is true }} {{ 1 is true }} {{ no is false }} {{ 0 is false }}
{{ map is mapping }} {{ list is mapping }} {{ "s" is mapping }} {{ nothing is mapping }}
{{ list is sequence }} {{ "s" is sequence }} {{ map is sequence }} {{ 1 is sequence }} {{ list is iterable }} {{ "s" is iterable }} {{ map is iterable }} {{ 1 is iterable }} {{ none is iterable }}
{{ 5 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }}
{{ 1 is eq 1 }} {{ 1 is equalto 1 }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 3 is ge 3 }} {{ 3 is gt 3 }} {{ 3 is le 2 }} {{ 1 is in [1, 2] }} {{ "z" is in "abc" }}
{{ "ABC" is upper }} {{ "abc" is lower }} {{ nothing is sameas none }} {{ 1 is sameas true }}
{{ not 1 is string }} {{ not missing is defined }} {{ 1 is number and 2 is number }} {{ 1 + 1 is number }} {{ yes is defined and yes }}
{{ 1 is == 1 }}
{{ 1 is nonsense }}
{{ range is callable }} {{ s is callable }} {{ s.upper is callable }}
""",
    "methods": r"""
{{ s.upper() }} {{ s.lower() }} {{ s.title() }} {{ s.capitalize() }} {{ "aB".swapcase() }}
{{ s.startswith("He") }} {{ s.startswith("") }} {{ s.endswith("o!") }} {{ s.endswith(("x", "o!")) }} {{ s.startswith("l", 2) }}
{{ s.find("l") }} {{ s.find("z") }} {{ s.rfind("l") }} {{ s.index("e") }} {{ s.count("l") }} {{ accents.find("中") }}
{{ s.index("z") }}
{{ s.replace("l", "L") }} {{ s.replace("l", "L", 1) }} {{ s.replace("", "-") }}
{{ "  x ".strip() }}|{{ "  x ".lstrip() }}|{{ "  x ".rstrip() }}|{{ "xxaxx".strip("x") }}|{{ "abcba".lstrip("ab") }}|{{ "\n\nx\n".strip("\n") }}|{{ "\u00a0x\u3000".strip() }}|{{ "abc".strip("") }}
{{ "a,b,,c".split(",") }} {{ " a  b ".split() }} {{ "a,b,c".split(",", 1) }} {{ "a b c".split(none, 1) }} {{ "".split() }} {{ "".split(",") }} {{ "a,b,c".rsplit(",", 1) }} {{ "x</think>y</think>z".split("</think>")[-1] }}
{{ "a=b=c".partition("=") }} {{ "a=b=c".rpartition("=") }} {{ "abc".partition("z") }} {{ "a\nb\r\nc\u2028d\n".splitlines() }}
{{ "-".join(["a", "b"]) }} {{ "".join(words) }}
{{ "-".join([1]) }}
{{ "prefix-x".removeprefix("prefix-") }} {{ "x.py".removesuffix(".py") }} {{ "x".removeprefix("zz") }}
{{ s.isalpha() }} {{ "12".isdigit() }} {{ "".isdigit() }} {{ "aB1".isalnum() }} {{ " ".isspace() }} {{ "AB".isupper() }} {{ "ab".islower() }} {{ "½".isnumeric() }} {{ "1.5".isdecimal() }}
{{ "o'neil mc-x 3d".title() }}
{{ s.split("l")[0].strip().upper() }}
{{ s.split("")[0] }}
{{ "%s is %d and %.2f%%" % ("x", 3, 2.5) }} {{ "one %s" % "arg" }} {{ "%s" % none }} {{ "%5d|%-5d|%05d" % (3, 3, 3) }}
{{ "{} and {}".format(1, "b") }} {{ "{name}-{0}".format("z", name="n") }}
{{ numbers.index(4) }} {{ numbers.count(1) }}
{{ numbers.append(1) }}
{{ map.update({"x": 1}) }}
{{ map.__class__ }}
{{ s.__class__.__mro__ }}
""",
    "loops": r"""
{% for x in words %}{{ loop.index }}/{{ loop.length }} {{ loop.index0 }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.first }} {{ loop.last }} {{ x }};{% endfor %}
{% for x in numbers %}[{{ loop.previtem | default("-") }}<{{ x }}>{{ loop.nextitem | default("-") }}]{{ loop.cycle("odd", "even") }}{{ loop.changed(x) }} {% endfor %}
{% for x in empty %}{{ x }}{% else %}no items{% endfor %} {% for x in numbers if x > 10 %}{{ x }}{% else %}none large{% endfor %}
{% for x in mixed if x is not none and x != 2 %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ ", " if not loop.last }}{% endfor %}
{% for x in numbers %}{% if x == 5 %}{% break %}{% endif %}{% if x == 1 %}{% continue %}{% endif %}{{ x }};{% endfor %}
{% for row in rows %}{% set outer = loop %}{% for cell in row %}{{ outer.index }}.{{ loop.index }}={{ cell }} {% endfor %}| {% endfor %}
{% for row in rows %}{% for cell in row %}{% if cell == 2 %}{% break %}{% endif %}{{ cell }}{% endfor %};{% endfor %}
{% for key, value in table.items() %}{{ key }}={{ value }} {% endfor %}
{% for key in table %}{{ key }} {% endfor %}{% for c in "a中b" %}<{{ c }}>{% endfor %}
{% for key, value in table | dictsort %}{{ key }}={{ value }} {% endfor %}
{% for a, (b, c) in nested %}{{ a }}{{ b }}{{ c }} {% endfor %}
{% for a, b in rows %}{{ a }}{% endfor %}
{% for x in 5 %}{{ x }}{% endfor %}
{% for x in none %}{{ x }}{% endfor %}
{% for i in range(3) %}{{ i }}{% endfor %} {% for i in range(5, 1, -2) %}{{ i }}{% endfor %} {{ range(2, 6) | list }} {{ range(0) | list }}
{% for m in numbers[::-1] %}{{ m }} {% endfor %}{% for m in numbers[2:-2] %}{{ m }} {% endfor %}{% for m in numbers | reverse %}{{ m }} {% endfor %}
{% set ns = namespace(total=0, seen=[]) %}{% for x in numbers %}{% set ns.total = ns.total + x %}{% set ns.seen = ns.seen + [x] %}{% endfor %}{{ ns.total }} {{ ns.seen }}
{% set x = "outside" %}{% for x in numbers %}{% set y = x %}{% endfor %}{{ x }} {{ y is defined }}
{% set x = 1 %}{% for i in range(2) %}{{ x }}{% set x = x + 10 %}{{ x }} {% endfor %}{{ x }}
{% if yes %}{% set z = 1 %}{% endif %}{{ z }}{% if no %}{% set w = 1 %}{% endif %}{{ w is defined }}
{% for x in range(3) %}{% for x in "ab" %}{{ x }}{% endfor %}{{ x }}{% endfor %}
{{ loop is defined }}
{% for i in range(100000) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}
""",
    "statements": r"""
{% if yes %}A{% elif no %}B{% else %}C{% endif %}{% if no %}A{% elif yes %}B{% endif %}{% if empty %}A{% else %}C{% endif %}{% if 0 %}x{% endif %}{% if "0" %}y{% endif %}{% if 0.0 %}z{% endif %}{% if {} %}w{% endif %}
{% set a, b = 1, 2 %}{{ a }}{{ b }} {% set a, b = b, a %}{{ a }}{{ b }} {% set c = 1, 2 %}{{ c }}
{% set d %}block {{ yes }}{% endset %}{{ d }}|{{ d | length }}|{% set e | upper %}shout{% endset %}{{ e }}
{% set ns = namespace(x=1) %}{% set ns.x = 2 %}{{ ns.x }}{% set ns.y = "new" %}{{ ns.y }}{{ ns.z is defined }}{% if ns.x == 2 %}two{% endif %}
{% set ns = namespace({"a": 1}) %}{{ ns.a }}{{ namespace().x is defined }}
{% set map.a = 5 %}
{% macro m(a, b="B") %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=1, a=2) }}{{ m() }}
{% macro m(a) %}{{ a }}{{ s }}{% set s = "inner" %}{{ s }}{% endmacro %}{{ m(1) }}{{ s }}{{ m(2) | length }}
{% macro f(n) %}{{ n }}{% if n > 0 %},{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
{% macro m(a=s, b=a) %}{{ a }}-{{ b }}{% endmacro %}{{ m() }} {{ m("x") }}
{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}body {{ s }}{% endcall %}
{% macro m(x) %}{{ x ~ "&" }}{% endmacro %}{{ m("<") + ">" }}{% set t = m("a") %}{{ t ~ t }}
{% with x = 5, y = 6 %}{{ x + y }}{% endwith %} {{ x is defined }}
{% raw %}{{ not rendered }} {% if %}{% endraw %}
{# comment {{ x }} {% if %} #}after {#- trimmed -#} x
{{ raise_exception("stop here") }}
{% if no %}{{ raise_exception("not reached") }}{% endif %}fine
{{ raise_exception("with " ~ s) }}
{% filter upper %}block {{ text }}{% endfilter %}
{% generation %}inside {{ s }}{% endgeneration %}
{{ dict(a=1, b="x") }} {{ dict(a=1).a }}
{% if yes %}unclosed
{{ unclosed
{{ }}
{% nonsense %}
{% endif %}
{{ 1 + }}
{{ "unclosed }}
{{ a b }}
{% for x in %}{% endfor %}
{{ [1, 2 }}
{# unclosed
{% set 5 = x %}
""",
    "whitespace": r"""
a\n  {% if yes %}\n    b\n  {% endif %}\nc\n
a\n{%- if yes -%}\n    b\n{%- endif -%}\nc
  {{ "x" }}  \n  {{- "y" }}  \n  {{ "z" -}}  \n w\n
\t{# comment on its own line #}\nnext {# inline #} same\n
  {%+ if yes %}kept{% endif +%}\nnewline kept\n
a{% if yes %}\nb{% endif %}\n\nc
a {% set x = 1 %}\n {% set y = 2 %} \nb
{% for i in [1, 2] %}\n  item {{ i }}\n{% endfor %}\nend\n
{% raw %}\n raw {{ text }}\n{% endraw %}\nafter
{%- raw -%}  trimmed  {%- endraw -%}  x
one newline is dropped at the end\n
two newlines at the end\n\n
carriage return\r\n{% if yes %}\r\nx{% endif %}\r\n
{{ "no" }}\n{{- "trim" -}}\n{{ "both" }}
text { braces } }} %} #} { { %
{{ {"a": {"b": 1}}["a"]["b"] }} {{ {} }}{{ {"a": 1} }}
{%if yes%}tight{%endif%}{{s}}{{-s-}} x
  {%- set x = 1 -%}  \n  {{ x }}
{% if yes -%}\n   a\n{%- else -%}\n   b\n{%- endif %}\n   c
""",
    "rare": r"""
{{ "%s=%d" | format("n", 3) }} {{ "hello world foo" | wordcount }} {{ "hello big world" | truncate(8) }} {{ "x" | center(5) }}|
{{ "a b/c?d=é" | urlencode }} {{ [[1, 2], [3]] | sum(start=[]) }} {{ numbers | slice(3) | list }} {{ numbers | batch(3, 0) | list }}
{% for group in people | groupby("city") %}{{ group.grouper }}: {{ group.list | map(attribute="name") | join(", ") }}; {% endfor %}
{% for node in tree recursive %}{{ node.name }}{% if node.children %}({{ loop(node.children) }}){% endif %}{{ " " if not loop.last }}{% endfor %}
{% macro m(a) %}{{ varargs | join("+") }}{{ kwargs.k }}{% endmacro %}{{ m(1, 2, 3, k=4) }}
{% macro m() %}{{ caller(1) }}{{ caller(2) }}{% endmacro %}{% call(i) m() %}<{{ i }}>{% endcall %}
{{ "0x1f" | int(base=16) }} {{ numbers | random is number }} {{ "a\nb" | wordwrap(3) | length }} {{ "<b>x</b> y" | striptags }}
{{ joiner("|")() }}{% set c = cycler("a", "b") %}{{ c.next() }}{{ c.next() }}{{ c.next() }} {{ "upper" is filter }} {{ "odd" is test }}
{{ "7".zfill(3) }} {{ "ab".center(6, "*") }} {{ "x".ljust(3) }}| {{ "x".rjust(3) }} {{ "a\tb".expandtabs(4) }} {{ "ß".casefold() }}
{{ 1234567.891 | filesizeformat }} {{ "Foo" | xmlattr if no else "" }} {{ words | tojson | forceescape }} {{ value.nested | pprint }}
{{ "ß".upper() }} {{ "İ".lower() | length }} {{ "ŉ".title() }} {{ "ΑΣ".lower() }}
{{ (html | escape) ~ "<" }} {{ (html | safe) + "<b>" }}
{{ ("a", "b") | tojson }} {{ table.copy() }} {{ "a".encode() }} {{ 5 .real if no else 0 }}
""",
}
