"""The compiled path: `trusting` mode, a function generated from the topology.

For each source one function takes a batch of payloads and runs the pipeline as nested loops, as one
would write it by hand: no object per message, no copy, no call but the user's. What the rules
require to be checked is checked; what costs is left to the paths that are not taken:

- a ``try`` that does not raise costs nothing, so each user call stands in one of its own;
- a lineage is worked out only when somebody asks: a loop's position is what its iterator has left;
- a key met before has been judged before, so a dictionary hit on a key of exact type is enough.

``wallaroo graph APP --compiled`` prints the source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from wallaroo.canonical import structure
from wallaroo.keys import (
    BadKeyError,
    Key,
    decode_key,
    identity,
    partition_number,
    show_key,
)
from wallaroo.topology import Application, SinkId, StatePartition
from wallaroo.trace import (
    DeadLetter,
    Ended,
    Entity,
    Finding,
    Lineage,
    Reason,
    describe_error,
)
from wallaroo_reference.codegen import Place, Program
from wallaroo_reference.dead import Dead
from wallaroo_reference.results import items_of, pair_of

_U64 = 1 << 64
_MISSING = object()

Feed = Callable[[Sequence[bytes], int], None]


class Compiled:
    """An application, running in `trusting` mode; see `wallaroo_reference.machine.Machine`.

    Args:
        application: what to run.
        partitions: number of partitions the entities' numbers are of (route-4).
        on_error: ``stop`` ends the run at the first dead letter (dead-4).
    """

    def __init__(
        self, application: Application, *, partitions: int = 1, on_error: str = "skip"
    ) -> None:
        self.sequence = 0
        self.outputs: dict[SinkId, list[bytes]] = {sink: [] for sink in application.sinks}
        self.dead_letters: list[DeadLetter] = []
        self.ended: Ended | None = None
        self._partitions = partitions
        self._stop_on_error = on_error == "stop"
        self.stores = {part.name: _Store(part) for part in application.partitions}
        self._source = ""
        self._feeds = self._link(Program(application), application.name)

    @property
    def findings(self) -> Sequence[Finding]:
        """None: `trusting` mode does not look."""
        return ()

    def feed(self, source: str, payloads: Sequence[bytes]) -> None:
        """Process frames of one source, in order."""
        if self.ended is not None:
            return
        self._source = source
        start = self.sequence
        self.sequence += len(payloads)
        try:
            self._feeds[source](payloads, start)
        except _Stop:
            return

    def entities(self) -> list[Entity]:
        """Return the state entities as they are now."""
        return [
            Entity(name, key, partition_number(key, self._partitions), structure(state))
            for name, store in self.stores.items()
            for key, state in store.items()
        ]

    def _link(self, program: Program, name: str) -> dict[str, Feed]:
        """Return a function per source, bound to this machine's outputs and entities."""
        names: dict[str, Any] = {
            "fail": self.fail,
            "enter": self.enter,
            "items_of": items_of,
            "pair_of": pair_of,
            "unwritable": _unwritable,
            "written": _written,
            "MISSING": _MISSING,
            "place": program.places,
            **program.calls,
        }
        for index, store in enumerate(self.stores.values()):
            names[f"store_{index}"], names[f"states_{index}"] = store, store.states
        for index, outputs in enumerate(self.outputs.values()):
            names[f"write_{index}"] = outputs.append
        code = compile(program.source, f"<compiled {name!r}>", "exec")
        exec(code, names)  # noqa: S102 - our own text; users' names enter it only as identifiers and by repr
        return {source: names[function] for source, function in program.functions.items()}

    # -- what generated code calls when something is not as usual ---------------------------------

    def fail(
        self,
        place: Place,
        lineage: Lineage,
        payload: bytes,
        error: BaseException,
        key: Key | None = None,
    ) -> None:
        """Write a dead letter, or end the run (dead-1, dead-3, dead-4)."""
        if not isinstance(error, Exception):
            self._end("exit", place, lineage, type(error).__name__)
        reason, text = place.reason, describe_error(error)
        error_type: str | None = type(error).__name__
        if isinstance(error, Dead):  # no exception of user code
            reason, error_type = error.reason, None
        if place.stateful and reason in (Reason.RAISED, Reason.BAD_RESULT) and key is not None:
            text += f" [trusting: the entity of {show_key(key)} may be half changed]"
        self.dead_letters.append(
            DeadLetter(
                lineage=lineage,
                source=self._source,
                pipeline=place.pipeline,
                step=place.step,
                position=place.position,
                sink=place.sink,
                key=key,
                reason=reason,
                error_type=error_type,
                error=text,
                payload=payload,
            )
        )
        if self._stop_on_error:
            self._end("on-error", place, lineage, None)

    def enter(self, store: _Store, place: Place, lineage: Lineage, payload: bytes, key: Any) -> Any:
        """Return the entity of a key not met before, or `_MISSING` with a dead letter written."""
        partition = store.partition
        judged: Key | None = None
        try:
            try:
                known = identity(key)
            except BadKeyError as error:
                raise Dead(Reason.BAD_KEY, str(error)) from None
            if partition.u64 and not (type(key) is int and 0 <= key < _U64):  # route-5
                raise Dead(
                    Reason.BAD_KEY, f"a 64-bit key is an int from 0 to 2**64 - 1: {show_key(key)}"
                )
            judged = key
            state = store.states.get(known, _MISSING)
            if state is _MISSING:
                if store.listed is not None and known not in store.listed:  # route-3
                    raise Dead(
                        Reason.UNKNOWN_KEY,
                        f"{show_key(key)} is not among the {len(store.listed)} keys of "
                        f"state partition {partition.name!r}",
                    )
                state = store.states[known] = partition.builder.call()  # state-1
        except BaseException as error:  # noqa: BLE001 - `fail` tells letters from ends (dead-3)
            self.fail(place, lineage, payload, error, judged)
            return _MISSING
        return state

    def _end(
        self,
        kind: Literal["on-error", "exit"],
        place: Place,
        lineage: Lineage,
        error_type: str | None,
    ) -> None:
        self.ended = Ended(kind, place.pipeline, place.step, lineage, error_type)
        raise _Stop


def compiled_source(application: Application) -> str:
    """Return the Python source that `Compiled` runs for `application`."""
    return Program(application).source


class _Store:
    """The entities of one state partition, by the identities of their keys."""

    def __init__(self, partition: StatePartition) -> None:
        self.partition = partition
        self.listed = None if partition.keys is None else {identity(key) for key in partition.keys}
        self.states: dict[Any, Any] = {}

    def items(self) -> list[tuple[Key, Any]]:
        """Return keys and states; a tuple's identity is its encoding."""
        return [
            (decode_key(known[0]) if type(known) is tuple else known, state)
            for known, state in self.states.items()
        ]


class _Stop(Exception):  # noqa: N818 - control flow
    """The run is over."""


def _written(data: Any) -> bytes:
    """Return what an encoder gave, if it is of a subclass of bytes or str, as bytes (sink-1)."""
    if isinstance(data, bytes):
        return b"".join((data,))  # whatever its __bytes__ says
    if isinstance(data, str):
        return str.encode(data)
    raise ValueError(f"an encoder returns bytes, str or None, not a {type(data).__name__}")


def _unwritable(error: ValueError) -> Dead:
    """Return why an encoder's result cannot be written: no bytes, or text that UTF-8 refuses."""
    utf8 = isinstance(error, UnicodeEncodeError)
    text = f"UTF-8 refuses the encoder's text: {error}" if utf8 else str(error)
    return Dead(Reason.ENCODE, text)
