"""Watches the calls of user code while a case runs, and notes the facts that they show.

The calls tell which preconditions of rules a case really meets: that a computation *did* say
``changed=False`` after altering the state, not only that the application has such a computation.
"""

from __future__ import annotations

from collections import Counter
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
    KEYS,
    MULTI_COMPUTATIONS,
    ROUTES,
    STATE_MULTI_COMPUTATIONS,
    STEPS,
    Trait,
)
from wallaroo_conformance.judge.fact import Fact

Entity: TypeAlias = tuple[int, bytes]
"""The index of a state partition, and an encoded key; of a state with one key, no bytes."""

RAISED = object()
"""Stands for the result of a call that raised."""

Sort: TypeAlias = Literal["raised", "none", "empty", "falsy", "value", "items"]
"""`empty` and `items` for lists and tuples; `falsy` for other values that are false, or cannot be
tested for truth."""

_TODAY = 1 << 53  # from here on, floats leave out numbers


class Observer:
    """Notes the facts that the calls of one run show.

    Args:
        case: the case.
        application: its application.
    """

    def __init__(self, case: ConformanceCase, application: Application) -> None:
        self.facts: set[Fact] = set()
        self.met: dict[Entity, list[int]] = {}
        """For each entity whose key the calls show, the numbers of the frames that met it."""
        self.keys: dict[int, dict[bytes, Any]] = {}
        """For each state partition the keys found for it, encoded and as given."""
        self.visitors: dict[int, set[str]] = {}
        """For each state partition the pipelines whose messages came to it."""
        self.built: Counter[str] = Counter()
        """Entities built, by the name of their state partition."""
        self._case = case
        self._application = application
        self._specs = step_specs(case, application)
        self._shared = Counter([step.partition for step in case.stateful()])
        self._frame = -1
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
                note(self, site, arguments, RAISED)
                raise
            note(self, site, arguments, result)
            return result

        return observed

    def _decode(self, _site: CallSite, _arguments: Any, result: Any) -> None:
        self._frame += 1
        self._visits.clear()
        self._fired = False
        sort = _content(result).sort
        if sort == "none":
            self.facts.add(Fact.DECODER_FILTERS)
        elif sort != "raised":
            self.facts.add(Fact.DECODED)
        if sort in ("falsy", "empty"):
            self.facts.add(Fact.DECODER_GIVES_FALSY)

    def _event_time(self, site: CallSite, _arguments: Any, result: Any) -> None:
        if result is not RAISED:
            self.facts.add(Fact.EVENT_TIME)
        name = site.component.component.__name__
        if EVENT_TIMES.has(name, Trait.OF_TOPIC):
            self.facts.add(Fact.RECORD_TIME)
        if EVENT_TIMES.has(name, Trait.ALTERS_MESSAGE):
            self.facts.add(Fact.EVENT_TIME_ALTERS)
        if isinstance(result, datetime):
            self.facts.add(Fact.EVENT_MOMENT)

    def _compute(self, site: CallSite, _arguments: Any, result: Any) -> None:
        spec, operation = self._spec(site), self._operation(site)
        name, facts = spec.operator, self.facts
        content = _content(result)
        if isinstance(operation, Stateful):
            self._meet_state(site, spec, operation, result)
            if not operation.computation.pair:
                facts.add(Fact.OWN_STATE)
            elif result is not RAISED:
                self._pair(name, content)
            return
        if spec.parallel:
            facts.add(Fact.PARALLEL)
        if name in MULTI_COMPUTATIONS:
            self._items(name, content)
            return
        facts.add(Fact.COMPUTED)
        if content.changed is not None:
            return  # a pair is an ordinary message here
        if content.sort == "none":
            facts.add(Fact.COMPUTATION_FILTERS)
        elif content.sort in ("falsy", "empty"):
            facts.add(Fact.COMPUTATION_GIVES_FALSY)

    def _meet_state(self, site: CallSite, spec: StepSpec, operation: Stateful, result: Any) -> None:
        if self._case.partitions[spec.partition].expire_after is not None:
            self.facts.add(Fact.EXPIRING)
        if self._case.form == "pipelines" and self._shared[spec.partition] > 1:
            self.facts.add(Fact.STATE_NAMED)
        self.visitors.setdefault(spec.partition, set()).add(self._pipeline(site))
        if operation.route is None and not operation.keyed:
            self.facts.add(Fact.ONE_KEY)
            if result is not RAISED:
                self._visit((spec.partition, b""), site)

    def _pair(self, name: str, content: _Content) -> None:
        """Note an output and the flag that says whether the state has changed."""
        facts = self.facts
        if content.changed is None:
            facts.add(Fact.BAD_PAIR)
            return
        if content.changed:
            facts.add(Fact.STATE_CHANGED)
        elif STEPS.has(name, Trait.ALTERS_SILENTLY):
            facts.add(Fact.STATE_ALTERED_SILENTLY)
        if STEPS.has(name, Trait.ALIASES):
            facts.add(Fact.STATE_SHARES)
        if content.sort == "none":
            facts.add(Fact.STATE_COMPUTATION_GIVES_NONE)
        if name in STATE_MULTI_COMPUTATIONS:
            self._items(name, content)
        elif content.sort in ("falsy", "empty"):
            facts.add(Fact.STATE_COMPUTATION_GIVES_FALSY)

    def _items(self, name: str, content: _Content) -> None:
        """Note what is in the result of a multi computation, with state or without."""
        facts = self.facts
        if content.sort in ("none", "empty"):
            facts.add(Fact.MULTI_GIVES_NONE)
        elif content.sort != "raised":
            facts.add(Fact.MULTI)
        if content.gaps:
            facts.add(Fact.MULTI_LEAVES_GAPS)
        if content.sort in ("value", "falsy") and STEPS.has(name, Trait.WRONG_ITEMS):
            facts.add(Fact.BAD_ITEMS)

    def _build(self, site: CallSite, _arguments: Any, result: Any) -> None:
        name = str(site.place)
        self.built[name] += 1
        self.facts.add(Fact.BUILDER_RAISES if result is RAISED else Fact.ENTITY_BUILT)
        builder = self._case.partitions[PARTITIONS.index(name)].builder
        if BUILDERS.has(builder, Trait.REMEMBERS):
            self.facts.add(Fact.BUILDER_SHARES)
        if BUILDERS.has(builder, Trait.FALSY_STATE):
            self.facts.add(Fact.FALSY_STATE)

    def _partition(self, site: CallSite, arguments: Any, result: Any) -> None:
        spec, operation = self._spec(site), self._operation(site)
        if isinstance(operation, KeyBy):
            self.facts.add(Fact.KEY_EXTRACTOR_LETTER if result is RAISED else Fact.KEY_STAYED)
            if KEYS.has(spec.operator, Trait.ALTERS_MESSAGE):
                self.facts.add(Fact.KEY_FUNCTION_ALTERS)
        else:
            assert spec.route is not None
            if result is RAISED:
                self.facts.add(Fact.ROUTE_RAISED)
            if ROUTES.has(spec.route, Trait.ALTERS_MESSAGE) and _is_mutable(arguments[0]):
                self.facts.add(Fact.KEY_FUNCTION_ALTERS)
        if isinstance(operation, Stateful):
            self.visitors.setdefault(spec.partition, set()).add(self._pipeline(site))
        if result is RAISED:
            return
        try:
            encoded = encode_key(result)
        except BadKeyError:
            return
        self.facts.add(Fact.KEY_FOUND)
        place = spec.partition if isinstance(operation, Stateful) else -1
        self.keys.setdefault(place, {})[encoded] = result
        if isinstance(operation, Stateful):
            self._find(site, spec, encoded, result)

    def _find(self, site: CallSite, spec: StepSpec, encoded: bytes, key: Any) -> None:
        """Note the key that a partition function has found for a state partition."""
        partition = self._case.partitions[spec.partition]
        self._visit((spec.partition, encoded), site)
        if partition.shape == "u64" and is_u64(key):
            self.facts.add(Fact.U64_KEY)
        if partition.keys is not None:
            self.facts.add(Fact.LISTED_KEY)

    def _visit(self, entity: Entity, site: CallSite) -> None:
        """Note which frame met an entity, and whether its items meet it at several steps."""
        self.met.setdefault(entity, []).append(self._frame)
        steps = self._visits.setdefault(entity, Counter())
        steps[self._index(site)] += 1
        if len(steps) > 1 and steps.total() > 2:
            self.facts.add(Fact.SEVERAL_ITEMS_MEET_AGAIN)

    def _encode(self, site: CallSite, arguments: Any, result: Any) -> None:
        assert isinstance(site.user, Sink)
        sort = _content(result).sort
        if sort == "none":
            self.facts.add(Fact.ENCODER_FILTERS)
        elif sort == "falsy":
            self.facts.add(Fact.ENCODER_GIVES_FALSY)
        if self._case.form == "pipelines":
            return  # its encoder is a plain one
        encoder = self._case.encoders(site.user.pipeline)[site.user.index]
        if len(self._case.encoders(site.user.pipeline)) > 1:
            self.facts.add(Fact.SEVERAL_SINKS)
            if ENCODERS.has(encoder, Trait.ALTERS_MESSAGE) and _is_mutable(arguments[0]):
                self.facts.add(Fact.ENCODER_ALTERS_SHARED)

    def _update(self, site: CallSite, arguments: Any, result: Any) -> None:
        facts, operation = self.facts, self._operation(site)
        assert isinstance(operation, Windowed)
        windows = operation.windows
        self._fired = False
        facts.add(Fact.WINDOWED)
        if result is RAISED:
            facts.add(Fact.UPDATE_RAISED)
        elif result is not None and not result:
            facts.add(Fact.AGGREGATION_FALSY)
        if not operation.keyed and operation.route is None:
            facts.add(Fact.ONE_KEY)
        if getattr(windows, "late", None) is LateDataPolicy.PLACE_IN_OLDEST_WINDOW:
            facts.add(Fact.LATE_PLACED)
        if getattr(windows, "delay", 0):
            facts.add(Fact.DELAYED)
        if isinstance(windows, CountWindows):
            facts.add(Fact.COUNTING)

    def _initial(self, site: CallSite, _arguments: Any, _result: Any) -> None:
        if AGGREGATIONS.has(self._spec(site).operator, Trait.REMEMBERS):
            index = self._index(site)
            if index in self._begun:
                self.facts.add(Fact.ACCUMULATOR_SHARED)
            self._begun.add(index)

    def _combine(self, site: CallSite, _arguments: Any, result: Any) -> None:
        operation = self._operation(site)
        assert isinstance(operation, Windowed)
        session = isinstance(operation.windows, SessionWindows)
        self.facts.add(Fact.SESSIONS_COMBINED if session else Fact.PANES_COMBINED)
        if result is RAISED:
            self.facts.add(Fact.COMBINE_RAISED)
        elif result is not None and not result:
            self.facts.add(Fact.AGGREGATION_FALSY)

    def _output(self, site: CallSite, arguments: Any, result: Any) -> None:
        facts, operation = self.facts, self._operation(site)
        assert isinstance(operation, Windowed)
        windows = operation.windows
        facts.add(Fact.FIRED)
        if self._fired:
            facts.add(Fact.DUE_TOGETHER)
        self._fired = True
        if result is None:
            facts.add(Fact.WINDOW_GIVES_NONE)
        elif result is RAISED:
            facts.add(Fact.OUTPUT_RAISED)
        elif not result:
            facts.add(Fact.AGGREGATION_FALSY)
        bounds = arguments[2] if len(arguments) > 2 else None
        if getattr(windows, "late", None) is LateDataPolicy.FIRE_PER_MESSAGE and (
            bounds is None or bounds.end == bounds.start + 1
        ):
            facts.add(Fact.LATE_FIRED)
        if isinstance(windows, RangeWindows):
            facts.add(Fact.FIRED_RANGE)
            if bounds is not None and bounds.start >= _TODAY:
                facts.add(Fact.LARGE_TIMES_FIRED)
            if windows.slide != windows.range:
                facts.add(Fact.FIRED_SLIDING)
                if AGGREGATIONS.has(self._spec(site).operator, Trait.ALTERS_PANES):
                    facts.add(Fact.ACCUMULATOR_SHARED)
        elif isinstance(windows, SessionWindows):
            facts.add(Fact.FIRED_SESSION)
        elif isinstance(windows, CountWindows):
            facts.add(Fact.FIRED_COUNT)
            if windows.timeout is not None:
                facts.add(Fact.FIRED_BY_TIMEOUT)

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
"""What is noted of the calls of each method of user code."""


def step_specs(case: ConformanceCase, application: Application) -> dict[int, StepSpec]:
    """Return the case's steps by their nodes in the application; merges and `collect` have none."""
    nodes = [
        index
        for index, node in enumerate(application.nodes)
        if isinstance(node, Step) and not isinstance(node.operation, (Branch, Collect, Merge))
    ]
    if case.form == "builder":
        steps = [step for source in case.sources for step in case.row(source.id)]
    else:
        steps = [step for step in case.steps if step.operator not in GRAPH]
    return dict(zip(nodes, steps, strict=True))


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
