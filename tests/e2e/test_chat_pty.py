"""The console at a terminal: prompt, editing, dim lines, Ctrl-C, an engine that misbehaves."""
import json
import os
import re
import signal
import stat
import tempfile
import termios
import time

from chat_rig import Terminal, contains, equal, is_alive, main


def test_conversation():
    t = Terminal(['answer', 'Hello 中 😀'])
    t.expect(r'\[bytes, 1000 tokens of context; /help lists the commands\]')
    t.prompt()
    t.line('hi')
    t.expect(r'\nHello 中 😀\r\n')
    line = t.expect(r'\x1b\[2m\[(\d+) tokens, [\d.]+ tok/s, first token after [\d.]+ s, '
                    r'hit rate 50 %, context \d+ of 1000\]\x1b\[0m')
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
    t.expect(r'stopped at\s+--max-tokens')
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
        line = t.expect(r'A\r\n(.*?)\[1 token, 500.0 tok/s, first token after [\d.]+ s, '
                        r'hit rate 50 %, context 23 of 1000\]')
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
    t.expect(r'\r\x1b\[K\x1b\[2m\[reading [5-9] of 10 tokens, [5-9]0 % [#-]{20}, \d+ s left\]')
    t.expect(r'\r\x1b\[KA\r\n')
    t.prompt()
    t.line('/quit')
    t.finish()


def test_narrow_terminal():
    """30 columns: what is replaced later takes one row, sentences break between words."""
    t = Terminal(['prefill', 'A'])
    t.resize(30)
    t.prompt()
    t.line('hi')
    line = t.expect(r'\r\x1b\[K\x1b\[2m(\[reading [5-9] of 10[^\x1b]*)\x1b').group(1)
    equal(len(line), 29)
    t.expect(r'\r\x1b\[KA\r\n')
    shown = t.expect(r'\x1b\[2m(\[1 token.*?)\x1b\[0m').group(1)
    equal(max(map(len, shown.split('\r\n'))) <= 29, True)
    contains(' '.join(shown.split('\r\n')), 'hit rate 50 %, context 23 of 1000]')
    t.prompt()
    t.line('/quit')
    t.finish()


def test_model_output_cannot_steer_the_terminal():
    t = Terminal(['answer', 'a\x1b[2Jb\x07c'])
    t.prompt()
    t.line('hi')
    t.expect('\na\u241b\\[2Jb\u2407c\r\n')
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

def test_several_lines_as_one_message():
    t = Terminal(['echo'])
    t.prompt()
    t.line('first\\')
    t.prompt()
    t.line('second')
    t.expect(r'\n<user>first\r\nsecond</><assistant>\r\n')
    t.prompt()
    t.line('"""')
    t.prompt()
    t.line('/quit')
    t.prompt()
    t.line('"""')
    t.expect(r'<user>/quit</><assistant>\r\n')
    t.prompt()
    t.line('"""')
    t.prompt()
    t.ctrl_c()
    t.expect(r'the lines so far are dropped')
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_paste():
    t = Terminal(['echo'])
    t.prompt()
    contains(t.raw.decode(), '\x1b[?2004h')
    t.type('\x1b[200~one\rtwo\ttabs\r/quit\x1b[201~')
    t.line('')
    t.expect(r'<user>one\r\ntwo\ttabs\r\n/quit</><assistant>\r\n')
    t.prompt()
    t.line('/quit')
    equal(t.finish()[1], 0)
    contains(t.raw.decode(), '\x1b[?2004l')


def test_retry_edit_undo():
    t = Terminal(['echo'])
    t.prompt()
    t.line('hi')
    t.expect(r'<user>hi</><assistant>\r\n')
    t.prompt()
    t.line('/retry')
    t.expect(r'\n<user>hi</><assistant>\r\n')
    t.prompt()
    t.line('/edit')
    t.expect(r'> hi')
    t.line(' there')
    t.expect(r'\n<user>hi there</><assistant>\r\n')
    t.prompt()
    t.line('/undo')
    t.expect('are forgotten')
    t.line('ho')
    t.expect(r'\n<user>ho</><assistant>\r\n')
    t.prompt()
    t.line('/quit')
    t.finish()


def test_reasoning_is_folded():
    t = Terminal(['answer', '<think>\nhmm\n</think>\n\nFour.'])
    t.prompt()
    t.line('2+2?')
    t.expect(r'\[thought for [\d.]+ s; /think shows it\]\x1b\[0m\r\nFour\.\r\n')
    t.prompt()
    t.line('/think')
    t.expect('reasoning is shown')
    t.line('again')
    t.expect(r'\x1b\[0;2mhmm\x1b\[0m\r\n\r\nFour\.\r\n')
    t.prompt()
    t.line('/quit')
    t.finish()


def test_looks_and_wrapping():
    words = 'word ' * 30 + '`code` **bold**'
    t = Terminal(['answer', words])
    t.prompt()
    t.line('hi')
    shown = t.expect(r'\n(word.*?)\r\n\x1b\[2m\[').group(1)
    contains(shown, '\x1b[0;36m`code`\x1b[0m \x1b[0;1m**bold**\x1b[0m')
    lines = re.sub('\x1b\\[[\\d;]*m', '', shown).split('\r\n')
    equal(max(map(len, lines)) <= 100, True)
    t.prompt()
    t.line('/quit')
    t.finish()


def test_silence_is_announced():
    t = Terminal(['hang'], ['--silence-ms', '1000', '--stop-ms', '300'])
    t.prompt()
    t.line('hi')
    t.expect(r'\[no sign of life from the engine for 1 s; Ctrl-C stops this answer\]')
    t.ctrl_c()
    t.expect(r'\[engine does not stop - restarting\]')
    t.prompt()
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_engine_killed_while_idle():
    t = Terminal(['answer', 'A'])
    t.prompt()
    t.kill_engine()
    t.line('hi')
    t.expect(r'\[engine died \(exit 137\) - restarting\]\x1b\[0m\r\nA\r\n')
    t.prompt()
    t.line('again')
    t.expect(r'\nA\r\n')
    t.prompt()
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_engine_killed_while_it_answers():
    t = Terminal(['slow', 'xyz'])
    t.prompt()
    t.line('hi')
    t.expect('xyzxyz')
    t.kill_engine()
    t.expect(r'\r\n\x1b\[2m\[engine died \(exit 137\) - restarting\]')
    t.expect(r'starts again from its beginning\]\x1b\[0m\r\nxyzxyz')
    t.ctrl_c()
    t.expect('stopped')
    t.prompt()
    t.line('/history')
    equal(t.expect(r'cut short\).*?  ([xyz]+)').group(1)[:6], 'xyzxyz')
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_engine_killed_twice():
    t = Terminal(['slow', 'xyz'])
    t.prompt()
    t.line('hi')
    for last in ('- restarting', '\\]'):
        t.expect('xyzxyz')
        t.kill_engine()
        t.expect(r'\[engine died \(exit 137\) ?' + last)
    t.prompt()
    t.line('again')  # what was said of the last answer stays; a new engine goes on
    t.expect('xyzxyz')
    t.ctrl_c()
    t.expect('stopped')
    t.prompt()
    t.line('/history')
    t.expect(r'hi.*cut short.*xyz.*again.*cut short')
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_engine_that_prints_garbage():
    t = Terminal(['garbage'])
    t.prompt()
    t.line('hi')
    t.expect(r'\[engine died \(exit 143\) - restarting\]')
    t.expect(r'\[engine died \(exit 143\)\]')
    t.prompt()
    t.line('/history')
    t.expect('nothing has been said')
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_ctrl_c_while_the_prompt_is_read():
    t = Terminal(['prefill', 'A'])
    t.prompt()
    for _ in range(2):
        t.line('hi')
        t.expect(r'reading \d of 10')
        t.ctrl_c()
        t.expect(r'\r\x1b\[K.*\[0 tokens[^\]]*, stopped\]')
        t.prompt()
        time.sleep(1.1)  # else the next one leaves
    t.line('/history')
    t.expect('nothing has been said')
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_ctrl_c_while_it_thinks():
    t = Terminal(['slow', '<think>so so so so so '])
    t.prompt()
    t.line('hi')
    t.expect(r'\[thinking, \d+ tokens\]')
    t.ctrl_c()
    t.expect('stopped')
    t.prompt()
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_ctrl_c_while_the_engine_starts():
    t = Terminal(['slow-start'])
    t.expect(r'\[loading bytes, \d+ s\]')
    engine = t.engine_pid()
    t.ctrl_c()
    equal(t.finish()[1], 130)
    equal(is_alive(engine), False)


def test_ctrl_c_in_a_paste_and_in_an_edit():
    t = Terminal(['echo'])
    t.prompt()
    t.type('\x1b[200~one\rtwo')  # the end mark never comes
    time.sleep(0.2)
    t.ctrl_c()
    t.expect(r'\^C')
    t.prompt()
    t.line('hi')
    t.expect(r'<user>hi</><assistant>\r\n')
    t.prompt()
    time.sleep(1.1)
    t.line('/edit')
    t.expect('> hi')
    t.ctrl_c()
    t.expect(r'\^C')
    t.prompt()
    t.line('ho')
    t.expect(r'<user>ho</><assistant>\r\n')
    t.prompt()
    t.line('/quit')
    equal(t.finish()[1], 0)


def test_hang_up():
    """The terminal goes away: at the prompt, while an answer comes, while the engine starts."""
    for stage in ('prompt', 'answer', 'start'):
        with tempfile.TemporaryDirectory() as state:
            t = Terminal(['slow-start'] if stage == 'start' else ['slow', 'xyz'],
                         ['--state', state])
            if stage == 'start':
                t.expect('loading')
            else:
                t.prompt()
            if stage == 'answer':
                t.line('hi')
                t.expect('xyzxyz')
            engine = t.engine_pid()
            t.hang_up()
            equal((stage, t.status()), (stage, 128 + signal.SIGHUP))
            equal(is_alive(engine), False)
            if stage == 'answer':  # what was said is kept
                name, = os.listdir(state)
                lines = [json.loads(line) for line in open(os.path.join(state, name))]
                equal(lines[1]['content'], 'hi')
                equal(lines[2]['content'][:6], 'xyzxyz')
                equal(lines[2]['cut'], True)


def test_sigterm_while_it_answers():
    t = Terminal(['slow', 'ab'])
    t.prompt()
    t.line('hi')
    t.expect('abab')
    engine = t.engine_pid()
    os.kill(t.pid, signal.SIGTERM)
    screen, status = t.finish()
    equal(status, 128 + signal.SIGTERM)
    equal(screen.endswith('\n'), True)
    equal(is_alive(engine), False)


def test_resize_while_it_answers():
    t = Terminal(['slow', 'word '], ['--max-tokens', '400'])
    t.prompt()
    t.line('hi')
    t.expect('word')
    t.resize(40)
    t.expect(r'\n')  # the line that was being written
    shown = t.expect(r'(word.*?)\r\n\x1b\[2m\[').group(1)
    lines = re.sub('\x1b\\[[\\d;]*[mDK]', '', shown).split('\r\n')
    equal(max(map(len, lines)) <= 40, True)
    equal(set(' '.join(lines[:-1]).split()) <= {'word', 'w', 'wo', 'wor'}, True)
    t.prompt()
    t.line('/quit')
    t.finish()


def test_sigterm_leaves_a_usable_terminal():
    t = Terminal(['slow', 'ab'])
    t.prompt()
    end = time.monotonic() + 30
    while termios.tcgetattr(t.fd)[3] & termios.ECHO:  # until the line editor has taken over
        equal(time.monotonic() < end, True)
        time.sleep(0.01)
    os.kill(t.pid, signal.SIGTERM)
    equal(t.finish()[1], 128 + signal.SIGTERM)


def test_resize_while_typing():
    t = Terminal(['echo'])
    t.prompt()
    t.type('abc')
    t.expect('abc')
    t.resize(40)
    t.line('def')
    t.expect(r'<user>abcdef</>')
    t.prompt()
    t.line('/quit')
    t.finish()


def test_saved_and_continued():
    with tempfile.TemporaryDirectory() as folder:
        state = os.path.join(folder, 'a', 'b')
        t = Terminal(['echo'], ['--state', state, '--lineage', 'one'])
        t.prompt()
        t.line('remember')
        t.expect(r'<user>remember</><assistant>\r\n')
        t.prompt()
        os.kill(t.pid, signal.SIGKILL)
        t.finish()
        name, = os.listdir(state)
        path = os.path.join(state, name)
        equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        equal(stat.S_IMODE(os.stat(state).st_mode), 0o700)
        lines = [json.loads(line) for line in open(path)]
        equal([line.get('content') for line in lines],
              [None, 'remember', '<user>remember</><assistant>'])
        t = Terminal(['count'], ['--state', state, '--continue', '--lineage', 'two'])
        t.expect(r'going on after 2 messages: this conversation was held with bytes')
        t.prompt()
        t.line('/undo')
        t.expect('are forgotten')
        t.line('/quit')
        t.finish()
        equal(len(open(path).readlines()), 1)


def test_context_nearly_full():
    t = Terminal(['answer', 'x' * 30], ['--ctx', '100'])
    t.prompt()
    t.line('hi')
    t.prompt()
    t.line('hi')
    t.expect(r'\[the context is \d+ % full; /compact drops the oldest turns, /reset starts anew\]')
    t.prompt()
    t.line('/compact')
    t.expect(r'\[1 turn dropped, \d+ of 100 tokens are in use\]')
    t.line('/quit')
    t.finish()


main(globals())
