"""Watches the calls of user code while a case runs, and notes the laws that they exercise.

The calls tell which preconditions of rules a case really meets: that a computation *did* say
``changed=False`` after altering the state, not only that the application has such a computation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from wallaroo.keys import BadKeyError, encode_key, is_u64
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Stateful, Windowed
from wallaroo.topology import Application, Sink, Step
from wallaroo.user_code.calls import Call, CallSite
from wallaroo.windows import CountWindows, LateDataPolicy, RangeWindows, SessionWindows
from wallaroo_conformance.cases.case import PARTITIONS, ConformanceCase, StepSpec
from wallaroo_conformance.cases.operators import (
    AGGREGATIONS,
    BUILDERS,
    ENCODERS,
    EVENT_TIMES,
    GRAPH,
    MULTI_COMPUTATIONS,
    ROUTES,
    STATE_MULTI_COMPUTATIONS,
    STEPS,
    Trait,
)

Entity: TypeAlias = tuple[int, bytes]
"""The index of a state partition, and an encoded key; of a state with one key, no bytes."""

RAISED = object()
"""Stands for the result of a call that raised."""

Sort: TypeAlias = Literal["raised", "none", "empty", "falsy", "value", "items"]
"""`empty` and `items` for lists and tuples; `falsy` for other values that are false, or cannot be
tested for truth."""

_FALSE = ("falsy", "empty")
_ALTERING = [ENCODERS[name] for name in ENCODERS.having(Trait.ALTERS_MESSAGE)]
_TODAY = 1 << 53  # from here on, floats leave out numbers

Conditions: TypeAlias = Mapping[str, object]
"""Ids of laws, each with what is true if the case exercises it."""


def holding(conditions: Conditions) -> set[str]:
    """Return the laws whose conditions hold."""
    return {law for law, holds in conditions.items() if holds}


class Observer:
    """Notes the laws that the calls of one run exercise.

    Args:
        case: the case.
        application: its application.
    """

    def __init__(self, case: ConformanceCase, application: Application) -> None:
        self.laws: set[str] = set()
        self.met: Counter[Entity] = Counter()
        """For each entity whose key the calls show, how many messages met it."""
        self.keys: dict[int, dict[bytes, Any]] = {}
        """For each state partition the keys found for it, encoded and as given."""
        self.visitors: dict[int, set[str]] = {}
        """For each state partition the pipelines whose messages came to it."""
        self.built: Counter[str] = Counter()
        """Entities built, by the name of their state partition."""
        self.one_object = False
        """A builder hands out one object again and again."""
        self._case = case
        self._behind = application.consumers
        self._specs = step_specs(case, application)
        self._shared = Counter([step.partition for step in case.stateful()])
        self._visits: dict[Entity, Counter[int]] = {}  # of one frame, by the step's node
        self._begun: set[int] = set()  # window steps that have begun with what is handed out again
        self._fired = False  # a window has fired since the last message

    def around(self, site: CallSite, call: Call) -> Call:
        """Return a call that is noted."""
        note = _NOTED.get(site.method)
        if note is None:
            return call

        def observed(*arguments: Any) -> Any:
            try:
                result = call(*arguments)
            except BaseException:
                self.laws |= holding(note(self, site, arguments, RAISED))
                raise
            self.laws |= holding(note(self, site, arguments, result))
            return result

        return observed

    def _decode(self, _site: CallSite, _arguments: Any, result: Any) -> Conditions:
        self._visits.clear()
        self._fired = False
        sort = _content(result).sort
        return {
            "decode-1/filter": sort == "none",
            "decode-1/payload": sort not in ("none", "raised"),
            "decode-1/falsy": sort in _FALSE,
        }

    def _event_time(self, site: CallSite, _arguments: Any, result: Any) -> Conditions:
        traits = EVENT_TIMES.traits[site.component.component.__name__]
        return {
            "time-2/kept": result is not RAISED,
            "kafka-8/timestamp": Trait.OF_TOPIC in traits,
            "time-2/hidden": Trait.ALTERS_MESSAGE in traits,
            "time-2/moment": isinstance(result, datetime),
        }

    def _compute(self, site: CallSite, _arguments: Any, result: Any) -> Conditions:
        spec, operation, content = self._spec(site), self._operation(site), _content(result)
        if isinstance(operation, Stateful):
            table = self._meet_state(site, spec, operation, result)
            pair = operation.computation.pair and result is not RAISED
            return {**table, **(_pair(spec.operator, content) if pair else {})}
        multi = spec.operator in MULTI_COMPUTATIONS
        single = not multi and content.changed is None  # a pair is an ordinary message here
        return {
            "compute-3/parallel": spec.parallel,
            "compute-1/result": not multi,
            "compute-1/filter": single and content.sort == "none",
            "compute-1/falsy": single and content.sort in _FALSE,
            **(_items(spec.operator, content) if multi else {}),
        }

    def _meet_state(
        self, site: CallSite, spec: StepSpec, operation: Stateful, result: Any
    ) -> Conditions:
        one_key = operation.route is None and not operation.keyed
        of_pipelines = not operation.computation.pair
        self.visitors.setdefault(spec.partition, set()).add(self._pipeline(site))
        visit = one_key and result is not RAISED
        return {
            "key-4/kept": self._case.partitions[spec.partition].expire_after is not None,
            "key-3/named": of_pipelines and self._shared[spec.partition] > 1,
            "key-3/output": of_pipelines,
            "key-2/single": one_key,
            **(self._visit((spec.partition, b""), site) if visit else {}),
        }

    def _build(self, site: CallSite, _arguments: Any, result: Any) -> Conditions:
        name = str(site.place)
        self.built[name] += 1
        traits = BUILDERS.traits[self._case.partitions[PARTITIONS.index(name)].builder]
        self.one_object |= Trait.REMEMBERS in traits
        return {
            "state-1/raises": result is RAISED,
            "state-1/built": result is not RAISED,
            "state-1/falsy": Trait.FALSY_STATE in traits,
        }

    def _partition(self, site: CallSite, arguments: Any, result: Any) -> Conditions:
        spec, operation, raised = self._spec(site), self._operation(site), result is RAISED
        extracts = isinstance(operation, KeyBy)
        function = spec.operator if extracts else str(spec.route)
        alters = ROUTES.has(function, Trait.ALTERS_MESSAGE)
        table: dict[str, object] = {
            "key-1/failed": extracts and raised,
            "key-1/stays": extracts and not raised,
            "route-1/raises": not extracts and raised,
            "route-1/hidden": alters and (extracts or _is_mutable(arguments[0])),
        }
        stateful = isinstance(operation, Stateful)
        if stateful:
            self.visitors.setdefault(spec.partition, set()).add(self._pipeline(site))
        if raised:
            return table
        try:
            encoded = encode_key(result)
        except BadKeyError:
            return table
        self.keys.setdefault(spec.partition if stateful else -1, {})[encoded] = result
        partition = self._case.partitions[spec.partition] if stateful else None
        if partition is not None:
            table |= self._visit((spec.partition, encoded), site)
            table["route-5/refused"] = partition.shape == "u64" and is_u64(result)
            table["route-3/listed"] = partition.keys is not None
        return {**table, "route-2/given": True}

    def _visit(self, entity: Entity, site: CallSite) -> Conditions:
        """Note that a message met an entity; return whether its items meet it at several steps."""
        self.met[entity] += 1
        steps = self._visits.setdefault(entity, Counter())
        steps[self._index(site)] += 1
        return {"order-1/depth": len(steps) > 1 and steps.total() > 2}

    def _encode(self, site: CallSite, arguments: Any, result: Any) -> Conditions:
        assert isinstance(site.user, Sink)
        sort, several = _content(result).sort, len(self._behind[site.user.inputs[0]]) > 1
        alters = several and any(site.component.component is one for one in _ALTERING)
        return {
            "sink-1/none": sort == "none",
            "sink-1/empty": sort == "falsy",
            "sink-2/several": several,
            "state-6/encoders": alters and _is_mutable(arguments[0]),
        }

    def _update(self, site: CallSite, arguments: Any, result: Any) -> Conditions:
        operation = self._operation(site)
        assert isinstance(operation, Windowed)
        windows = operation.windows
        late = getattr(windows, "late", None)
        self._fired = False
        return {
            "window-6/early": True,
            "window-9/update": result is RAISED,
            "window-4/false": result is not None and not result,
            "key-2/single": not operation.keyed and operation.route is None,
            "window-6/placed": late is LateDataPolicy.PLACE_IN_OLDEST_WINDOW,
            "window-3/delay": getattr(windows, "delay", 0),
            "window-8/early": isinstance(windows, CountWindows),
        }

    def _initial(self, site: CallSite, _arguments: Any, _result: Any) -> Conditions:
        remembers = AGGREGATIONS.has(self._spec(site).operator, Trait.REMEMBERS)
        again = self._index(site) in self._begun
        self._begun.add(self._index(site))
        return {"window-5/own": remembers and again}

    def _combine(self, site: CallSite, _arguments: Any, result: Any) -> Conditions:
        operation = self._operation(site)
        assert isinstance(operation, Windowed)
        session = isinstance(operation.windows, SessionWindows)
        return {
            "window-7/merged": session,
            "window-5/panes": not session,
            "window-9/combine": result is RAISED,
            "window-4/false": result is not None and not result,
        }

    def _output(self, site: CallSite, arguments: Any, result: Any) -> Conditions:
        operation = self._operation(site)
        assert isinstance(operation, Windowed)
        windows = operation.windows
        ranges, counts = isinstance(windows, RangeWindows), isinstance(windows, CountWindows)
        sliding = isinstance(windows, RangeWindows) and windows.slide != windows.range
        alters = AGGREGATIONS.has(self._spec(site).operator, Trait.ALTERS_PANES)
        bounds = arguments[2] if len(arguments) > 2 else None
        of_one = bounds is None or bounds.end == bounds.start + 1
        fired, self._fired = self._fired, True
        per_message = getattr(windows, "late", None) is LateDataPolicy.FIRE_PER_MESSAGE
        return {
            "time-4/sequence": True,
            "window-3/once": True,
            "window-4/output": True,
            "window-10/gone": True,
            "time-4/together": fired,
            "window-4/nothing": result is None,
            "window-9/output": result is RAISED,
            "window-4/false": result is not None and not result,
            "window-6/fires": per_message and of_one,
            "window-2/grid": ranges,
            "window-2/large": ranges and bounds is not None and bounds.start >= _TODAY,
            "window-2/sliding": sliding,
            "window-5/own": sliding and alters,
            "window-7/sessions": isinstance(windows, SessionWindows),
            "window-8/count": counts,
            "window-8/timeout": getattr(windows, "timeout", None) is not None,
        }

    def _index(self, site: CallSite) -> int:
        assert isinstance(site.place, int)  # of a node
        return site.place

    def _spec(self, site: CallSite) -> StepSpec:
        return self._specs[self._index(site)]

    def _operation(self, site: CallSite) -> Any:
        assert isinstance(site.user, Step)
        return site.user.operation

    def _pipeline(self, site: CallSite) -> str:
        assert isinstance(site.user, Step)
        return site.user.pipeline


_NOTED = {
    "decode": Observer._decode,
    "event_time": Observer._event_time,
    "compute": Observer._compute,
    "build": Observer._build,
    "partition": Observer._partition,
    "encode": Observer._encode,
    "initial_accumulator": Observer._initial,
    "update": Observer._update,
    "combine": Observer._combine,
    "output": Observer._output,
}
"""What the calls of each method of user code show."""


def step_specs(case: ConformanceCase, application: Application) -> dict[int, StepSpec]:
    """Return the case's steps by their nodes in the application; merges and `collect` have none."""
    nodes = [
        index
        for index, node in enumerate(application.nodes)
        if isinstance(node, Step) and not isinstance(node.operation, (Branch, Collect, Merge))
    ]
    steps = [step for step in case.steps if step.operator not in GRAPH]
    return dict(zip(nodes, steps, strict=True))


def _pair(name: str, content: _Content) -> Conditions:
    """Return what an output shows, and the flag that says whether the state has changed."""
    good, traits = content.changed is not None, STEPS.traits[name]
    multi = name in STATE_MULTI_COMPUTATIONS
    return {
        "state-2/pair": not good,
        "state-2/refused": content.changed,
        "state-3/changed": content.changed,
        "state-4/secret": content.changed is False and Trait.ALTERS_SILENTLY in traits,
        "state-6/alias": good and Trait.ALIASES in traits,
        "state-5/nothing": good and content.sort == "none",
        "state-5/falsy": good and not multi and content.sort in _FALSE,
        **(_items(name, content) if good and multi else {}),
    }


def _items(name: str, content: _Content) -> Conditions:
    """Return what is in the result of a multi computation, with state or without."""
    nothing = content.sort in ("none", "empty")
    wrong = content.sort in ("value", "falsy")
    return {
        "compute-2/none": nothing,
        "compute-2/items": not nothing and content.sort != "raised",
        "compute-2/gaps": content.gaps,
        "compute-2/bad": wrong and STEPS.has(name, Trait.WRONG_ITEMS),
    }


class _Content(NamedTuple):
    """What is in a result.

    Args:
        sort: of the result; of a pair of output and flag, of the output.
        changed: the flag, if it is such a pair.
        gaps: whether the items have `None` among them.
    """

    sort: Sort
    changed: bool | None = None
    gaps: bool = False


def _content(result: Any) -> _Content:
    changed = None
    if type(result) is tuple and len(result) == 2 and type(result[1]) is bool:
        result, changed = result
    if result is RAISED:
        return _Content("raised")
    if result is None:
        return _Content("none", changed)
    try:
        if isinstance(result, (list, tuple)):
            gaps = any(item is None for item in result)
            return _Content("items" if result else "empty", changed, gaps)
    except Exception:  # noqa: BLE001 - an operator's own __iter__ may raise anything
        return _Content("value", changed)
    return _Content("falsy" if _is_false(result) else "value", changed)


def _is_false(value: Any) -> bool:
    """Whether a value is false, or cannot be tested for truth at all."""
    if value is NotImplemented:  # the test is a warning, and from Python 3.14 on an error
        return True
    try:
        return not value
    except Exception:  # noqa: BLE001 - an operator's own __bool__ may raise anything
        return True


def _is_mutable(value: Any) -> bool:
    """Whether a message can be altered, or one of a tuple's items."""
    if isinstance(value, tuple):
        return any(map(_is_mutable, value))
    return isinstance(value, (list, dict, set))
