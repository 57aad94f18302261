"""The console at a terminal: prompt, editing, dim lines, Ctrl-C, an engine that misbehaves."""
import time

from chat_rig import Terminal, contains, equal, main


def test_conversation():
    t = Terminal(['answer', 'Hello 中 😀'])
    t.expect(r'\[bytes, 1000 tokens of context; /help lists the commands\]')
    t.prompt()
    t.line('hi')
    t.expect(r'\nHello 中 😀\r\n')
    line = t.expect(r'\x1b\[2m\[(\d+) tokens, [\d.]+ tok/s, first token after [\d.]+ s\]\x1b\[0m')
    equal(line.group(1), '14')
    t.prompt()
    t.line('/help')
    t.expect(r'/history')
    t.prompt()
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_end_of_input():
    t = Terminal(['answer', 'A'])
    t.prompt()
    t.type('\x04')
    screen, status = t.finish()
    equal(status, 0)
    equal(screen.endswith('\n'), True)


def test_end_of_input_typed_ahead():
    t = Terminal(['slow', 'xyz'], ['--max-tokens', '30'])
    t.prompt()
    t.line('hi')
    t.expect('xyz')
    t.type('\x04')
    t.expect('stopped at --max-tokens')
    equal(t.finish()[1], 0)


def test_line_editing_and_history():
    t = Terminal(['echo'])
    t.prompt()
    t.line('hallo\x01\x06\x06x\x05é')  # to the start, two right, insert, to the end
    t.expect(r'<user>haxlloé</><assistant>')
    t.prompt()
    t.line('/reset')
    t.prompt()
    t.line('\x1b[A\x1b[A')  # up twice: the message again
    t.expect(r'<user>haxlloé</><assistant>')
    t.prompt()
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_no_color_and_dumb():
    for term, env in (('xterm', {'NO_COLOR': '1'}), ('dumb', {})):
        t = Terminal(['answer', 'A'], term=term, env=env)
        t.prompt()
        t.line('hi')
        line = t.expect(r'A\r\n(.*?)\[1 token, 500.0 tok/s, first token after [\d.]+ s\]')
        equal(line.group(1), '')
        t.prompt()
        t.line('/quit')
        screen, status = t.finish()
        equal(status, 0)
        if term == 'dumb':
            equal('\x1b' in screen, False)


def test_progress():
    t = Terminal(['prefill', 'A'])
    t.prompt()
    t.line('hi')
    t.expect(r'\r\x1b\[K\x1b\[2m\[reading [5-9] of 10 tokens, [5-9]0 %\]')
    t.expect(r'\r\x1b\[KA\r\n')
    t.prompt()
    t.line('/quit')
    t.finish()


def test_model_output_cannot_steer_the_terminal():
    t = Terminal(['answer', 'a\x1b[2Jb\x07c'])
    t.prompt()
    t.line('hi')
    t.expect(r'\na\[2Jbc\r\n')
    t.line('/quit')
    t.finish()


def test_ctrl_c_stops_the_answer():
    t = Terminal(['slow', 'xyz'])
    t.prompt()
    t.line('hi')
    t.expect('xyzxyz')
    t.ctrl_c()
    t.expect(r'\[\d+ tokens, [^\]]*, stopped\]')
    t.prompt()
    t.line('/history')
    t.expect(r'assistant \(cut short\):')
    t.expect('xyzxyz')
    t.prompt()
    time.sleep(1.1)
    t.line('again')  # the session goes on
    t.expect('xyzxyz')
    t.ctrl_c()
    t.expect('stopped')
    t.prompt()
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_second_ctrl_c_leaves():
    t = Terminal(['slow', 'xyz'])
    t.prompt()
    t.line('hi')
    t.expect('xyzxyz')
    t.ctrl_c()
    time.sleep(0.05)  # two at the same moment may arrive as one signal
    t.ctrl_c()
    equal(t.finish()[1], 130)
    t = Terminal(['slow', 'xyz'])
    t.prompt()
    t.line('hi')
    t.expect('xyzxyz')
    t.ctrl_c()
    t.expect('stopped')
    t.prompt()
    t.ctrl_c()
    equal(t.finish()[1], 130)


def test_ctrl_c_at_the_prompt():
    for term in ('xterm', 'dumb'):
        t = Terminal(['answer', 'A'], term=term)
        t.prompt()
        t.ctrl_c()
        t.expect(r'\[Ctrl-C again, Ctrl-D or /quit leaves\]')
        t.prompt()
        t.line('hi')  # a message in between: the next one is a first one again
        t.expect(r'A\r\n')
        t.prompt()
        time.sleep(1.1)
        t.ctrl_c()
        t.expect(r'Ctrl-C again')
        t.prompt()
        time.sleep(1.1)
        t.ctrl_c()
        equal(t.finish()[1], 130)


def test_ctrl_c_throws_away_what_was_typed():
    t = Terminal(['echo'])
    t.prompt()
    t.type('half a line')
    t.expect('half a line')
    t.ctrl_c()
    t.expect(r'\^C')
    t.prompt()
    t.line('hi')
    t.expect(r'<user>hi</><assistant>')
    t.prompt()
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_engine_that_does_not_stop():
    t = Terminal(['hang'], ['--stop-ms', '300'])
    t.prompt()
    t.line('hi')
    t.expect(r'\[waiting for the engine, \d+ s\]')
    t.ctrl_c()
    t.expect(r'\[engine does not stop - restarting\]')
    t.prompt()
    t.line('/history')
    t.expect(r'nothing has been said')
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_engine_that_dies():
    t = Terminal(['die'])
    t.prompt()
    t.line('hi')
    t.expect(r'abc\r\n\x1b\[2m\[engine died \(exit 3\) - restarting\]')
    t.expect(r'fake_engine: something broke')
    t.expect(r'starts again from its beginning\]\x1b\[0m\r\nabc\r\n')
    t.expect(r'\[engine died \(exit 3\)\]')
    t.prompt()
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_engine_that_does_not_start():
    t = Terminal(['die-start'])
    screen, status = t.finish()
    equal(status, 1)
    contains(screen, 'fake_engine: no such model', 'the engine did not start (exit 5)')


main(globals())
