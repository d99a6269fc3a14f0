"""An application whose code prints and logs wherever it can."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import wallaroo

log = logging.getLogger("talking")
print("at import")
log.warning("a warning at import")


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> str:
    print("decoding", end=" ")
    print(payload)
    return payload.decode()


class Talk:
    """One class of several steps."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name

    def compute(self, text: str) -> str:
        helper(text)
        log.debug("too little to say")
        log.info("computed %s", text)
        return text


def helper(text: str) -> None:
    print(f"computing\x1b {text}")


@wallaroo.computation(name="all ways")
def ways(text: str) -> str:
    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    sys.stdout.buffer.write(b"bytes\n")
    sys.stdout.write("no newline")
    sys.stdout.flush()
    log.info("%d", "no number")
    try:
        raise KeyError(text)
    except KeyError:
        log.exception("it failed\n\x1b")
    warnings.warn("beware", stacklevel=1)
    if text == "outside":
        os.write(1, b"to the descriptor\n")
        subprocess.run([sys.executable, "-c", "print('of a program')"], check=True)
    return text


def in_a_thread() -> None:
    print("in a thread")


@wallaroo.computation_multi(name="each")
def each(text: str) -> Iterator[str]:
    print("generating")
    yield text


class Total:
    def __init__(self) -> None:
        print("building")


@wallaroo.partition
def whole(text: str) -> str:
    print("partitioning")
    return text


@wallaroo.state_computation(name="add")
def add(text: str, total: Total) -> tuple[str, bool]:
    print("adding")
    return text, True


@wallaroo.encoder
def encode(text: str) -> str:
    print("encoding")
    return text


def application_setup(args: Sequence[str]) -> Any:
    print("setting up")
    return (
        wallaroo.ApplicationBuilder("talking")
        .new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        .to(Talk("first"))
        .to(Talk("second"))
        .to(ways)
        .to(each)
        .to_state_partition(add, Total, "totals", whole)
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
        .build()
    )


PRINTED = """\
[talking_app.py] at import
[application_setup] setting up
[decode] decoding b'a'
[first] computing\\x1b a
[second] computing\\x1b a
[in_a_thread] in a thread
[all ways] bytes
[each] generating
[add] partitioning
[add] building
[add] adding
[encode] encoding
[all ways] no newline
""".splitlines()
"""What `wallaroo run` shows of what it prints for one message, in this order."""
