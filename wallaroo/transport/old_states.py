"""Stored states and accumulators that the application would build otherwise today.

A class that has gained an attribute makes states without it unusable: each message that asks for it
would become a dead letter, and leave its entity half changed. So before anything is processed, a
stored object of each state partition and window step is compared with a fresh one. The fresh one
has been stored and read back too: what the class leaves out, or fills in, on this way
(``__getstate__``, ``__setstate__``, the application's own codec) is no difference.

Only what is certain counts. A stored object may have further attributes, and an attribute that was
a number may be a text now: the application itself may have set it. But it must have all that a
fresh one has, and where a fresh one has a list, a dict or another container that is changed in
place, the stored one must have such a container, or `None`.
"""

from __future__ import annotations

import contextlib
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo.copying import Copies, copies_by
from wallaroo.judging import DeadLetterError
from wallaroo.topology import Application
from wallaroo.transport.identity import CheckpointError
from wallaroo.windowing.kinds import windowed
from wallaroo.windows import Shape, shape_of

_CONTAINERS = {list, dict, set, bytearray, deque, defaultdict, Counter, OrderedDict}
_PLAIN = {*_CONTAINERS, bool, int, float, complex, str, bytes, tuple, frozenset}
_HOOKS = ("__getattr__", "__getstate__", "__reduce__", "__reduce_ex__", "__setstate__")
# What user code may raise; it is met, and named, where it is run for good.
_RAISED = (Exception, SystemExit, KeyboardInterrupt)
_LONGEST = 40  # characters of a default that is shown


@dataclass(frozen=True)
class Place:
    """A state partition, or a window step.

    Args:
        name: of the state partition, or of the aggregation.
        shape: of the windows; empty for a state partition.
    """

    name: str
    shape: Shape = ()

    def __str__(self) -> str:
        return f"{'windows of' if self.shape else 'state partition'} {self.name!r}"


def window_place(application: Application, index: int) -> Place:
    """Return the place of the window step at a node."""
    step = windowed(application, index)
    return Place(step.name, shape_of(step.windows))


class FreshStates:
    """What an application would store of its states and accumulators before any message.

    Args:
        application: the application.
    """

    def __init__(self, application: Application) -> None:
        self._copies: Copies = copies_by(application.codec)
        self._made: dict[Place, Any] = {}
        self._make: dict[Place, Callable[[], Any]] = {
            Place(partition.name): partition.builder.call for partition in application.partitions
        }
        for index in application.window_steps:
            aggregation = windowed(application, index).aggregation
            self._make[window_place(application, index)] = aggregation.initial_accumulator

    def described(self) -> dict[str, Any]:
        """Return what fresh objects look like, as JSON, by their places.

        Where this is what it was when a checkpoint was written, nothing in it needs to be read.
        """
        return {str(place): _described(make) for place, make in self._make.items()}

    def unportable(self) -> Iterator[tuple[Place, str]]:
        """Yield the places whose fresh objects cannot be stored and read back, each with why."""
        for place, make in self._make.items():
            with contextlib.suppress(*_RAISED):
                fresh = make()
                try:
                    self._copies.copied(fresh)
                except DeadLetterError as error:
                    yield place, error.error

    def refusal(self, place: Place, stored: bytes) -> str:
        """Return why this cannot stand for a state that the application builds; empty: it can.

        Raises:
            Exception: it cannot be read.
        """
        read = self._copies.loads(stored)
        try:
            fresh = self._fresh(place)
        except Exception:  # noqa: BLE001 - user code: it is met, and named, where it is run for good
            return ""
        if type(read) is not type(fresh) and not place.shape:
            return f"is a {_class_of(read)}, and the application builds a {_class_of(fresh)}"
        return self._compared(place, fresh, read).facts

    def refuse_old(self, directory: Path, stored: Iterable[tuple[Place, bytes]]) -> None:
        """Refuse a checkpoint, if a stored object differs from a fresh one.

        An object that cannot be made is no difference: code that raises is met where it is run for
        good.

        Args:
            directory: the checkpoint.
            stored: places, and an object that is stored of each.

        Raises:
            CheckpointError: one differs.
        """
        differences = []
        for place, data in stored:
            with contextlib.suppress(Exception):
                read = self._copies.loads(data)
                differences.append(self._compared(place, self._fresh(place), read))
        _refuse(directory, [difference for difference in differences if difference.facts])

    def _fresh(self, place: Place) -> Any:
        """Return a fresh object that has been stored and read back; the same one each time."""
        if place not in self._made:
            self._made[place] = self._copies.loads(self._copies.dumps(self._make[place]()))
        return self._made[place]

    @staticmethod
    def _compared(place: Place, fresh: Any, stored: Any) -> Difference:
        return Difference(place, fresh, *_compared(fresh, stored, replaced=bool(place.shape)))


@dataclass(frozen=True)
class Difference:
    """How a stored object differs from a fresh one.

    Args:
        place: where it is.
        fresh: the fresh one.
        lacks: attributes that it lacks.
        changed: attributes of another type: the name, the type it has, the type of the fresh one.
            Without a name: the object itself.
    """

    place: Place
    fresh: Any
    lacks: Sequence[str]
    changed: Sequence[tuple[str, str, str]]

    def __str__(self) -> str:
        return f"{self.place}, class {_class_of(self.fresh)}: what is stored {self.facts}"

    @property
    def facts(self) -> str:
        """What is wrong with the stored one."""
        facts = [f"has no {', '.join(map(repr, self.lacks))}"] if self.lacks else []
        for name, was, now in self.changed:
            facts.append(f"{f'has as {name!r}' if name else 'is'} a {was}, which is a {now} today")
        return ", ".join(facts)

    @property
    def remedy(self) -> str:
        """The line of code that fills in what is missing; empty: there is none."""
        kind = type(self.fresh)
        if not self.lacks or kind in _PLAIN:
            return ""
        fills = [
            f"self.{name} = {_default(getattr(self.fresh, name, None))}; " for name in self.lacks
        ]
        rest = "self.__dict__.update(state)"
        if not hasattr(self.fresh, "__dict__"):
            rest = "[setattr(self, *pair) for pair in state[1].items()]"
        return (
            f"in class {kind.__qualname__}, def __setstate__(self, state): {''.join(fills)}{rest}"
        )


def _refuse(directory: Path, differences: Sequence[Difference]) -> None:
    if not differences:
        return
    facts = ". ".join(map(str, differences))
    remedies = [difference.remedy for difference in differences if difference.remedy]
    ways = [f"write {'; '.join(remedies)}"] if remedies else []
    ways.append(
        f"change them with wallaroo checkpoint {directory} --migrate MODULE:FUNCTION --app APP"
    )
    ways.append("take them as they are with --accept-old-states")
    raise CheckpointError(
        f"the checkpoint {directory} holds what other code has made: {facts}. Nothing was "
        f"processed. What to do: {', or '.join(ways)}"
    )


def _compared(
    fresh: Any, stored: Any, *, replaced: bool
) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Return the attributes that `stored` lacks, and those of another type.

    Args:
        fresh: a fresh object.
        stored: the stored one.
        replaced: the application may put an object of another class in its place.
    """
    pair = type(fresh), type(stored)
    if fresh is None or stored is None or (replaced and pair[0] is not pair[1]):
        return [], []
    if pair[0] is not pair[1] and any(kind in _PLAIN for kind in pair):
        return [], [("", *[kind.__qualname__ for kind in reversed(pair)])]
    lacks, changed = [], []
    for name in _attributes(fresh):
        if not hasattr(stored, name):
            lacks.append(name)
        elif was := _other_type(getattr(fresh, name), getattr(stored, name)):
            changed.append((name, was, type(getattr(fresh, name)).__qualname__))
    return lacks, changed


def _other_type(fresh: Any, stored: Any) -> str:
    """Return the type of a value that cannot stand for a fresh container; else nothing."""
    wanted, there = type(fresh), type(stored)
    fits = issubclass(there, wanted) or (wanted, there) == (list, tuple)
    certain = wanted in _CONTAINERS and there in _PLAIN
    return there.__qualname__ if certain and not fits else ""


def _described(make: Callable[[], Any]) -> Any:
    try:
        fresh = make()
        hooks = sorted(
            {name for base in type(fresh).__mro__ for name in _HOOKS if name in base.__dict__}
        )
        attributes = {name: _class_of(getattr(fresh, name)) for name in _attributes(fresh)}
        return [_class_of(fresh), attributes, hooks]
    except _RAISED:
        return None


def _attributes(value: Any) -> Iterator[str]:
    """Yield the names of the attributes that an object has itself: in its dict, or in slots."""
    yield from getattr(value, "__dict__", ())
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{base.__name__.lstrip('_')}{name}"  # noqa: PLW2901 - as Python names it
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name


def _class_of(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else _qualified(kind)


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _default(value: Any) -> str:
    """Return a value as it is written in code, where that is short and certain."""
    text = repr(value) if type(value) in {*_PLAIN, type(None)} else ""
    if type(value) in _CONTAINERS - {list, dict, set, bytearray}:
        text = ""
    return text if 0 < len(text) <= _LONGEST else "..."
