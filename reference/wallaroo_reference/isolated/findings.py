"""Findings: what `isolated` mode notices about an application that `trusting` mode relies on.

Nothing here changes a result. What user code raises that is called only to look, such as
`SystemExit` in a `__getstate__`, ends nothing. After each call the interpreter calls the observer
with the call's input and output. A state that a call did not declare as changed is compared each
time. Checks that must walk over many objects are made for the first calls of each component and
then less and less often, unless `thorough`.
"""

from __future__ import annotations

import contextlib
import gc
import pickle
from collections.abc import Iterable
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any
from uuid import UUID

from wallaroo.canonical import structure
from wallaroo.components import Component, StateComputation
from wallaroo.findings import Finding, FindingKind
from wallaroo.judging import DeadLetterError
from wallaroo.kafka_records import Output
from wallaroo.keys import Key
from wallaroo.operations import KeyBy
from wallaroo.overriding import override
from wallaroo.topology import Application
from wallaroo.trace import Lineage, Reason
from wallaroo.user_code.slips import pair_slip
from wallaroo_reference.isolated.copies import ATOMS, PROTOCOL, Frozen, thaw
from wallaroo_reference.isolated.observer import Observer
from wallaroo_reference.isolated.places import FrozenEntity, Place

_ALWAYS = 16  # first calls of each component, all of which are examined
_BY_REFERENCE = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, Enum)
_VALUES = (
    *(tuple, frozenset, str, bytes, int, float, complex, range, Decimal, Fraction),
    *(date, time, timedelta, tzinfo, UUID, PurePath),
)
_SHAPE = {False: tuple, True: list}  # a pair, or the items of one
_WIDEST_WALK = 10_000  # objects; a longer walk would be slow and is given up


class FindingsObserver(Observer):
    """Collects findings; each kind once per step, where it was found first."""

    def __init__(self, application: Application, *, thorough: bool) -> None:
        self.findings: list[Finding] = []
        self._met: set[tuple[FindingKind, str, int]] = set()
        self._begun: dict[Place, dict[int, Any]] = {}  # what each step's last window began with
        self._thorough = thorough
        self._attributes = {
            id(use.component): _Attributes(use.component) for use in application.components()
        }

    # -- called by the interpreter ----------------------------------------------------------------

    @override
    def decoded(self, place: Place, lineage: Lineage) -> None:
        place.calls += 1
        if place.calls >= place.next_examined:
            self._examine_components(place, lineage)

    @override
    def computed(self, place: Place, lineage: Lineage, result: Any) -> None:
        place.calls += 1
        if place.calls >= place.next_examined:
            self._examine_components(place, lineage)
            self._examine_items(place, lineage, result)

    @override
    def routed(self, place: Place, lineage: Lineage, message: Any, copy: Any) -> None:
        what = "key extractor" if isinstance(place.operation, KeyBy) else "partition function"
        if place.stateful is None:
            self._read(place, lineage, message, copy, f"the {what}")
        elif place.calls + 1 >= place.next_examined:  # the visit that follows counts
            self._examine_copy(place, lineage, message, copy, f"the {what}")

    @override
    def timed(self, place: Place, lineage: Lineage, message: Any, copy: Any) -> None:
        self._read(place, lineage, message, copy, "the event-time function")

    @override
    def built(
        self, place: Place, lineage: Lineage, key: Key, builder: Component, state: Any
    ) -> None:
        """Examine whether a new state can be changed, and shares nothing with its builder."""
        self._examine_attributes(place, lineage, builder)
        objects = _mutables(state)
        shared = _shared(_mutables(getattr(builder.component, "__dict__", None)), objects)
        if shared is not None and not isinstance(builder.component, type):
            self._add_finding(
                FindingKind.SHARED_MESSAGE,
                place,
                lineage,
                key,
                f"{builder.name} keeps a {shared} that is part of the state it builds, so all its "
                "entities share it. Make a new one in build()",
            )
        if not objects:
            self._add_finding(
                FindingKind.IMMUTABLE_STATE,
                place,
                lineage,
                key,
                f"{builder.name} builds a state of type {type(state).__name__}, which no "
                "computation can change. Write a class with an attribute instead",
            )

    @override
    def visited(
        self,
        place: Place,
        lineage: Lineage,
        entity: FrozenEntity,
        message: Any,
        state: Any,
        given: Any,
    ) -> None:
        place.calls += 1
        if place.calls >= place.next_examined:
            self._examine_components(place, lineage)
            self._examine_state(place, lineage, entity.key, message, state, given)
            self._examine_items(place, lineage, given)
            self._examine_form(place, lineage, entity.key, given)

    @override
    def unchanged(self, place: Place, lineage: Lineage, entity: FrozenEntity, state: Any) -> None:
        self._examine_unkept_state(place, lineage, entity, state, "said changed=False")

    @override
    def failed(
        self,
        place: Place,
        lineage: Lineage,
        entity: FrozenEntity,
        state: Any,
        dead: DeadLetterError,
    ) -> None:
        self._examine_unkept_state(place, lineage, entity, state, _HOW_IT_FAILED[dead.reason])

    @override
    def accumulated(self, place: Place, lineage: Lineage, key: Key, accumulator: Any) -> None:
        """Examine whether a window begins with what an earlier one has begun with."""
        objects = _mutables(accumulator)
        shared = _shared(self._begun.get(place, {}), objects)
        self._begun[place] = objects
        if shared is not None:
            self._add_finding(
                FindingKind.SHARED_MESSAGE,
                place,
                lineage,
                key,
                f"initial_accumulator() hands out a {shared} that another window has begun with, "
                "so they share it. Make a new one each time",
            )

    @override
    def encoded(
        self, place: Place, lineage: Lineage, message: Any, copy: Any, written: Output
    ) -> None:
        self._read(place, lineage, message, copy, "the encoder")

    @override
    def died(self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError) -> None:
        if dead.reason is Reason.UNPORTABLE:
            self._add_finding(FindingKind.UNPORTABLE, place, lineage, key, dead.error)

    # -- what is examined -------------------------------------------------------------------------

    def _read(self, place: Place, lineage: Lineage, message: Any, copy: Any, what: str) -> None:
        """Count a call of what should only read its copy of a message; examine it if it is time."""
        place.calls += 1
        if place.calls >= place.next_examined:
            self._examine_components(place, lineage)
            self._examine_copy(place, lineage, message, copy, what)

    def _examine_components(self, place: Place, lineage: Lineage) -> None:
        """Examine whether a component's own attributes are as they were when the run began.

        Also decides which of its calls is examined next.
        """
        often = self._thorough or place.calls < _ALWAYS
        place.next_examined = place.calls + 1 if often else 2 * place.calls
        route = None if place.stateful is None else place.stateful.route
        if place.component is not None:
            self._examine_attributes(place, lineage, place.component)
        if route is not None:
            self._examine_attributes(place, lineage, route)

    def _examine_attributes(self, place: Place, lineage: Lineage, record: Component) -> None:
        if self._attributes[id(record)].altered():
            self._add_finding(
                FindingKind.COMPONENT_ALTERED,
                place,
                lineage,
                None,
                f"{record.name} altered attributes of its own or of its class. Other processes "
                "have copies that do not see this: keep what must last in the state",
            )

    def _examine_copy(
        self, place: Place, lineage: Lineage, message: Any, copy: Any, what: str
    ) -> None:
        """Examine whether a function that should only read a message altered its copy."""
        if type(copy) not in ATOMS and not _same(message, copy):
            self._add_finding(
                FindingKind.SHARED_MESSAGE,
                place,
                lineage,
                None,
                f"{what} altered the message, which others get too. It must only read it",
            )

    def _examine_items(self, place: Place, lineage: Lineage, items: Any) -> None:
        """Examine whether items of one multi output have an object in common."""
        seen: dict[int, Any] = {}
        for item in items if place.multi else ():
            objects = _mutables(item)
            shared = _shared(seen, objects)
            if shared is not None:
                self._add_finding(
                    FindingKind.SHARED_MESSAGE,
                    place,
                    lineage,
                    None,
                    f"two items of its result share a {shared}. Give each its own",
                )
                return
            seen.update(objects)

    def _examine_form(self, place: Place, lineage: Lineage, key: Key, given: Any) -> None:
        """Examine whether a result has the shape of the builder's form (key-3)."""
        computation = place.component
        if not isinstance(computation, StateComputation) or computation.pair:
            return
        slip = pair_slip(given, multi=place.multi) if type(given) is _SHAPE[place.multi] else None
        if slip is not None:
            self._add_finding(FindingKind.PAIR_AS_OUTPUT, place, lineage, key, slip)

    def _examine_state(
        self, place: Place, lineage: Lineage, key: Key, message: Any, state: Any, given: Any
    ) -> None:
        """Examine whether the state and a message have an object in common after the call."""
        outputs = given if place.multi else [given]
        parts = [("the message it was given", message), *[("its output", item) for item in outputs]]
        parts = [(what, value) for what, value in parts if type(value) not in ATOMS]
        kept = _mutables(state) if parts else {}
        for what, value in parts:
            shared = _shared(kept, _mutables(value))
            if shared is not None:
                self._add_finding(
                    FindingKind.SHARED_MESSAGE,
                    place,
                    lineage,
                    key,
                    f"it left a {shared} that is part of {what} in the state. Keep a copy of it",
                )

    def _examine_unkept_state(
        self, place: Place, lineage: Lineage, entity: FrozenEntity, state: Any, how: str
    ) -> None:
        """Examine whether a call whose state is not kept has altered its copy of the state."""
        frozen = entity.state
        if not isinstance(frozen, Frozen):
            return
        try:
            if frozen.same(state):
                return
            now = pickle.dumps(state, PROTOCOL)
            if now == entity.like:
                return
            if _same(frozen, state):
                entity.like = now
                return
        except (Exception, SystemExit):  # noqa: BLE001, S110 - it cannot be pickled now: altered
            pass
        self._add_finding(
            FindingKind.UNFLAGGED_MUTATION,
            place,
            lineage,
            entity.key,
            f"it altered the state and then {how}; the state is as it was before the call. "
            "Return (output, True) to keep the change",
        )

    def _add_finding(
        self, kind: FindingKind, place: Place, lineage: Lineage, key: Key | None, text: str
    ) -> None:
        if (kind, place.pipeline, place.position) not in self._met:
            self._met.add((kind, place.pipeline, place.position))
            step = place.step or (place.component.name if place.component else place.pipeline)
            self.findings.append(Finding(kind, place.pipeline, step, key, lineage, text))


_HOW_IT_FAILED = {
    Reason.RAISED: "raised",
    Reason.BAD_RESULT: "returned a bad result",
    Reason.UNPORTABLE: "gave a value that cannot be pickled",
    None: "ended the run",
}


class _Attributes:
    """The attributes of a component's instance, and its classes' data, as they were at first.

    What pickles to the same bytes as before has the same structure, so a large table is pickled at
    each look and its structure is found once. Equal values may pickle to other bytes.
    """

    def __init__(self, component: Component) -> None:
        self._component = component
        self._blobs: dict[str, bytes] = {}  # bytes of each attribute as it was at first
        self._first: dict[str, Any] = {}
        self._first = self._structures()

    def altered(self) -> bool:
        """Whether they are others now."""
        return self._structures() != self._first

    def _structures(self) -> dict[str, Any]:
        """Return the canonical structures of the attributes, by name."""
        structures = {}
        for name, value in _attributes(self._component).items():
            # What cannot be reduced, such as an abstract class's registry, cannot be compared.
            with contextlib.suppress(Exception, SystemExit):
                structures[name] = self._structure(name, value)
        return structures

    def _structure(self, name: str, value: Any) -> Any:
        blob = b""
        with contextlib.suppress(Exception, SystemExit):  # a lambda has a structure all the same
            blob = pickle.dumps(value, PROTOCOL)
        if blob and self._blobs.get(name) == blob:
            return self._first[name]
        found = structure(value)
        if found == self._first.get(name, found):
            self._blobs[name] = blob
        return found


def _attributes(record: Component) -> dict[str, Any]:
    """Return an instance's attributes and its classes' data, by name."""
    component = record.component
    if isinstance(component, type):  # handed over as a class: the instance that is called
        component = getattr(record.call, "__self__", component)
    if isinstance(component, type) or hasattr(component, "__wrapped__"):
        return {}
    attributes = {
        name: value
        for base in reversed(type(component).__mro__[:-1])
        for name, value in vars(base).items()
        if not name.startswith("__") and not callable(value) and not hasattr(value, "__get__")
    }
    attributes.update(getattr(component, "__dict__", None) or {})
    return attributes


def _same(frozen: Any, current: Any) -> bool:
    """Whether `frozen`, which is frozen, has the same structure as `current` has now."""
    try:
        return bool(structure(thaw(frozen)) == structure(current))
    except (Exception, SystemExit):  # noqa: BLE001 - user code in __reduce_ex__ may raise anything
        return False


def _mutables(value: Any) -> dict[int, Any]:
    """Return the mutable objects that `value` refers to, directly or not, by id."""
    if type(value) in ATOMS:
        return {}
    mutables: dict[int, Any] = {}
    seen: set[int] = set()
    todo = [value]
    while todo and len(seen) < _WIDEST_WALK:
        item = todo.pop()
        if type(item) in ATOMS or isinstance(item, _BY_REFERENCE) or id(item) in seen:
            continue
        seen.add(id(item))
        if _is_value(item):
            todo.extend(_parts(item))
            continue
        mutables[id(item)] = item
        if type(item) is dict:  # from Python 3.13 on, gc does not see the items of all dicts
            todo.extend(item.keys())
            todo.extend(item.values())
        else:
            todo.extend(gc.get_referents(item))
    return mutables


def _is_value(item: Any) -> bool:
    """Whether `item` itself is immutable; what it refers to may be mutable."""
    parameters = getattr(type(item), "__dataclass_params__", None)
    if parameters is not None:
        return bool(parameters.frozen)
    return isinstance(item, _VALUES) and not hasattr(item, "__dict__")


def _parts(value: Any) -> Iterable[Any]:
    """Return the objects that a value refers to, but not its own attribute dict."""
    if isinstance(value, (tuple, frozenset)):
        return gc.get_referents(value)
    fields = getattr(type(value), "__dataclass_fields__", ())
    return [getattr(value, name, None) for name in fields]


def _shared(first: dict[int, Any], second: dict[int, Any]) -> str | None:
    """Return the type of an object in both; objects that pickle by reference do not count."""
    for key in first.keys() & second.keys():
        item = first[key]
        try:
            if pickle.loads(pickle.dumps(item, PROTOCOL)) is item:  # noqa: S301 - our own bytes
                continue
        except (Exception, SystemExit):  # noqa: BLE001, S110 - not portable: found elsewhere
            pass
        return type(item).__name__
    return None
