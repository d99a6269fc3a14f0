"""The text of generated functions: lines, the names that they use, and the call on each line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from wallaroo.topology import StatePartition
from wallaroo.trace import Reason

Loops = tuple[tuple[str, str], ...]
"""Loops, outermost first: for each the names of the list and of its iterator."""

FRAMES: Loops = (("payloads", "frames"),)
"""The loop of a source's function."""


@dataclass(frozen=True)
class Spot:
    """The call that a line of the generated code belongs to.

    Args:
        pipeline, step, position, sink, reason: a dead letter's fields, if the line raises.
        loops: the loops around the line in its function.
        key: the name of the variable that holds the key of the entity or window; a name that the
            function does not have stands for the key `()`. `None`: the line is about neither.
        source: the line decodes a message or finds its event time.
        half: what may be half changed if the line raises: an entity or a window.
        partition: the state partition of that entity.
    """

    pipeline: str
    step: str | None
    position: int
    sink: int | None
    reason: Reason
    loops: Loops
    key: str | None = None
    source: bool = False
    half: str = "entity"
    partition: str = ""


class Text:
    """Functions that are being written.

    Args:
        keeps: they note which entities and panes change, for checkpoints.
    """

    def __init__(self, *, keeps: bool = False) -> None:
        self.keeps = keeps
        self._lines: list[str] = []
        self._used: dict[str, None] = {}  # names the current function uses often
        self.spot: Spot | None = None  # of the next line
        self.spots: list[Spot | None] = []  # for each line; `None` for lines that call the engine
        self.calls: dict[str, Any] = {}

    @property
    def source(self) -> str:
        """The text written so far."""
        return "\n".join(self._lines) + "\n"

    def line(self, indent: int, text: str) -> None:
        """Write a line, which belongs to `spot`."""
        self._lines.append("    " * indent + text)
        self.spots.append(self.spot)

    def engine_line(self, indent: int, text: str) -> None:
        """Write a line that calls no user code: an exception there is the engine's own."""
        self.line(indent, text)
        self.spots[-1] = None

    def head(self, signature: str) -> int:
        """Begin a function; `bind` completes it."""
        self._used = {}
        self.line(0, f"def {signature}")
        return len(self._lines) - 1

    def bind(self, head: int) -> None:
        """Complete the function that begins at line `head`: make names it uses often local."""
        self._lines[head] += "".join(f", {name}={name}" for name in self._used) + "):"
        self.line(0, "")

    def caught(self, indent: int) -> None:
        """Write the end of the `try` around the processing of one message."""
        self.line(indent, "except BaseException:")
        self.engine_line(indent + 1, "fail(locals())")

    def call(self, what: str, index: int, function: Any, name: str) -> str:
        """Return the name under which the current function calls a function of node `index`."""
        called = f"{what}_{index}_{identifier(name)}"
        self.calls[called] = function
        return self.use(called)

    def use(self, name: str) -> str:
        """Make a name local to the current function."""
        self._used[name] = None
        return name

    def exactness(self, key: str, partition: StatePartition | None = None) -> str:
        """Return the test that a key has a type for which dictionary lookup is exact (route-2)."""
        kinds: set[type] = {str, int, bytes}
        if partition is not None and partition.u64:
            kinds = {int}
        elif partition is not None and partition.keys is not None:
            kinds &= {type(key_value) for key_value in partition.keys}
        names = sorted((kind.__name__ for kind in kinds), reverse=True)
        tests = [f"{self.use('type')}({key}) is {self.use(name)}" for name in names]
        return " or ".join(tests) or "False"


def lineage_of(loops: Loops, *further: int) -> str:
    """Return the expression for a lineage, computed from what is left in the loops' iterators."""
    positions = [f"len({items}) - 1 - {rest}.__length_hint__()" for items, rest in loops]
    if loops[:1] == FRAMES:
        positions[0] = f"start + {positions[0]}"
    else:
        positions.insert(0, "*lineage")
    return f"({', '.join([*positions, *map(str, further)])},)"


def sequence_of(loops: Loops) -> str:
    """Return the expression for the current message's sequence number."""
    if loops[:1] == FRAMES:
        return "start + len(payloads) - 1 - frames.__length_hint__()"
    return "lineage[0]"


def shown(name: str) -> str:
    """Return a name quoted, on one line; a subclass of `str` may have its own `__repr__`."""
    return str.__repr__(name)


def identifier(name: str) -> str:
    """Return a name as part of a Python name."""
    return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()[:40] or "unnamed"
