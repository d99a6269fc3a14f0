"""The components of an application, measured: how long each call takes, what comes of it.

`Probes.application` is the same application; its components call the user's and note what came of
it. An engine runs it for every message, or for a sample: `should_look` says when. Reads that were
not looked at are represented by the next read of the same source that is looked at: each of its
values also counts for theirs. Such counts are estimates, unless no read was left out.

Looking costs about a microsecond a call, and at most 0.5 % of the time is spent on it. So when
there is little to do, every message is looked at.
"""

from __future__ import annotations

import functools
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from wallaroo.aggregations import AggregationRecord
from wallaroo.components import Component
from wallaroo.metrics.registry import Registry
from wallaroo.operations import KeyBy
from wallaroo.topology import Application, ComponentUse, Source, StatePartition, Step

_SHARE = 0.005  # of the time, at most, is spent on looking
_CALL = 500  # nanoseconds that it takes to look at a call, roughly
_TOGETHER = 256  # records that are brought to the registry at once
_SAVED = 10_000_000  # nanoseconds that may be saved up for a large read
_MOST_KEPT = 10_000  # calls of a read that are kept to represent what follows it

_Visits: TypeAlias = "Counter[Hashable]"

Mark: TypeAlias = "tuple[list[tuple[int, int, int, int]], dict[str, int]]"
"""How much was seen: of each node, and of each state partition's visits."""

_now = time.perf_counter_ns

like = functools.partial(functools.wraps, assigned=("__annotations__",), updated=())
"""Gives a function the annotations of another: an engine may read the type that it returns."""


@dataclass(slots=True)
class _Seen:
    """What was seen at a node during one read.

    Attributes:
        calls: nanoseconds of each call of the decoder, computation, update or encoder.
        others: nanoseconds of each other call: partition functions, event times, outputs.
        sent: messages that came of them.
        fired: windows that fired, whether they gave a message or none.
    """

    calls: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    sent: int = 0
    fired: int = 0

    def take(self) -> _Seen:
        """Return what was seen, and begin anew, with the same lists: the calls write to them."""
        seen = _Seen(self.calls[:], self.others[:], self.sent, self.fired)
        self.calls.clear()
        self.others.clear()
        self.sent = self.fired = 0
        return seen


class Probes:
    """Measures an application's components.

    Args:
        application: whose.
        registry: what is found goes there.
        always: every read is looked at.

    Attributes:
        application: the same application, measured.
        registry: gets what is found.
        visits: the keys' identities of all visits of entities, by state partition; the engine
            appends to it while it is looked at.
    """

    def __init__(
        self,
        application: Application,
        registry: Registry,
        *,
        always: bool = False,
    ) -> None:
        self.visits: dict[str, list[Hashable]] = {one.name: [] for one in application.partitions}
        self.registry = registry
        self._always = always
        self._seen = [_Seen() for _ in application.nodes]
        self._indices = {id(node): index for index, node in enumerate(application.nodes)}
        self._sources = {
            node.pipeline: index
            for index, node in enumerate(application.nodes)
            if isinstance(node, Source)
        }
        self._bare = {  # sources whose values are messages as they come
            name
            for name, source in application.sources.items()
            if source.config.decoder is None and source.config.event_time is None
        }
        self._credit = float(_SAVED)
        self._at = _now()
        self._source = ""
        self._records = 0  # looked at, and not yet in the registry
        self._left_out: defaultdict[str, int] = defaultdict(int)
        self._last: dict[str, tuple[int, list[_Seen], dict[str, _Visits]]] = {}
        self.application = application.map_components(self._measured)

    def should_look(self, source: str, records: int) -> bool:
        """Return whether to look at the next read of a source.

        Args:
            source: its name, or any other name for records that stand for each other.
            records: how many there are.
        """
        now = _now()
        self._credit = min(self._credit + _SHARE * (now - self._at), _SAVED)
        self._at = now
        if self._credit <= 0 and not self._always:
            self._left_out[source] += records
            return False
        if self._records and (source != self._source or self._left_out[source]):
            self.flush()  # what was seen so far represents no other read
        self._source = source
        return True

    def looked(self, records: int) -> None:
        """Note that `records` records were looked at since `should_look` said so."""
        self._records += records
        if self._records >= _TOGETHER or self._left_out[self._source]:
            self.flush()

    def mark(self) -> Mark:
        """Return how much was seen until now and is not in the registry yet, for `forget`."""
        seen = [(len(one.calls), len(one.others), one.sent, one.fired) for one in self._seen]
        return seen, {name: len(keys) for name, keys in self.visits.items()}

    def forget(self, mark: Mark) -> None:
        """Forget what was seen since `mark`: the same records are processed once more."""
        seen, visits = mark
        for one, (calls, others, sent, fired) in zip(self._seen, seen, strict=True):
            del one.calls[calls:], one.others[others:]
            one.sent, one.fired = sent, fired
        for name, count in visits.items():
            del self.visits[name][count:]

    def flush(self) -> None:
        """Bring what was seen to the registry."""
        source, records = self._source, self._records
        if not records:
            return
        began = _now()
        self._records = 0
        seen = [one.take() for one in self._seen]
        left_out, self._left_out[source] = self._left_out[source], 0
        times = (records + left_out) / records if left_out else 1
        if source in self._bare:
            seen[self._sources[source]].sent = records
        visits = {name: Counter(keys) for name, keys in self.visits.items() if keys}
        for keys in self.visits.values():
            keys.clear()
        made = sum([len(one.calls) + len(one.others) for one in seen])
        self._last[source] = (records, seen, visits) if made < _MOST_KEPT else (records, [], {})
        self._note(seen, visits, times)
        with self.registry.lock:
            self.registry.sampled += records
            self.registry.left_out += left_out
        self._credit -= _CALL * made + (_now() - began)

    def settle(self) -> None:
        """Bring all to the registry; the last read looked at represents those after it too."""
        self.flush()
        for source, left_out in self._left_out.items():
            records, seen, visits = self._last.get(source, (0, [], {}))
            if left_out and records and seen:
                self._left_out[source] = 0
                self._note(seen, visits, left_out / records)
                with self.registry.lock:
                    self.registry.left_out += left_out

    def _note(self, seen: list[_Seen], visits: dict[str, _Visits], times: float) -> None:
        with self.registry.lock:
            for name, keys in visits.items():
                self.registry.partitions[name].add_visits(keys, times)
            for one, node in zip(seen, self.registry.nodes, strict=True):
                if one.calls:
                    node.time.add(one.calls, times)
                if one.others:
                    node.other_nanoseconds += sum(one.others) * times
                node.sent += one.sent * times
                node.fired += one.fired * times

    def _measured(self, use: ComponentUse) -> Component:
        """Return a component that is measured where it is used."""
        component, user = use.component, use.user
        if isinstance(user, StatePartition) or use.role == "generator":
            return component
        seen = self._seen[self._indices[id(user)]]
        if isinstance(component, AggregationRecord):
            return _aggregation(component, seen)
        call = component.call
        if use.role == "decoder":
            assert isinstance(user, Source)
            if user.config.event_time is None:
                return replace(component, call=_one(call, seen))
            return replace(component, call=_timed(call, seen.calls))
        if use.role == "event time":
            return replace(component, call=_passed_on(call, seen, seen.others))
        if use.role == "partition function":
            if isinstance(user, Step) and isinstance(user.operation, KeyBy):
                return replace(component, call=_passed_on(call, seen, seen.calls))
            return replace(component, call=_timed(call, seen.others))
        multi, pair = getattr(component, "multi", False), getattr(component, "pair", False)
        if pair:
            return replace(component, call=_pair(call, seen, multi=multi))
        return replace(component, call=_many(call, seen) if multi else _one(call, seen))


def _timed(call: Callable[..., Any], times: list[int]) -> Callable[..., Any]:
    """Return `call`, whose times are noted."""

    @like(call)
    def timed(*arguments: Any) -> Any:
        began = _now()
        try:
            return call(*arguments)
        finally:
            times.append(_now() - began)

    return timed


def _passed_on(call: Callable[..., Any], seen: _Seen, times: list[int]) -> Callable[..., Any]:
    """Return a call about a message that goes on unless it raises."""

    @like(call)
    def passed_on(*arguments: Any) -> Any:
        began = _now()
        try:
            result = call(*arguments)
        finally:
            times.append(_now() - began)
        seen.sent += 1
        return result

    return passed_on


def _one(call: Callable[..., Any], seen: _Seen) -> Callable[..., Any]:
    """Return a call that gives a message or `None`."""
    times = seen.calls

    @like(call)
    def one(*arguments: Any) -> Any:
        began = _now()
        try:
            result = call(*arguments)
        finally:
            times.append(_now() - began)
        if result is not None:
            seen.sent += 1
        return result

    return one


def _many(call: Callable[..., Any], seen: _Seen) -> Callable[..., Any]:
    """Return a call that gives several messages."""

    @like(call)
    def many(*arguments: Any) -> Any:
        began = _now()
        took = None
        try:
            result = call(*arguments)
            result, took = _counted(result, seen, began)
        finally:
            if took is None:
                seen.calls.append(_now() - began)
        return result

    return many


def _pair(call: Callable[..., Any], seen: _Seen, *, multi: bool) -> Callable[..., Any]:
    """Return a state computation's call."""

    @like(call)
    def pair(*arguments: Any) -> Any:
        began = _now()
        took = None
        try:
            result = call(*arguments)
            if type(result) is tuple and len(result) == 2 and result[0] is not None:
                if not multi:
                    seen.sent += 1
                else:
                    items, took = _counted(result[0], seen, began)
                    if took is not None:
                        result = (items, result[1])
        finally:
            if took is None:
                seen.calls.append(_now() - began)
        return result

    return pair


def _counted(items: Any, seen: _Seen, began: int) -> tuple[Any, Any]:
    """Return items that are counted, and `None` if their call has ended.

    An iterator's items are made while the engine asks for them: this is part of the call.
    """
    if type(items) is list or type(items) is tuple:
        seen.sent += sum([item is not None for item in items])
        return items, None
    if hasattr(type(items), "__next__"):
        counting = _counting(items, seen, _now() - began)
        return counting, counting
    return items, None


def _counting(items: Iterator[Any], seen: _Seen, before: int) -> Iterator[Any]:
    began = _now()
    try:
        for item in items:
            if item is not None:
                seen.sent += 1
            yield item
    finally:
        seen.calls.append(before + _now() - began)


def _aggregation(record: AggregationRecord, seen: _Seen) -> AggregationRecord:
    output = record.output

    @like(output)
    def given(*arguments: Any) -> Any:
        seen.fired += 1
        began = _now()
        try:
            result = output(*arguments)
        finally:
            seen.others.append(_now() - began)
        if result is not None:
            seen.sent += 1
        return result

    combine = record.combine
    return replace(
        record,
        call=_timed(record.call, seen.calls),
        initial_accumulator=_timed(record.initial_accumulator, seen.others),
        combine=None if combine is None else _timed(combine, seen.others),
        output=given,
    )
