"""The console without a terminal: answers on stdout, sentences on stderr, an honest exit status."""
import os
import subprocess
import tempfile

from chat_rig import command, contains, equal, main, through_pipes

PROMPT = '<user>hi</><assistant>'


def start_slow():
    """A console whose engine is answering, letter by letter, for as long as it may."""
    child = subprocess.Popen(command(['slow', 'abc']), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    child.stdin.write(b'hi\n')
    child.stdin.flush()
    return child


def test_answers_only():
    equal(through_pipes(['answer', 'Hello'], 'hi\n'), ('Hello\n', '', 0))
    equal(through_pipes(['answer', 'Hello'], 'hi'), ('Hello\n', '', 0))
    equal(through_pipes(['answer', 'Hello'], 'hi\r\n\n   \nho\n'), ('Hello\nHello\n', '', 0))
    equal(through_pipes(['answer', 'Hello'], ''), ('', '', 0))
    equal(through_pipes(['answer', ''], 'hi\nho\n'), ('\n\n', '', 0))
    equal(through_pipes(['answer', 'two\nlines\n'], 'hi\n'), ('two\nlines\n', '', 0))


def test_whole_conversation_every_turn():
    out, err, status = through_pipes(['echo'], 'hi\nyo\n', ['--system', 'be brief'])
    first = '<system>be brief</>' + PROMPT
    equal(out, first + '\n' + first + first + '</><user>yo</><assistant>\n')
    equal((err, status), ('', 0))


def test_unicode_survives():
    text = 'é 中 😀'
    equal(through_pipes(['answer', text], 'hi\n')[0], text + '\n')
    out, _, status = through_pipes(['echo'], text + ' \\ "\n')
    equal((out, status), (f'<user>{text} \\ "</><assistant>\n', 0))
    out, _, status = through_pipes(['echo'], b'a\xff\x00b\n')
    equal((out, status), ('<user>a\ufffd\ufffdb</><assistant>\n', 0))
    equal(through_pipes(['answer', '\x1b[31mraw'], 'hi\n')[0], '\x1b[31mraw\n')


def test_commands():
    lines = ['/help', '/nonsense', 'hi', '/history', '/reset', '/history', '/quit', 'hi', '']
    out, err, status = through_pipes(['answer', 'A'], '\n'.join(lines))
    equal((out, status), ('A\n', 0))
    contains(err, '/reset            start a new', 'there is no such command',
             'user:\n  hi\nassistant:\n  A\n', 'a new conversation', 'nothing has been said')
    equal(through_pipes(['echo'], '//quit\n')[0], '<user>/quit</><assistant>\n')
    equal(through_pipes(['echo'], 'x\n/reset\nhi\n', ['--system', 's'])[0].splitlines()[1],
          '<system>s</>' + PROMPT)


def test_tokens():
    err = through_pipes(['answer', 'A'], '/tokens a\n/tokens ab\n/tokens\n')[1]
    equal(err, '[1 token]\n[2 tokens]\n[11 of 1000 tokens of context]\n')


def test_stats():
    out, err, status = through_pipes(['answer', 'Hello'], 'hi\n', ['--stats'])
    equal((out, status), ('Hello\n', 0))
    contains(err, '[5 tokens, 2500.0 tok/s, first token after ')  # the engine said 2 ms


def test_engine_that_dies_once():
    with tempfile.TemporaryDirectory() as directory:
        out, err, status = through_pipes(['die-once', os.path.join(directory, 'mark')], 'hi\n')
    equal((out, status), ('abc\nagain\n', 0))
    equal(err, '[engine died (exit 3) - restarting]\n  fake_engine: something broke\n'
               '[the answer starts again from its beginning]\n')


def test_engine_that_always_dies():
    out, err, status = through_pipes(['die-silent'], 'hi\n/history\n')
    equal((out, status), ('', 1))
    equal(err, '[engine died (exit 4) - restarting]\n[engine died (exit 4)]\n'
               '[nothing has been said yet]\nbyte_chat: 1 of 1 turns failed\n')
    out, err, status = through_pipes(['die'], 'hi\n/history\n')
    equal((out, status), ('abc\nabc\n', 1))
    contains(err, 'assistant (cut short):\n  abc\n')
    err = through_pipes(['crash'], 'hi\nho\n')[1]
    contains(err, '[engine died (exit 137)]', '2 of 2 turns failed')


def test_engine_that_prints_garbage():
    out, err, status = through_pipes(['garbage'], 'hi\n')
    equal((out, status), ('', 1))
    contains(err, '[engine died (exit 143) - restarting]', '[engine died (exit 143)]')


def test_engine_that_does_not_start():
    equal(through_pipes(['die-start'], 'hi\n'),
          ('', '  fake_engine: no such model\nbyte_chat: the engine did not start (exit 5)\n', 1))
    equal(through_pipes(['die-start'], 'hi\n', ['--verbose'])[1],
          'fake_engine: no such model\nbyte_chat: the engine did not start (exit 5)\n')


def test_refusals():
    out, err, status = through_pipes(['error', 'ctx_overflow'], 'hi\n', ['--ctx', '10'])
    equal((out, status), ('x\n', 1))
    contains(err, f'[the conversation has {len(PROMPT)} tokens, the context holds 10: '
                  'this message was dropped; '
             '/compact makes room, /reset starts a new conversation]')
    err = through_pipes(['error', 'internal'], 'hi\n')[1]
    contains(err, '[the engine could not answer: internal]\n  fake_engine: the reason\n')
    out, err, status = through_pipes(['answer', 'A'], 'refuse\nhi\n')
    equal((out, status), ('A\n', 1))
    contains(err, '[this message cannot be sent: the chat template says: no]',
             '1 of 2 turns failed')


def test_max_tokens():
    equal(through_pipes(['slow', 'ab'], 'hi\n', ['--max-tokens', '3'])[0], 'aba\n')
    err = through_pipes(['slow', 'ab'], 'hi\n', ['--max-tokens', '3', '--stats'])[1]
    contains(err, 'stopped at --max-tokens')
    two_left = str(len(PROMPT) + 2)
    out, err, _ = through_pipes(['slow', 'ab'], 'hi\n', ['--ctx', two_left, '--stats'])
    equal(out, 'ab\n')
    contains(err, 'the context is full: /compact or /reset')


def test_large_messages():
    text = 'x' * 1000000
    out, _, status = through_pipes(['count'], text + '\n')
    equal((out, status), (f'{len(text) + len(PROMPT) - 2}\n', 0))
    out, err, status = through_pipes(['answer', 'A'], 'y' * (17 << 20) + '\nhi\n')
    equal((out, status), ('A\n', 1))
    contains(err, '[a line longer than 16 MiB was skipped]')


def test_refused_memory():
    n_failed = 0
    for nth in range(1, 40):
        out, err, status = through_pipes(['answer', 'A'], 'hi\nho\n', ['--fail-nth', str(nth)])
        equal(status in (0, 1), True)
        equal(status == 0, out == 'A\nA\n')
        if status == 1:
            contains(err, 'memory')
            n_failed += 1
    equal(n_failed > 5, True)


def test_output_that_closes():
    child = start_slow()
    equal(child.stdout.read(1), b'a')
    child.stdout.close()
    equal(child.wait(timeout=30), 0)
    child.stdin.close()
    with open('/dev/full', 'wb') as full:
        done = subprocess.run(command(['answer', 'A']), input=b'hi\n', stdout=full,
                              stderr=subprocess.PIPE, timeout=30)
    equal(done.returncode, 1)
    contains(done.stderr.decode(), 'the answers cannot be written: No space left on device')


def test_no_engine_stays_behind():
    child = start_slow()
    child.stdout.read(1)
    children = open(f'/proc/{child.pid}/task/{child.pid}/children').read().split()
    equal(len(children), 1)
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()
    for _ in range(100):
        try:
            state = open(f'/proc/{children[0]}/stat').read().rsplit(')', 1)[1].split()[0]
        except OSError:
            return
        if state == 'Z':
            return
        subprocess.run(['sleep', '0.1'], check=True)
    raise AssertionError('the engine outlived its console')


main(globals())
