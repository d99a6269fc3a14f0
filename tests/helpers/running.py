"""A process of ``wallaroo run``, the peers of its source and its sink, and its application."""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

import forked_commands
from forked_commands import STREAMS
from receiving import Receiver, hand_over

from wallaroo.frames import frames

APP = """
import sys
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()

@wallaroo.computation(name="obey")
def obey(text):
    if text == "exit":
        sys.exit(7)
    if text == "hang":
        while True:
            pass
    return text.upper()

@wallaroo.encoder
def encode(text):
    return text + "\\n"

def application_setup(args):
    print("arguments:", args, file=sys.stderr)
    "--mine" in args  # an option that is named is taken
    (host, port), (out_host, out_port) = (
        wallaroo.tcp_parse_input_addrs(args)[0], wallaroo.tcp_parse_output_addrs(args)[0])
    builder = wallaroo.ApplicationBuilder("app")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig(host, port, decode)).to(obey)
    return builder.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode)).build()
"""


WALLAROO_RUN = [sys.executable, "-m", "wallaroo", "run"]


class Run:
    """A process of ``wallaroo run``, and the peers of its source and its sink.

    Args:
        app: the application.
        arguments: the command's further ones.
        command: the words before all these.
        stderr: as of `subprocess.Popen`, which takes the other options.
    """

    def __init__(self, app, *arguments, command=WALLAROO_RUN, stderr=subprocess.PIPE, **options):
        self._receiver = Receiver()
        words = [*command, str(app), *arguments, "--in", "127.0.0.1:0"]
        words += ["--out", self._receiver.address]
        self.process = subprocess.Popen(words, stderr=stderr, text=True, **options)
        self.errors = ""
        if stderr is subprocess.PIPE:
            while "listening on" not in self.errors:
                line = self.process.stderr.readline()
                assert line, self.errors
                self.errors += line
            self.port = int(self.errors.strip().rpartition(":")[2])

    @property
    def received(self):
        """What the sink's peer has got by now."""
        return b"".join(self._receiver.so_far)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def send(self, *payloads):
        """Send frames, and wait until the run has taken all."""
        given = [one if isinstance(one, bytes) else one.encode() for one in payloads]
        hand_over(("127.0.0.1", self.port), frames(given))

    def wait(self):
        """Wait for the end; return the exit code, stderr, and what the sink's peer has got."""
        _, rest = self.process.communicate(timeout=60)
        return self.process.returncode, self.errors + (rest or ""), self._receiver.everything()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate(timeout=60)
        self._receiver.close()


def ran(command, **options):
    """Run a command to its end; by default what it says is text, and it may fail.

    Args:
        command: its words.
        options: of `subprocess.run`.
    """
    usual = {"capture_output": True, "text": True, "timeout": 240, "check": False}
    return subprocess.run(command, **usual | options)


_PATH = os.environ.get("PYTHONPATH")  # a test may set another one


def wallaroo(*arguments, data=b"", cwd=".", env=None):
    """Run a command to its end; what it says is bytes, or text if `data` is.

    With an environment of its own, or modules elsewhere, it is a new Python; otherwise a fork of
    one that has imported all (`forked_commands`).
    """
    words = [str(one) for one in arguments]
    if env is None and os.environ.get("PYTHONPATH") == _PATH:
        return _forked(words, data, str(Path(cwd).resolve()))
    command = [sys.executable, "-m", "wallaroo", *words]
    return ran(command, input=data, text=isinstance(data, str), cwd=cwd, env=env)


def _forked(words, data, cwd):
    is_text = isinstance(data, str)
    with tempfile.TemporaryDirectory() as made:
        given, out, errors = [Path(made, name) for name in STREAMS]
        given.write_bytes(data.encode() if is_text else data)
        out.touch()
        errors.touch()
        with _one_at_a_time:
            code = _exit_code(json.dumps([words, cwd, dict(os.environ), made]))
        said = [path.read_text() if is_text else path.read_bytes() for path in (out, errors)]
    return subprocess.CompletedProcess(words, code, *said)


def _exit_code(command):
    forks = _forks()
    try:
        forks.stdin.write(f"{command}\n")
        forks.stdin.flush()
        return int(forks.stdout.readline())
    except BaseException:  # such as a test's timeout: the answer must not be taken for another's
        os.killpg(forks.pid, signal.SIGKILL)
        _forks.cache_clear()
        raise


_one_at_a_time = threading.Lock()


@cache
def _forks():
    """The process that forks; it ends with this one, or when that closes its standard input."""
    pipe = subprocess.PIPE
    command = [sys.executable, forked_commands.__file__]
    forks = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, process_group=0)
    atexit.register(forks.communicate)
    return forks


def as_filter(app, *options):
    """Start ``wallaroo run`` between two pipes, which the test holds."""
    command = [sys.executable, "-m", "wallaroo", "run", app, "--stdin", "--stdout", *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
