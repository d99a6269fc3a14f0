"""What `isolated` mode notices about an application: where `trusting` mode would not forgive it.

Nothing here decides a result. The interpreter tells the `Observer` of each call that was made, with
what went in and what came out. What must be compared anyway (an entity that a call left without
saying ``changed=True``) is looked at each time; what costs a walk over objects is looked at for
each component's first calls and then ever more seldom, unless `thorough`.
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
from wallaroo.components import Component
from wallaroo.keys import Key
from wallaroo.topology import Application
from wallaroo.trace import Finding, FindingKind, Lineage, Reason
from wallaroo_reference.copies import ATOMS, PROTOCOL, Frozen, thaw
from wallaroo_reference.dead_letter import DeadLetterError
from wallaroo_reference.places import FrozenEntity, Place

_ALWAYS = 16  # first calls of each component that are looked at
_BY_REFERENCE = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, Enum)
_VALUES = (
    *(tuple, frozenset, str, bytes, int, float, complex, range, Decimal, Fraction),
    *(date, time, timedelta, tzinfo, UUID, PurePath),
)
_WIDEST_WALK = 10_000  # objects; beyond that a walk gives up rather than be slow


class Observer:
    """Collects findings; each kind once per step, where it was met first."""

    def __init__(self, application: Application, *, thorough: bool) -> None:
        self.findings: list[Finding] = []
        self._met: set[tuple[FindingKind, str, int]] = set()
        self._thorough = thorough
        self._attributes = {
            id(use.component): _attributes(use.component) for use in application.components()
        }

    # -- what the interpreter tells ---------------------------------------------------------------

    def decoded(self, place: Place, lineage: Lineage) -> None:
        """A decoder has given a message."""
        place.calls += 1
        if place.calls >= place.next_look:
            self._look_at_components(place, lineage)

    def computed(self, place: Place, lineage: Lineage, result: Any) -> None:
        """A computation has returned `result`; of a multi one, the list of its items."""
        place.calls += 1
        if place.calls >= place.next_look:
            self._look_at_components(place, lineage)
            self._look_at_items(place, lineage, result)

    def routed(self, place: Place, lineage: Lineage, message: Any, mine: Any) -> None:
        """A partition function has read `mine`, its copy of the frozen `message`."""
        if place.calls + 1 >= place.next_look:  # the visit that follows counts
            self._look_at_copy(place, lineage, message, mine, "the partition function")

    def built(
        self, place: Place, lineage: Lineage, key: Key, builder: Component, state: Any
    ) -> None:
        """Look whether a new state can be changed at all, and is its entity's alone."""
        self._unaltered(place, lineage, builder)
        mine = _mutables(state)
        shared = _shared(_mutables(getattr(builder.component, "__dict__", None)), mine)
        if shared is not None and not isinstance(builder.component, type):
            self._find(
                FindingKind.SHARED_MESSAGE,
                place,
                lineage,
                key,
                f"{builder.name} keeps a {shared} that is part of the state it builds, so all its "
                "entities share it. Make a new one in build()",
            )
        if not mine:
            self._find(
                FindingKind.IMMUTABLE_STATE,
                place,
                lineage,
                key,
                f"{builder.name} builds a state of type {type(state).__name__}, which no "
                "computation can change. Write a class with an attribute instead",
            )

    def visited(
        self,
        place: Place,
        lineage: Lineage,
        entity: FrozenEntity,
        message: Any,
        state: Any,
        given: Any,
    ) -> None:
        """A state computation has taken a message and given its output, or a list of outputs."""
        place.calls += 1
        if place.calls >= place.next_look:
            self._look_at_components(place, lineage)
            self._look_at_state(place, lineage, entity.key, message, state, given)
            self._look_at_items(place, lineage, given)

    def unchanged(self, place: Place, lineage: Lineage, entity: FrozenEntity, state: Any) -> None:
        """A state computation has said ``changed=False`` and left `state`, its copy, behind."""
        self._look_at_rest(place, lineage, entity, state, "said changed=False")

    def failed(
        self,
        place: Place,
        lineage: Lineage,
        entity: FrozenEntity,
        state: Any,
        dead: DeadLetterError,
    ) -> None:
        """A state computation has failed and left `state`, its copy, behind."""
        self._look_at_rest(place, lineage, entity, state, _HOW_IT_FAILED[dead.reason])

    def encoded(self, place: Place, lineage: Lineage, message: Any, mine: Any) -> None:
        """An encoder has read `mine`, its copy of the frozen `message`."""
        place.calls += 1
        if place.calls >= place.next_look:
            self._look_at_components(place, lineage)
            self._look_at_copy(place, lineage, message, mine, "the encoder")

    def became_dead_letter(
        self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError
    ) -> None:
        """A message has become a dead letter."""
        if dead.reason is Reason.UNPORTABLE:
            self._find(FindingKind.UNPORTABLE, place, lineage, key, dead.error)

    # -- what is looked at ------------------------------------------------------------------------

    def _look_at_components(self, place: Place, lineage: Lineage) -> None:
        """Look whether a component's own attributes are what they were when the run began.

        Says as well which of its calls is to be looked at next.
        """
        often = self._thorough or place.calls < _ALWAYS
        place.next_look = place.calls + 1 if often else 2 * place.calls
        route = None if place.stateful is None else place.stateful.route
        self._unaltered(place, lineage, place.component)
        if route is not None:
            self._unaltered(place, lineage, route)

    def _unaltered(self, place: Place, lineage: Lineage, record: Component) -> None:
        if _attributes(record) != self._attributes[id(record)]:
            self._find(
                FindingKind.COMPONENT_ALTERED,
                place,
                lineage,
                None,
                f"{record.name} altered attributes of its own or of its class. Other processes "
                "have copies that do not see this: keep what must last in the state",
            )

    def _look_at_copy(
        self, place: Place, lineage: Lineage, message: Any, mine: Any, what: str
    ) -> None:
        """Look whether who was only to read a message has altered its copy."""
        if type(mine) not in ATOMS and not _same(message, mine):
            self._find(
                FindingKind.SHARED_MESSAGE,
                place,
                lineage,
                None,
                f"{what} altered the message, which others get too. Let it read only",
            )

    def _look_at_items(self, place: Place, lineage: Lineage, items: Any) -> None:
        """Look whether items of one multi output have an object in common."""
        seen: dict[int, Any] = {}
        for item in items if place.multi else ():
            mine = _mutables(item)
            shared = _shared(seen, mine)
            if shared is not None:
                self._find(
                    FindingKind.SHARED_MESSAGE,
                    place,
                    lineage,
                    None,
                    f"two items of its result share a {shared}. Give each its own",
                )
                return
            seen.update(mine)

    def _look_at_state(
        self, place: Place, lineage: Lineage, key: Key, message: Any, state: Any, given: Any
    ) -> None:
        """Look whether the state and a message have an object in common after the call."""
        outputs = given if place.multi else [given]
        parts = [("the message it was given", message), *[("its output", item) for item in outputs]]
        parts = [(what, value) for what, value in parts if type(value) not in ATOMS]
        kept = _mutables(state) if parts else {}
        for what, value in parts:
            shared = _shared(kept, _mutables(value))
            if shared is not None:
                self._find(
                    FindingKind.SHARED_MESSAGE,
                    place,
                    lineage,
                    key,
                    f"it left a {shared} that is part of {what} in the state. Keep a copy of it",
                )

    def _look_at_rest(
        self, place: Place, lineage: Lineage, entity: FrozenEntity, state: Any, how: str
    ) -> None:
        """Look whether a call that was not to change the state has altered its copy."""
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
        except Exception:  # noqa: BLE001, S110 - it can no longer be pickled: altered, surely
            pass
        self._find(
            FindingKind.UNFLAGGED_MUTATION,
            place,
            lineage,
            entity.key,
            f"it altered the state and then {how}; the state is as it was before the call. "
            "Return (output, True) to keep what it did",
        )

    def _find(
        self, kind: FindingKind, place: Place, lineage: Lineage, key: Key | None, text: str
    ) -> None:
        if (kind, place.pipeline, place.position) not in self._met:
            self._met.add((kind, place.pipeline, place.position))
            step = place.step or place.component.name
            self.findings.append(Finding(kind, place.pipeline, step, key, lineage, text))


_HOW_IT_FAILED = {
    Reason.RAISED: "raised",
    Reason.BAD_RESULT: "returned a bad result",
    Reason.UNPORTABLE: "gave what cannot be pickled",
    None: "ended the run",
}


def _attributes(record: Component) -> Any:
    """Return the structures of the data an instance and its classes hold, where there is one."""
    component = record.component
    if isinstance(component, type):  # handed over as a class: the instance that is called
        component = getattr(record.call, "__self__", component)
    if isinstance(component, type) or hasattr(component, "__wrapped__"):
        return None
    attributes = {
        name: value
        for base in reversed(type(component).__mro__[:-1])
        for name, value in vars(base).items()
        if not name.startswith("__") and not callable(value) and not hasattr(value, "__get__")
    }
    attributes.update(getattr(component, "__dict__", None) or {})
    structures = {}
    for name, value in attributes.items():
        # What cannot be reduced, such as an abstract class's registry, cannot be compared.
        with contextlib.suppress(Exception):
            structures[name] = structure(value)
    return structures


def _same(one: Any, other: Any) -> bool:
    """Whether what was frozen as `one` is what `other` is now."""
    try:
        return bool(structure(thaw(one)) == structure(other))
    except Exception:  # noqa: BLE001 - user code in __reduce_ex__ may raise anything
        return False


def _mutables(value: Any) -> dict[int, Any]:
    """Return the objects reachable from `value` that someone could alter, by id."""
    if type(value) in ATOMS:
        return {}
    found: dict[int, Any] = {}
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
        found[id(item)] = item
        if type(item) is dict:  # from Python 3.13 on, not all dicts tell the collector their items
            todo.extend(item.keys())
            todo.extend(item.values())
        else:
            todo.extend(gc.get_referents(item))
    return found


def _is_value(item: Any) -> bool:
    """Whether nobody can alter `item` itself, whatever may be said of what it refers to."""
    parameters = getattr(type(item), "__dataclass_params__", None)
    if parameters is not None:
        return bool(parameters.frozen)
    return isinstance(item, _VALUES) and not hasattr(item, "__dict__")


def _parts(value: Any) -> Iterable[Any]:
    """Return what a value refers to, without what it keeps that in."""
    if isinstance(value, (tuple, frozenset)):
        return gc.get_referents(value)
    fields = getattr(type(value), "__dataclass_fields__", ())
    return [getattr(value, name, None) for name in fields]


def _shared(one: dict[int, Any], other: dict[int, Any]) -> str | None:
    """Return the type of an object in both, unless pickling keeps its identity, as an enum's."""
    for key in one.keys() & other.keys():
        item = one[key]
        try:
            if pickle.loads(pickle.dumps(item, PROTOCOL)) is item:  # noqa: S301 - our own bytes
                continue
        except Exception:  # noqa: BLE001, S110 - not portable, which is found elsewhere
            pass
        return type(item).__name__
    return None
