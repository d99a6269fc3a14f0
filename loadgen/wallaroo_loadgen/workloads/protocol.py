"""The protocol of a workload: which messages are sent, and which outputs should come back.

A **stream** is what one connection sends: numbered messages, the same for the same seed. Each
output that the application should send for them has a number too: 0, 1, 2, … in its stream. The
output's number determines the message that caused it, and the message determines the time at which
it was due. A number that comes twice is a repetition, a number that never comes is a loss. A
workload keeps nothing for each message: it computes both directions, most easily by repeating a
cycle of messages that is built once (`cycle`).

A workload of your own is a file with a function `workload(options)` that returns an object with
the attributes of `Workload`; `wallaroo load --workload my.py` runs it. See docs/load-testing.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from wallaroo_loadgen.common.schedule import Int64s

Framing = Literal["lines", "frames"]
"""What separates outputs in the sink's bytes: line feeds, or lengths in 4-byte headers."""

UNMATCHED = -1
"""Stands for the stream of an output that no sent message has caused."""

IGNORED = -2
"""The stream of an output that is not counted, such as an answer to a probe."""


class WorkloadError(ValueError):
    """A workload, or an option given to it, that cannot work; the message is for its author."""


class Block(NamedTuple):
    """Consecutive messages of a stream, framed, ready to be written.

    `ends[i]` is where the block's message `i` ends in `data`.
    """

    data: bytes
    ends: Int64s


class Matched(NamedTuple):
    """For each output of a batch its stream (or `UNMATCHED`, `IGNORED`) and its number there."""

    streams: Int64s
    numbers: Int64s


class Stream(Protocol):
    """One connection's messages and the outputs they cause.

    Attributes:
        source: which of the workload's `sources` it sends to.
        share: its part of the whole rate; the streams' shares add up to 1.
    """

    source: int
    share: float

    def block(self, first: int, count: int) -> Block:
        """Return messages `first` … `first + count - 1`, framed. Fewer may be returned."""

    def expected(self, messages: int) -> int:
        """Return how many outputs the first `messages` messages cause."""

    def cause(self, outputs: Int64s) -> Int64s:
        """Return the messages that cause these outputs (numbers from 0)."""


class Workload(Protocol):
    """What a load generator must know about an application.

    Attributes:
        sources: the inputs, in the order in which `--to` names their addresses.
        framing: how outputs are separated in the sink's bytes.
        streams: the connections.
        counted: what counts as answered, for reports; empty: as the workload's name says.
        unanswered: it is not known which outputs are to come. All are `IGNORED`, and there is no
            latency.
    """

    sources: Sequence[str]
    framing: Framing
    streams: Sequence[Stream]
    counted: str = ""
    unanswered: bool = False

    def match(self, outputs: list[bytes]) -> Matched:
        """Return which outputs these are. Any bytes may come; it never raises."""

    def preparation(self) -> dict[int, bytes]:
        """Return framed messages, by source, to be sent once before the run; by default none."""
        return {}

    def probe(self, attempt: int) -> dict[int, bytes]:
        """Return framed messages to be sent again and again until `answers` says yes.

        By default there are none: the application cannot be asked, and the run starts at once.
        """
        return {}

    def answers(self, outputs: list[bytes]) -> bool:
        """Whether these outputs, the first since the preparation, prove that it was processed."""
        return bool(outputs)


@dataclass(frozen=True)
class Options:
    """What a workload is made from.

    Args:
        seed: of everything random in the payloads.
        connections: how many streams are wanted.
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
            WorkloadError: when it is not such a number, or out of bounds.
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
            WorkloadError: when it is not such a number, or out of bounds.
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
        """The run as eight lower-case letters and digits, to be put into payloads."""
        return f"{self.run:08x}"
