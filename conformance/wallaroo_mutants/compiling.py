"""Mutants of the compiled engine: faults in the generated code and in what it knows of errors."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import wallaroo_reference.compiled.codegen
import wallaroo_reference.compiled.machine
from wallaroo_conformance.killing import Mutant
from wallaroo_reference.compiled.codegen import Program
from wallaroo_reference.compiled.codegen_text import Loops, Spot, lineage_of
from wallaroo_reference.compiled.failing import lineage_in
from wallaroo_reference.compiled.machine import Compiled, _Stop
from wallaroo_reference.dead_letter import dead_letter_from
from wallaroo_reference.engine import CompiledEngine

from wallaroo.judging import DeadLetterError
from wallaroo.topology import Source, StatePartition
from wallaroo.trace import Lineage, Reason
from wallaroo_mutants.engine import Patch, patched


def compiled_mutant(rule: str, name: str, says: str, *patches: Patch) -> Mutant:
    """Return a mutant of the compiled engine; see `wallaroo_mutants.engine.altered`."""

    def during() -> AbstractContextManager[None]:
        return patched(patches)  # the reference has another interpreter and stays right

    return Mutant(name, rule, says, CompiledEngine, "compiled", during=during)


_line = Program.line
_call = Program.call
_exactness = Program.exactness
_event_time = Program._event_time
_lineage_when_asked = lineage_in
_fail = Compiled.fail
_end = Compiled._end


def _comments_not_counted(self: Program, indent: int, text: str) -> None:
    _line(self, indent, text)
    if text.startswith("#"):
        self.spots.pop()


def _called_by_name(self: Program, what: str, index: int, function: Any, name: str) -> str:
    del index  # two components may well have one name
    return _call(self, what, 0, function, name)


def _decoded_once(self: Program, what: str, index: int, function: Any, name: str) -> str:
    return _call(self, what, index, cache(function) if what == "decode" else function, name)


def _lists_not_copied(self: Program, indent: int, text: str) -> None:
    _line(self, indent, text.replace("[:] if ", " if "))


def _believed(self: Program, indent: int, index: int, visit: str) -> None:
    _line(self, indent, f"m{index}, changed = {visit}")


def _numbers_for_flags(self: Program, indent: int, text: str) -> None:
    exact = "changed is not True and changed is not False"
    _line(self, indent, text.replace(exact, "changed not in (True, False)"))


def _announced_text_believed(self: Program, indent: int, text: str) -> None:
    announced = [line.strip() for line in self._lines[-3:-2]] == ["if data is not None:"]
    caught = "UnicodeEncodeError" if announced else "(TypeError, UnicodeEncodeError)"
    _line(self, indent, text.replace("(TypeError, UnicodeEncodeError)", caught))


def _asked_whether_equal(self: Program, indent: int, text: str) -> None:
    _line(self, indent, text.replace(" is None:", " == None:"))


def _false_lost_where_time_counts(self: Program, index: int, origin: int, source: Source) -> None:
    first = len(self._lines)
    _event_time(self, index, origin, source)
    self._lines[first] = self._lines[first].replace("if ", "if not ").replace(" is None:", ":")


def _told_by_qualified_name(error: BaseException, reason: Reason) -> DeadLetterError:
    return DeadLetterError(dead_letter_from(error, reason).reason, "", type(error).__qualname__)


def _only_the_frame(loops: Loops, *_further: int) -> str:
    return lineage_of(loops[:1])


def _any_type(_self: Program, _key: str, _partition: StatePartition | None = None) -> str:
    return "True"


def _listed_tuples_are_keys(
    self: Program, key: str, partition: StatePartition | None = None
) -> str:
    listed = () if partition is None else partition.keys or ()
    if listed and all(type(known) is tuple for known in listed):
        return "True"
    return _exactness(self, key, partition)


def _rest_of_batch_lost(self: Compiled, names: Mapping[str, Any]) -> None:
    _fail(self, names)
    raise _Stop


class _AnotherStop(_Stop):
    """A stop that the function around the one it comes from does not know."""


def _stops_one_function(self: Compiled, *arguments: Any) -> None:
    try:
        _end(self, *arguments)
    except _Stop:
        raise _AnotherStop from None


def _in_32_bits(spot: Spot, names: Mapping[str, Any]) -> Lineage:
    first, *others = _lineage_when_asked(spot, names)
    return (first & 0xFFFFFFFF, *others)


def _of_the_batch(_spot: Spot, names: Mapping[str, Any]) -> Lineage:
    return (names["start"],)


COMPILED_MUTANTS: tuple[Mutant, ...] = (
    compiled_mutant(
        "dead-1",
        "lines counted without comments",
        "a table of lines made from another text",
        (Program, "line", _comments_not_counted),
    ),
    compiled_mutant(
        "compute-1",
        "functions found by name",
        "a table of functions in which those of one name are one",
        (Program, "call", _called_by_name),
    ),
    compiled_mutant(
        "compute-2",
        "the state's own list gone through",
        "a list taken as it is, since it is one already",
        (Program, "line", _lists_not_copied),
    ),
    compiled_mutant(
        "state-2",
        "every result believed a pair",
        "a result unpacked before it is judged",
        (Program, "_pair", _believed),
    ),
    compiled_mutant(
        "state-2",
        "1 taken for True",
        "`in (True, False)`, where 1 is True",
        (Program, "line", _numbers_for_flags),
    ),
    compiled_mutant(
        "sink-1",
        "an encoder's annotation believed",
        "what says it gives text may give bytes",
        (Program, "line", _announced_text_believed),
    ),
    compiled_mutant(
        "compute-1",
        "None told by ==",
        "`if message == None`, which an object's own class may answer",
        (Program, "line", _asked_whether_equal),
    ),
    compiled_mutant(
        "decode-1",
        "equal frames decoded once",
        "`@cache` on a decoder",
        (Program, "call", _decoded_once),
    ),
    compiled_mutant(
        "decode-1",
        "false messages lost where time counts",
        "`if not message`, in one of two ways from a decoder",
        (Program, "_event_time", _false_lost_where_time_counts),
    ),
    compiled_mutant(
        "dead-1",
        "error type by qualified name",
        "`__qualname__`, which for a nested class is another",
        (wallaroo_reference.compiled.machine, "dead_letter_from", _told_by_qualified_name),
    ),
    compiled_mutant(
        "order-1",
        "lineage lost in a deep pipeline",
        "a function that continues another gets the frame's number only",
        (wallaroo_reference.compiled.codegen, "lineage_of", _only_the_frame),
    ),
    compiled_mutant(
        "order-1",
        "sequence numbers in 32 bits",
        "a number that is packed too tightly, found after four billion frames",
        (wallaroo_reference.compiled.machine, "lineage_in", _in_32_bits),
    ),
    compiled_mutant(
        "dead-4",
        "stop lost in a deep pipeline",
        "a stop in one function is an error to the function that called it",
        (Compiled, "_end", _stops_one_function),
    ),
    compiled_mutant(
        "route-2",
        "any key looked up as it is",
        "`states[key]`, where True is 1",
        (Program, "exactness", _any_type),
    ),
    compiled_mutant(
        "route-2",
        "any key looked up where tuples alone are listed",
        "all tests of types left out, and what is left is true",
        (Program, "exactness", _listed_tuples_are_keys),
    ),
    compiled_mutant(
        "dead-2",
        "one try around the batch",
        "an exception caught further out than it may go",
        (Compiled, "fail", _rest_of_batch_lost),
    ),
    compiled_mutant(
        "order-1",
        "lineage of the batch",
        "positions not added to where the batch begins",
        (wallaroo_reference.compiled.machine, "lineage_in", _of_the_batch),
    ),
)
