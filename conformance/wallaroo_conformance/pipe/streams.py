"""Standard input and output for requests and answers, where user code runs in the same process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import IO


def take_over_standard_streams() -> tuple[IO[bytes], Callable[[bytes], None]]:
    """Return the requests, and a function that writes answers; nothing else can use the two.

    What other code in the process, or in one that it starts, reads from standard input is nothing;
    what it prints goes to standard error.
    """
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def write(answer: bytes) -> None:
        left = memoryview(answer)
        while left:
            left = left[answers.write(left) :]

    return requests, write
