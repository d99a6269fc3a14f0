"""``wallaroo receive`` in a process of its own."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def receiving(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], tuple[str, int]]]:
    """Run ``wallaroo receive`` and yield it with the address it listens on."""
    command = [sys.executable, "-m", "wallaroo", "receive", "--listen", "127.0.0.1:0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            match = re.fullmatch(rb"listening on 127\.0\.0\.1:(\d+)\n", line)
            assert match, line
            yield process, ("127.0.0.1", int(match[1]))
        finally:
            process.kill()
