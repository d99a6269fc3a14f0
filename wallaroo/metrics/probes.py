"""The components of an application, measured: how long each call takes, what comes of it.

`Probes.application` is the same application; its components call the user's and note what came of
it. An engine runs it for every message, or for a sample: `should_look` says when. Reads that were
not looked at are represented by the next read of the same source that is looked at: each of its
values also counts for theirs. Such counts are estimates, unless no read was left out.

Looking costs about a microsecond a call, and at most 0.5 % of the time is spent on it. So when
there is little to do, every message is looked at.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from wallaroo.components import Generator, StateComputation
from wallaroo.metrics.registry import Registry
from wallaroo.operations import KeyBy
from wallaroo.topology import Application, Source, Step
from wallaroo.user_code.calls import Call, CallSite, instrument

_SHARE = 0.005  # of the time, at most, is spent on looking
_CALL = 500  # nanoseconds that it takes to look at a call, roughly
_TOGETHER = 256  # records that are brought to the registry at once
_SAVED = 10_000_000  # nanoseconds that may be saved up for a large read
_MOST_KEPT = 10_000  # calls of a read that are kept to represent what follows it

_Visits: TypeAlias = "Counter[Hashable]"

Mark: TypeAlias = "tuple[list[tuple[int, int, int, int]], dict[str | int, int]]"
"""How much was seen: of each node, and of the visits of each state partition and window step."""

_now = time.perf_counter_ns


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
        settles: `settle` is called; if not, no read is kept for it.

    Attributes:
        application: the same application, measured.
        registry: gets what is found.
        visits: the keys' identities of all visits, by what has them (`Registry.keys_of`); the
            engine appends to it while it is looked at.
    """

    def __init__(
        self,
        application: Application,
        registry: Registry,
        *,
        always: bool = False,
        settles: bool = True,
    ) -> None:
        self.visits: dict[str | int, list[Hashable]] = {
            **{one.name: [] for one in application.partitions},
            **{index: [] for index in application.window_steps},
        }
        self.registry = registry
        self._always = always
        self._most_kept = _MOST_KEPT if settles else 0
        self._seen = [_Seen() for _ in application.nodes]
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
        self._last: dict[str, tuple[int, list[_Seen], dict[str | int, _Visits]]] = {}
        self.application = instrument(application, self._measured)

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
        return seen, {place: len(keys) for place, keys in self.visits.items()}

    def forget(self, mark: Mark) -> None:
        """Forget what was seen since `mark`: the same records are processed once more."""
        seen, visits = mark
        for one, (calls, others, sent, fired) in zip(self._seen, seen, strict=True):
            del one.calls[calls:], one.others[others:]
            one.sent, one.fired = sent, fired
        for place, count in visits.items():
            del self.visits[place][count:]

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
        visits = {place: Counter(keys) for place, keys in self.visits.items() if keys}
        for keys in self.visits.values():
            keys.clear()
        made = sum([len(one.calls) + len(one.others) for one in seen])
        self._last[source] = (
            (records, seen, visits) if made < self._most_kept else (records, [], {})
        )
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

    def _note(self, seen: list[_Seen], visits: dict[str | int, _Visits], times: float) -> None:
        with self.registry.lock:
            for place, keys in visits.items():
                self.registry.keys_of(place).add_visits(keys, times)
            for one, node in zip(seen, self.registry.nodes, strict=True):
                if one.calls:
                    node.time.add(one.calls, times)
                if one.others:
                    node.other_nanoseconds += sum(one.others) * times
                node.sent += one.sent * times
                node.fired += one.fired * times

    def _measured(self, site: CallSite, call: Call) -> Call:
        """Return a call that is measured, where it says something about a node."""
        if isinstance(site.place, str) or isinstance(site.component, Generator):
            return call
        seen, method = self._seen[site.place], site.method
        if method == "decode":
            assert isinstance(site.user, Source)
            bare = site.user.config.event_time is None  # else the event time's call counts it
            return _counted(call, seen, seen.calls) if bare else _timed(call, seen.calls)
        if method == "event_time":
            return _counted(call, seen, seen.others)
        if method == "partition":
            keys = isinstance(site.user, Step) and isinstance(site.user.operation, KeyBy)
            return _counted(call, seen, seen.calls) if keys else _timed(call, seen.others)
        if method == "output":
            return _counted(_firing(call, seen), seen, seen.others)
        if method in ("initial_accumulator", "combine"):
            return _timed(call, seen.others)
        if method == "update":
            return _timed(call, seen.calls)
        pair = isinstance(site.component, StateComputation) and site.component.pair
        if getattr(site.component, "multi", False):
            return _items_counted(call, seen, pair=pair)
        return _counted(call, seen, seen.calls, pair=pair)


def _timed(call: Call, times: list[int]) -> Call:
    """Return `call`, whose times are noted."""

    def timed(*arguments: Any) -> Any:
        began = _now()
        try:
            return call(*arguments)
        finally:
            times.append(_now() - began)

    return timed


def _firing(output: Call, seen: _Seen) -> Call:
    """Return an aggregation's `output`, whose calls are windows that fire."""

    def firing(*arguments: Any) -> Any:
        seen.fired += 1
        return output(*arguments)

    return firing


def _counted(call: Call, seen: _Seen, times: list[int], *, pair: bool = False) -> Call:
    """Return `call`, whose times are noted, and which gives a message or `None`.

    Args:
        call: what is called.
        seen: where a message is counted.
        times: where the time is noted.
        pair: it gives a message or `None`, and a flag beside it (state-2).
    """

    def counted(*arguments: Any) -> Any:
        began = _now()
        try:
            result = call(*arguments)
        finally:
            times.append(_now() - began)
        if (_output(result) if pair else result) is not None:
            seen.sent += 1
        return result

    return counted


def _output(result: Any) -> Any:
    """Return what a state computation gives beside its flag; `None` if this is no pair."""
    return result[0] if type(result) is tuple and len(result) == 2 else None


def _items_counted(call: Call, seen: _Seen, *, pair: bool) -> Call:
    """Return `call`, whose times are noted, and which gives several messages.

    An iterator makes its items while the engine asks for them: this is part of the call.
    """

    def counted(*arguments: Any) -> Any:
        began = _now()
        items = None
        try:
            result = call(*arguments)
            items = _output(result) if pair else result
        finally:
            took, made_later = _now() - began, hasattr(type(items), "__next__")
            if not made_later:
                seen.calls.append(took)
        if made_later:
            items = _counting(items, seen, took)
            return (items, result[1]) if pair else items
        if type(items) is list or type(items) is tuple:
            seen.sent += sum([item is not None for item in items])
        return result

    return counted


def _counting(items: Iterator[Any], seen: _Seen, before: int) -> Iterator[Any]:
    began = _now()
    try:
        for item in items:
            if item is not None:
                seen.sent += 1
            yield item
    finally:
        seen.calls.append(before + _now() - began)
