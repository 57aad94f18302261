#!/usr/bin/env python3
"""The page that smoe http serves, in headless Chromium: sends, streams, stops, edits, survives a
reload, and never makes markup of what a model says.

Needs Chromium and playwright (SMOE_PYTHON = a Python that has it); without them every case is
skipped. SMOE_SHOTS=FOLDER keeps pictures, dark and light, wide and narrow."""

import json
import os
import re
import shutil
import sys
import unittest
from pathlib import Path

from harness import TIMEOUT_S, TINY, main, shatter
from http_rig import Server

PYTHON = os.environ.get("SMOE_PYTHON")
if PYTHON and "SMOE_PAGE_CHILD" not in os.environ:  # playwright lives in another Python
    os.execve(PYTHON, [PYTHON, *sys.argv], {**os.environ, "SMOE_PAGE_CHILD": "1"})

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None
WHY_NOT = (None if CHROMIUM and sync_playwright else
           "no Chromium" if sync_playwright else "no playwright in this Python (SMOE_PYTHON)")
TIMEOUT_MS = TIMEOUT_S * 1000

HOSTILE = """# A <b>title</b>

<script>window.pwned = 1</script> <img src=x onerror="window.pwned = 1">
[one](javascript:window.pwned=1) [two](JaVaScRiPt:alert(1)) [three](data:text/html,x)
![four](https://example.com/a.png) [five](https://example.com/?a=1&b=<i>) <https://example.org>

| a | b |
|---|--:|
| <i>x</i> | `</td><script>window.pwned = 1</script>` |

```html
<script>window.pwned = 1</script>
```
- **bold *both* ** and _more_
"""

# Every cut of a text must show what the whole shows; and no text may take long.
PROPERTY = """() => {
  const atoms = ['a', 'b ', '\\n', '\\n\\n', '*', '**', '_', '`', '```', '~~~', '> ', '- ', '1. ',
    '  ', '    ', '# ', '|', '|--|', '---', '[x](http://a)', '<b>', '\\\\', 'é', 'https://x.y ',
    '***', '\\t', '\\r\\n', '+ ', '2) ', ':-: '];
  let seed = 11;
  const random = (n) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor(n * seed / 2147483648);
  };
  const different = [];
  for (let round = 0; round < 600; round++) {
    let text = '';
    for (let n = 1 + random(25); n > 0; n--) text += atoms[random(atoms.length)];
    const whole = document.createElement('div'), grown = document.createElement('div');
    new MarkdownView(whole).update(text);
    const view = new MarkdownView(grown);
    for (let i = 0; i <= text.length; i++) view.update(text.slice(0, i));
    if (whole.innerHTML !== grown.innerHTML) different.push(text);
  }
  for (const text of ['*a '.repeat(30000), '['.repeat(100000), '`a'.repeat(50000),
    '> '.repeat(30000) + 'x', '- '.repeat(30000) + 'x', '#' + ' '.repeat(100000) + 'x',
    '|'.repeat(50000) + '\\n' + '|-'.repeat(50000), '[a]('.repeat(20000), '**a*'.repeat(30000)]) {
    new MarkdownView(document.createElement('div')).update(text);
  }
  return different;
}"""


def stream(*pieces, finish="stop"):
    """The body of a streamed answer."""
    chunks = [{"choices": [{"index": 0, "delta": {"content": p}, "finish_reason": None}]}
              for p in pieces]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"


@unittest.skipIf(WHY_NOT, WHY_NOT)
class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        models = [shatter(TINY, "q4_K", "q8_0", name=n).stem for n in ("one", "two")]
        cls.server = Server(*models).wait_until_ready()
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM,
                                                     args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.server.stop()

    def open(self, **options):
        context = self.browser.new_context(**options)
        context.set_default_timeout(TIMEOUT_MS)
        context.add_init_script("localStorage.setItem('temperature', '0')")
        self.addCleanup(context.close)
        page = context.new_page()
        page.problems, page.asked = [], []
        page.on("pageerror", lambda e: page.problems.append(str(e)))
        page.on("console", lambda m: m.type == "error" and page.problems.append(m.text))
        page.on("request", lambda r: page.asked.append(r.url))
        page.goto(self.url())
        page.get_by_text("Ready.").wait_for()
        return page

    def url(self):
        return f"http://127.0.0.1:{self.server.port}/"

    def send(self, page, text):
        n = page.locator("li.assistant").count()
        page.fill("#input", text)
        page.keyboard.press("Enter")
        page.locator("li.assistant").nth(n).locator(".actions button").first.wait_for()
        return page.locator("li.assistant .markdown").nth(n).inner_text()

    def answer_with(self, page, *pieces):
        page.route("**/v1/chat/completions", lambda route: route.fulfill(
            status=200, content_type="text/event-stream", body=stream(*pieces)))

    def check(self, page):
        self.assertEqual(page.problems, [])
        self.assertEqual([u for u in page.asked if not u.startswith((self.url(), "data:"))], [])

    def test_a_conversation(self):
        page = self.open()
        self.assertEqual(self.send(page, "What is the capital of France?"),
                         self.server.ask("What is the capital of France?", model="one",
                                         repetition_penalty=None))
        self.assertIn("tok/s", page.locator("li.assistant .actions span").inner_text())
        self.send(page, "And of Spain?")
        self.assertEqual(page.locator("#messages > li").count(), 4)
        page.locator("#context", has_text=re.compile("^[1-9]")).wait_for()
        self.check(page)

    def test_a_reload_keeps_it(self):
        page = self.open()
        answer = self.send(page, "Hello!")
        page.reload()
        page.locator("li.assistant .markdown").wait_for()
        self.assertEqual(page.locator("li.assistant .markdown").inner_text(), answer)
        self.assertEqual(page.locator("#conversations li").count(), 1)
        page.click("#new")
        self.assertEqual(page.locator("#messages > li.user").count(), 0)
        page.locator("#conversations .open").click()
        self.assertEqual(page.locator("#messages > li.user").count(), 1)
        page.once("dialog", lambda d: d.accept())
        page.locator("#conversations .delete").click()
        page.locator("#conversations li").wait_for(state="detached")
        page.reload()
        page.get_by_text("Ready.").wait_for()
        self.assertEqual(page.locator("#conversations li").count(), 0)
        self.check(page)

    def test_edit_and_again(self):
        page = self.open()
        answer = self.send(page, "What is the capital of France?")
        self.send(page, "Thanks")
        page.locator("li.user").nth(1).get_by_text("Edit").click()
        self.assertEqual(page.input_value("#input"), "Thanks")
        self.assertEqual(page.locator("#messages > li").count(), 2)
        page.fill("#input", "")
        page.keyboard.press("ArrowUp")
        self.assertEqual(page.input_value("#input"), "What is the capital of France?")
        self.assertEqual(page.locator("#messages > li.user").count(), 0)
        self.assertEqual(self.send(page, "What is the capital of France?"), answer)
        page.get_by_text("Again").click()
        page.locator("li.assistant .actions button").first.wait_for()
        self.assertEqual(page.locator("#messages > li").count(), 2)
        self.check(page)

    def test_stop_keeps_what_came(self):
        page = self.open()
        page.evaluate("""() => { window.fetch = async (path, options) => {
          const body = new ReadableStream({start(sink) {
            const encode = (text) => sink.enqueue(new TextEncoder().encode(text));
            encode(': prefill 10/40\\n\\n');
            const chunk = JSON.stringify({choices: [{index: 0, delta: {content: 'half a'}}]});
            setTimeout(() => encode(`data: ${chunk}\\n\\n`), 300);
            options.signal.addEventListener('abort',
              () => sink.error(new DOMException('stopped', 'AbortError')));
          }});
          return new Response(body, {status: 200});
        }; }""")
        page.fill("#input", "Go on for ever")
        page.keyboard.press("Enter")
        page.get_by_text("Reading 10 of 40 tokens").wait_for()
        page.get_by_text("half a").wait_for()
        self.assertFalse(page.locator("#send").is_visible())
        page.keyboard.press("Escape")
        page.get_by_text("Stopped here.").wait_for()
        self.assertEqual(page.locator("li.assistant .markdown").inner_text(), "half a")
        self.assertTrue(page.locator("#send").is_visible())
        self.check(page)

    def test_an_error_is_said(self):
        page = self.open()
        page.route("**/v1/chat/completions", lambda route: route.fulfill(
            status=400, content_type="application/json",
            body=json.dumps({"error": {"message": "too <b>long</b>"}})))
        page.fill("#input", "x")
        page.keyboard.press("Enter")
        self.assertEqual(page.locator(".error").inner_text(), "too <b>long</b>")
        page.unroute("**/v1/chat/completions")
        page.get_by_text("Again").click()
        page.locator("li.assistant .actions span").wait_for()
        self.assertEqual(page.locator(".error").count(), 0)

    def test_a_model_cannot_make_markup(self):
        page = self.open()
        for pieces in ([HOSTILE], list(HOSTILE)):
            self.answer_with(page, *pieces)
            page.click("#new")
            self.send(page, "<img src=x onerror='window.pwned = 1'>")
            body = page.locator("#messages")
            self.assertIsNone(page.evaluate("window.pwned || null"))
            self.assertEqual(body.locator("script, img, iframe, i, b").count(), 0)
            self.assertEqual(
                body.locator("a").evaluate_all("all => all.map((a) => a.href)"),
                ["https://example.com/a.png", "https://example.com/?a=1&b=",
                 "https://example.org/"])
            self.assertEqual(body.locator("figure.code code").inner_text(),
                             "<script>window.pwned = 1</script>")
        self.check(page)

    def test_markdown_grows_as_it_would_be_whole(self):
        page = self.open()
        self.assertEqual(page.evaluate(PROPERTY), [])

    def test_settings_are_sent(self):
        page = self.open()
        bodies = []
        page.route("**/v1/chat/completions", lambda route: (
            bodies.append(json.loads(route.request.post_data)),
            route.fulfill(status=200, content_type="text/event-stream", body=stream("yes"))))
        page.click("#settings-button")
        page.fill("#system", "Be brief.")
        page.fill("#temperature", "0")
        page.fill("#max_tokens", "7")
        page.get_by_text("Close").click()
        self.send(page, "Well?")
        self.assertEqual(bodies[0]["messages"], [{"role": "system", "content": "Be brief."},
                                                 {"role": "user", "content": "Well?"}])
        self.assertEqual((bodies[0]["temperature"], bodies[0]["max_tokens"]), (0, 7))
        page.reload()
        page.get_by_text("Ready.").wait_for()
        page.click("#settings-button")
        self.assertEqual(page.input_value("#max_tokens"), "7")
        self.assertEqual(page.input_value("#system"), "Be brief.")

    def test_reasoning_is_folded(self):
        page = self.open()
        thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "<b>hm</b>, 2"}}]}
        page.route("**/v1/chat/completions", lambda route: route.fulfill(
            status=200, content_type="text/event-stream",
            body=f"data: {json.dumps(thought)}\n\n" + stream("It is **2**.")))
        self.assertEqual(self.send(page, "1 + 1?"), "It is 2.")
        text = page.locator("details.think div")
        self.assertFalse(text.is_visible())
        page.locator("details.think summary").click()
        self.assertEqual(text.inner_text(), "<b>hm</b>, 2")
        self.check(page)

    def test_another_model(self):
        page = self.open()
        self.assertEqual(page.locator("#model option").all_inner_texts(), ["one", "two"])
        page.select_option("#model", "two")
        self.send(page, "Hello!")
        self.assertEqual(self.server.get("/health").json()["model"], "two")
        page.reload()
        page.get_by_text("Ready.").wait_for()
        self.assertEqual(page.input_value("#model"), "two")
        page.select_option("#model", "one")
        self.send(page, "Hello!")
        self.assertEqual(self.server.get("/health").json()["model"], "one")
        self.check(page)

    def test_keyboard_alone(self):
        page = self.open()
        page.keyboard.type("Hello!")
        page.keyboard.press("Enter")
        page.locator("li.assistant .actions button").first.wait_for()
        page.keyboard.press("Control+Shift+O")
        self.assertEqual(page.locator("#messages > li.user").count(), 0)
        names = set()
        for _ in range(14):
            page.keyboard.press("Tab")
            names.add(page.evaluate("(({id, className}) => id || className)"
                                    "(document.activeElement)"))
        self.assertTrue({"new", "open", "delete", "model", "settings-button"} <= names, names)

    def test_pictures(self):
        for scheme in ("light", "dark"):
            for name, size in (("wide", (1200, 850)), ("narrow", (390, 800))):
                page = self.open(color_scheme=scheme,
                                 viewport={"width": size[0], "height": size[1]})
                self.answer_with(page, HOSTILE.replace("window.pwned = 1", "1"))
                self.send(page, "Show me what you can")
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), size[0])
                if "SMOE_SHOTS" in os.environ:
                    folder = Path(os.environ["SMOE_SHOTS"])
                    page.screenshot(path=folder / f"page-{scheme}-{name}.png")
                self.check(page)


if __name__ == "__main__":
    main()
