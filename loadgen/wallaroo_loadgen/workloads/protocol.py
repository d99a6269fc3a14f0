"""What is sent, and what should come back: the protocol of a workload.

A **lane** is one connection: a numbered stream of messages, the same for the same seed. Each
**output** that the application owes for them has a number too, 0, 1, 2, … per lane, and tells which
message caused it. That is all the measuring needs: from an output its message, from the message
its intended time, from the number whether it came before. A workload therefore keeps nothing per
message; it works out both directions by arithmetic, most easily by repeating a cycle of messages
that is built once (`Cycle`).

A workload of your own is a file with a function `workload(options)` that returns an object with
the attributes of `Workload`; `wallaroo load --workload my.py` runs it. See docs/load-testing.md.
"""

from __future__ import annotations

import importlib.util
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from wallaroo.frames import frames
from wallaroo_loadgen.common.schedule import Int64s

UNMATCHED = -1
"""The lane of an output that belongs to nothing that was sent."""

IGNORED = -2
"""The lane of an output that is known and not counted, such as an answer to a probe."""


class WorkloadError(ValueError):
    """A workload, or an option given to it, that cannot work; the message is for its author."""


class Block(NamedTuple):
    """Consecutive messages of a lane, framed, ready to be written.

    `ends[i]` is where the block's message `i` ends in `data`.
    """

    data: bytes
    ends: Int64s


class Matched(NamedTuple):
    """For each output of a batch its lane (or `UNMATCHED`, `IGNORED`) and its number there."""

    lanes: Int64s
    numbers: Int64s


class Lane(Protocol):
    """One connection's messages and the outputs they cause."""

    @property
    def source(self) -> int:
        """Which of the workload's `sources` it sends to."""

    @property
    def share(self) -> float:
        """Its part of the whole rate; the lanes' shares add up to 1."""

    def block(self, first: int, count: int) -> Block:
        """Return messages `first` … `first + count - 1`, framed. Fewer are taken as they are."""

    def owed(self, messages: int) -> int:
        """Return how many outputs the first `messages` messages cause."""

    def cause(self, outputs: Int64s) -> Int64s:
        """Return the messages that cause these outputs (numbers from 0)."""


class Workload(Protocol):
    """What a load generator has to know of an application."""

    @property
    def sources(self) -> Sequence[str]:
        """The inputs, in the order in which `--to` names their addresses."""

    @property
    def cut(self) -> Literal["lines", "frames"]:
        """How the sink's bytes are cut into outputs: at line ends, or by 4-byte headers."""

    @property
    def lanes(self) -> Sequence[Lane]:
        """The connections."""

    def match(self, outputs: list[bytes]) -> Matched:
        """Return which outputs these are. Anything at all may come; it never raises."""

    def prelude(self) -> dict[int, bytes]:
        """Return framed messages, by source, to be sent once before the run."""

    def probe(self, attempt: int) -> dict[int, bytes]:
        """Return framed messages to be sent again and again until `answers` says yes.

        Empty when the application cannot be asked; then the run starts at once.
        """

    def answers(self, outputs: list[bytes]) -> bool:
        """Whether these outputs, the first since the prelude, prove that it was processed."""


@dataclass(frozen=True)
class Options:
    """What a workload is made from.

    Args:
        seed: of everything random in the payloads.
        connections: how many lanes are wished for.
        run: a number that no other run against the same application has had, below 2**31: it
            keeps the outputs of one run apart from those of the runs before.
        values: the `-o NAME=VALUE` options of the command line.
    """

    seed: int = 0
    connections: int = 1
    run: int = 0
    values: Mapping[str, str] = field(default_factory=dict)

    def known(self, *names: str) -> None:
        """Refuse options that the workload does not have.

        Raises:
            WorkloadError: naming the option and those there are.
        """
        for name in self.values:
            if name not in names:
                there_are = ", ".join(names) or "none"
                raise WorkloadError(f"no option is called {name!r}; there are: {there_are}")

    def integer(self, name: str, default: int, low: int = 1, high: int = 1 << 30) -> int:
        """Return a whole number given as `-o NAME=…`.

        Raises:
            WorkloadError: when it is none, or out of bounds.
        """
        text = self.values.get(name, str(default))
        try:
            value = int(text)
        except ValueError:
            raise WorkloadError(f"option {name} is a whole number, not {text!r}") from None
        if not low <= value <= high:
            raise WorkloadError(f"option {name} is {low} to {high}, not {value}")
        return value

    def fraction(self, name: str, default: float) -> float:
        """Return a number from 0 to 1 given as `-o NAME=…`.

        Raises:
            WorkloadError: when it is none, or out of bounds.
        """
        text = self.values.get(name, str(default))
        try:
            value = float(text)
        except ValueError:
            raise WorkloadError(f"option {name} is a number, not {text!r}") from None
        if not 0 <= value <= 1:
            raise WorkloadError(f"option {name} is 0 to 1, not {value:g}")
        return value

    @property
    def tag(self) -> str:
        """The run as six lower-case letters, to be put into payloads."""
        letters = []
        rest = self.run
        for _ in range(6):
            rest, letter = divmod(rest, 36)
            letters.append("abcdefghijklmnopqrstuvwxyz0123456789"[letter])
        return "".join(reversed(letters))


class Cycle:
    """The arithmetic of a stream that repeats: message numbers from output numbers and back.

    Args:
        outputs: how many outputs each message of the cycle causes.
    """

    def __init__(self, outputs: Int64s) -> None:
        self.length = len(outputs)
        self.outputs_of = outputs
        self.outputs = int(outputs.sum())
        self._owed = np.concatenate([[0], np.cumsum(outputs)])
        self._cause = np.repeat(np.arange(self.length), outputs)

    def owed(self, messages: int) -> int:
        """Return how many outputs the first `messages` messages cause."""
        rounds, rest = divmod(messages, self.length)
        return rounds * self.outputs + int(self._owed[rest])

    def cause(self, outputs: Int64s) -> Int64s:
        """Return the messages that cause these outputs."""
        rounds, rest = np.divmod(outputs, self.outputs)
        messages: Int64s = rounds * self.length + self._cause[rest]
        return messages

    def first_output(self, messages: Int64s) -> Int64s:
        """Return the numbers of the first outputs that these messages cause."""
        rounds, rest = np.divmod(messages, self.length)
        outputs: Int64s = rounds * self.outputs + self._owed[rest]
        return outputs


class CycleLane:
    """A lane that sends the same list of payloads again and again.

    Args:
        payloads: one cycle, at least one, unframed.
        outputs: how many outputs each of them causes.
        source: which of the workload's sources it sends to.
        share: its part of the rate.
    """

    def __init__(
        self, payloads: Sequence[bytes], outputs: Sequence[int], source: int, share: float
    ) -> None:
        if not payloads:
            raise WorkloadError("a lane needs at least one message to send")
        self.source = source
        self.share = share
        self.cycle = Cycle(np.array(outputs, dtype=np.int64))
        self._data = frames(payloads)
        sizes = np.array([len(payload) + 4 for payload in payloads], dtype=np.int64)
        self._ends = np.cumsum(sizes)

    def block(self, first: int, count: int) -> Block:
        """Return messages up to the cycle's end at most: no copying beyond one slice."""
        start = first % self.cycle.length
        stop = min(start + count, self.cycle.length)
        origin = int(self._ends[start - 1]) if start else 0
        data = self._data[origin : int(self._ends[stop - 1])]
        return Block(data, self._ends[start:stop] - origin)

    def owed(self, messages: int) -> int:
        """Return how many outputs the first `messages` messages cause."""
        return self.cycle.owed(messages)

    def cause(self, outputs: Int64s) -> Int64s:
        """Return the messages that cause these outputs."""
        return self.cycle.cause(outputs)


def matched(count: int) -> Matched:
    """Return a `Matched` for `count` outputs in which nothing matches yet."""
    return Matched(np.full(count, UNMATCHED, dtype=np.int64), np.zeros(count, dtype=np.int64))


def build(name: str, options: Options) -> Workload:
    """Make a workload by its name (`NAMES`) or from a file that ends in `.py`.

    Raises:
        WorkloadError: when there is none, or it does not work; the message says where.
    """
    if name.endswith(".py"):
        return _check(name, _from_file(Path(name), options))
    from wallaroo_loadgen import workloads

    maker = workloads.MAKERS.get(name)
    if maker is None:
        there_are = ", ".join(sorted(workloads.MAKERS))
        raise WorkloadError(f"no workload is called {name!r}; there are {there_are}, or a file.py")
    return maker(options)


def _from_file(path: Path, options: Options) -> Any:
    if not path.is_file():
        raise WorkloadError(f"no workload file {path}")
    path = path.resolve()
    spec = importlib.util.spec_from_file_location(f"_wallaroo_load_{zlib.crc32(bytes(path))}", path)
    if spec is None or spec.loader is None:
        raise WorkloadError(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        maker = getattr(module, "workload", None)
        if not callable(maker):
            raise WorkloadError(f"{path} has no function workload(options)")
        return maker(options)
    except WorkloadError:
        raise
    except Exception as error:
        raise WorkloadError(f"{_place(path, error)}: {type(error).__name__}: {error}") from error


def _place(path: Path, error: Exception) -> str:
    """Return FILE:LINE of the deepest frame of `error` that is in the user's file."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{path}:{line}" if line else str(path)


def _check(name: str, made: Any) -> Workload:
    for attribute in ("sources", "cut", "lanes", "match", "prelude", "probe", "answers"):
        if not hasattr(made, attribute):
            raise WorkloadError(f"{name}: what workload(options) returns has no {attribute!r}")
    if made.cut not in {"lines", "frames"}:
        raise WorkloadError(f"{name}: cut is 'lines' or 'frames', not {made.cut!r}")
    if not made.lanes:
        raise WorkloadError(f"{name}: there are no lanes, so nothing would be sent")
    result: Workload = made
    return result
