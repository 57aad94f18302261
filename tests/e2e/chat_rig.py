"""chat_rig: the console over a fake engine, through pipes and through a pseudo-terminal."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

CHAT, ENGINE = sys.argv[1], sys.argv[2]


def command(engine_args, flags=()):
    return [CHAT, *flags, '--', ENGINE, *engine_args]


def through_pipes(engine_args, text, flags=(), timeout=60):
    """Runs to the end; returns (stdout, stderr, exit status)."""
    data = text if isinstance(text, bytes) else text.encode()
    done = subprocess.run(command(engine_args, flags), input=data, capture_output=True,
                          timeout=timeout)
    out, err = (stream.decode('utf-8', 'replace') for stream in (done.stdout, done.stderr))
    return out, err, done.returncode


def is_alive(pid):
    try:
        with open(f'/proc/{pid}/stat') as f:
            return f.read().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False


class Terminal:
    """A person at a terminal."""

    def __init__(self, engine_args, flags=(), term='xterm', env=None):
        environ = {**os.environ, 'TERM': term, **(env or {})}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(CHAT, command(engine_args, flags), environ)
        self.resize(100)
        self.screen = ''
        self.raw = b''

    def resize(self, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))

    def engine_pid(self):
        """Waits for one: a console starts with none and may be replacing it."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with open(f'/proc/{self.pid}/task/{self.pid}/children') as f:
                for pid in f.read().split():
                    if is_alive(pid):
                        return int(pid)
            time.sleep(0.01)
        raise AssertionError('there is no engine')

    def kill_engine(self):
        os.kill(self.engine_pid(), signal.SIGKILL)

    def hang_up(self):
        os.close(self.fd)

    def type(self, text):
        os.write(self.fd, text.encode())

    def line(self, text):
        self.type(text + '\n')

    def ctrl_c(self):
        self.type('\x03')

    def _read(self, timeout):
        ready, _, _ = select.select([self.fd], [], [], timeout)
        if not ready:
            return None
        try:
            return os.read(self.fd, 65536)
        except OSError:
            return b''

    def expect(self, pattern, timeout=30):
        """Waits until the pattern appears after what was matched before; returns the match."""
        end = time.monotonic() + timeout
        while True:
            match = re.search(pattern, self.screen, re.S)
            if match:
                self.screen = self.screen[match.end():]
                return match
            data = self._read(max(0, end - time.monotonic()))
            if not data:
                raise AssertionError(f'{pattern!r} never came; the screen says {self.screen!r}')
            self.raw += data
            self.screen += data.decode('utf-8', 'replace')
            self.screen = re.sub('\x1b\\[\\?2004[hl]', '', self.screen)  # bracketed paste: not seen

    def prompt(self):
        return self.expect(r'(?:^|[\r\n\x1b\[K])[>.] ')

    def finish(self, timeout=30):
        """Reads to the end; returns (rest of the screen, exit status)."""
        end = time.monotonic() + timeout
        while True:
            data = self._read(max(0, end - time.monotonic()))
            if data is None:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f'it did not end; the screen says {self.screen!r}')
            if not data:
                break
            self.screen += data.decode('utf-8', 'replace')
        status = self.status()
        os.close(self.fd)
        return self.screen, status

    def status(self, timeout=30):
        """Waits for its end, whoever still holds the terminal."""
        end = time.monotonic() + timeout
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError(f'it did not end; the screen says {self.screen!r}')
            time.sleep(0.01)


def equal(found, expected):
    if found != expected:
        raise AssertionError(f'expected {expected!r}\nfound    {found!r}')


def contains(text, *parts):
    for part in parts:
        if part not in text:
            raise AssertionError(f'{part!r} is not in {text!r}')


def main(tests):
    n_failed = 0
    for name, test in sorted(tests.items()):
        if not name.startswith('test_'):
            continue
        try:
            test()
            print(f'ok      {name}')
        except Exception as error:  # one failure must not hide the next
            n_failed += 1
            print(f'FAILED  {name}: {error}')
    sys.exit(1 if n_failed else 0)
