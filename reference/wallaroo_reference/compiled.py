"""The compiled path: `trusting` mode, a function generated from the topology.

For each source one function takes a batch of payloads and runs the pipeline as nested loops, as one
would write it by hand: no object per message, no copy, no calls but the user's. All checks that the
rules require are made, but so that the usual path costs little:

- a ``try`` that does not raise costs almost nothing, and one in each loop is enough: the line that
  raised shows which call failed;
- a lineage is computed only when it is needed, from what the loops' iterators have left;
- a key that was seen before was judged then, so for a key of exact type a dictionary lookup is
  enough.

``wallaroo graph APP --compiled`` prints the source.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import CodeType
from typing import Any, Literal, cast

from wallaroo.canonical import structure_or_kind
from wallaroo.keys import SINGLE_KEY, decode_key, partition_number, show_key
from wallaroo.records import End, Tick, Value
from wallaroo.topology import Application, SinkId
from wallaroo.trace import (
    DeadLetter,
    Ended,
    Entity,
    Finding,
    Lineage,
    OpenWindow,
    Reason,
)
from wallaroo_reference.codegen import Program, Spot
from wallaroo_reference.dead_letter import DeadLetterError, dead_letter_from
from wallaroo_reference.meter import Meter, TooMuchOutputError
from wallaroo_reference.places import Store
from wallaroo_reference.results import items_of, pair_of, written_of

_MISSING = object()
_MAY_HALF_CHANGE = frozenset({Reason.RAISED, Reason.BAD_RESULT})

Feed = Callable[[Sequence[bytes], int], None]


class Compiled:
    """An application, running in `trusting` mode; see `wallaroo_reference.machine.Machine`.

    Args:
        application: what to run.
        partitions: number of partitions, for the entities' partition numbers (route-4).
        on_error: ``stop`` ends the run at the first dead letter (dead-4).
    """

    def __init__(
        self, application: Application, *, partitions: int = 1, on_error: str = "skip"
    ) -> None:
        self.sequence = 0
        self.outputs: dict[SinkId, list[bytes]] = {sink: [] for sink in application.sinks}
        self.dead_letters: list[DeadLetter] = []
        self.ended: Ended | None = None
        self.meter = Meter(self.outputs.values())
        self._partitions = partitions
        self._stop_on_error = on_error == "stop"
        self.stores = {part.name: Store[Any](part) for part in application.partitions}
        self._source = ""
        program = Program(application)
        self._spots = program.spots
        self._feeds = self._link(program, application.name)

    @property
    def findings(self) -> Sequence[Finding]:
        """None: `trusting` mode does not look for findings."""
        return ()

    @property
    def late(self) -> Mapping[tuple[str, str], int]:
        """None: it runs no windows yet."""
        return {}

    def take(self, record: Value | Tick | End) -> None:
        """Count a record that is no frame: it has no effect without windows."""
        self.sequence += 1

    def due(self) -> int | None:
        """Return `None`: nothing will be due."""
        return None

    @property
    def open_windows(self) -> int:
        """None: it runs no windows yet."""
        return 0

    def windows(self) -> list[OpenWindow]:
        """Return none."""
        return []

    def feed(self, source: str, payloads: Sequence[bytes], at: int = 0) -> None:
        """Process frames of one source, in order."""
        if self.ended is not None:
            return
        self._source = source
        start = self.sequence
        self.meter.begin(payloads, start)
        with contextlib.suppress(_Stop):
            self._feeds[source](payloads, start)
        self.sequence = start + len(payloads)

    def entities(self) -> list[Entity]:
        """Return the state entities as they are now."""
        found = []
        for name, store in self.stores.items():
            for known, state in store.entities.items():
                # A tuple's identity is its encoding, any other key is its own.
                key: Any = decode_key(known[0]) if isinstance(known, tuple) else known
                number = partition_number(key, self._partitions)
                structure = structure_or_kind(state)
                found.append(Entity(name, key, number, structure, partial(_itself, state)))
        return found

    def _link(self, program: Program, name: str) -> dict[str, Feed]:
        """Return a function per source, bound to this machine's outputs and entities."""
        names: dict[str, Any] = {
            "__name__": __name__,  # in tracebacks, its frames are the engine's
            "fail": self.fail,
            "portions": self.meter.portions,
            "enter": _enter,
            "items_of": lambda result: items_of(result, self.meter.most),
            "pair_of": pair_of,
            "written_of": written_of,
            "utf8": str.encode,
            "MISSING": _MISSING,
            **program.calls,
        }
        for index, store in enumerate(self.stores.values()):
            names[f"store_{index}"], names[f"states_{index}"] = store, store.entities
        for index, outputs in enumerate(self.outputs.values()):
            names[f"write_{index}"] = outputs.append
        exec(_code(program.source, name), names)  # noqa: S102 - our own text; users' names enter it only as identifiers and by repr
        return {source: names[function] for source, function in program.functions.items()}

    # -- what generated code calls off the usual path ---------------------------------------------

    def fail(self, names: Mapping[str, Any]) -> None:
        """Add a dead letter, or end the run (dead-1, dead-3, dead-4).

        Args:
            names: the variables of the generated function that caught the current exception.
        """
        spot = self._spots[_line_that_raised() - 1]
        error = sys.exception()
        assert error is not None
        # The run is over, perhaps in a function that this one has called; or there is a bug here.
        if spot is None or type(error) is _Stop:
            raise  # noqa: PLE0704 - what the caller is handling
        if type(error) is TooMuchOutputError:
            self._end("exit", spot, _lineage(spot, names), TooMuchOutputError.__name__)
        # By type: an object may say of itself that it is of another class.
        known = issubclass(type(error), DeadLetterError)
        dead = cast(DeadLetterError, error) if known else dead_letter_from(error, spot.reason)
        lineage = _lineage(spot, names)
        if dead.reason is None:
            self._end("exit", spot, lineage, dead.error_type)
            return
        key = None
        if spot.key is not None and dead.reason is not Reason.BAD_KEY:
            key = names.get(spot.key, SINGLE_KEY)
        text = dead.error
        if key is not None and dead.reason in _MAY_HALF_CHANGE:
            text += f" [trusting: the entity of {show_key(key)} may be half changed]"
        self.dead_letters.append(
            DeadLetter(
                lineage=lineage,
                source=self._source,
                pipeline=spot.pipeline,
                step=spot.step,
                position=spot.position,
                sink=spot.sink,
                key=key,
                reason=dead.reason,
                error_type=dead.error_type,
                error=text,
                payload=names["payload"],
                where=dead.failure.where,
                causes=dead.failure.causes,
            )
        )
        if self._stop_on_error:
            self._end("on-error", spot, lineage, None)

    def _end(
        self,
        kind: Literal["on-error", "exit"],
        spot: Spot,
        lineage: Lineage,
        error_type: str | None,
    ) -> None:
        self.ended = Ended(kind, spot.pipeline, spot.step, lineage, error_type, spot.sink)
        raise _Stop


def _itself(state: Any) -> Any:
    return state


@lru_cache(maxsize=256)  # compiling is most of a short run's cost, and many applications are alike
def _code(source: str, name: str) -> CodeType:
    return compile(source, f"<compiled {name!r}>", "exec")


def compiled_source(application: Application) -> str:
    """Return the Python source that `Compiled` runs for `application`."""
    return Program(application).source


def _enter(store: Store[Any], key: Any) -> Any:
    """Return the entity of a key that the generated code did not find: a tuple, or a new key.

    Raises:
        DeadLetterError: it is no key of the partition. An exception of the builder is not caught.
    """
    known = store.judge(key)
    if known not in store.entities:
        store.expect(key, known)
        store.entities[known] = store.partition.builder.call()  # state-1
    return store.entities[known]


def _line_that_raised() -> int:
    """Return the line of the generated function that raised the current exception."""
    trace = sys.exc_info()[2]
    assert trace is not None
    return trace.tb_lineno


def _lineage(spot: Spot, names: Mapping[str, Any]) -> Lineage:
    """Return the positions of the loops around a line, computed from what their iterators left."""
    positions = [
        len(names[items]) - 1 - names[rest].__length_hint__() for items, rest in spot.loops
    ]
    if "lineage" in names:
        return (*names["lineage"], *positions)
    return (names["start"] + positions[0], *positions[1:])


class _Stop(Exception):  # noqa: N818 - control flow
    """The run is over."""
