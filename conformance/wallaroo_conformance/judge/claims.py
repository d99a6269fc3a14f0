"""What an engine claims, and what follows where it claims less.

It may have one mode only, or keep the order of each entity only, or no order. Then cases that need
more are adapted or not run, and in the others what is not claimed is not compared. What an engine
does not claim must neither count as a fault nor cost time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from wallaroo.engine import Capabilities
from wallaroo.trace import Trace, lineage_order
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.operators import STATEFUL
from wallaroo_conformance.judge.differences import Crash, Kind, Result
from wallaroo_conformance.judge.law import Law
from wallaroo_conformance.judge.laws import EVERYWHERE, LAWS
from wallaroo_conformance.judge.oracle import Meaning

_ORDER = ("order-1", "order-2")
_KEEPS: Mapping[str, str] = {
    "entity": "it claims the order of each entity only",
    "none": "it claims no order",
}
_MET_AGAIN = frozenset({"route-1/again", "key-3/output", "window-6/early"})
"""Laws of cases in which several messages meet one entity or window, or may."""
_NO_KAFKA = "it does not claim Kafka"
_NO_BATCHES = "it takes no chosen batches"
_ONE_PARTITION = "it has one partition only"
_STOPS: Mapping[str, str] = {
    "batch": "it claims to stop behind a batch only",
    "none": "it claims no early stop",
}


@dataclass(frozen=True)
class Claims:
    """What one engine must keep; made from its `Capabilities`."""

    capabilities: Capabilities

    def adapted(self, case: ConformanceCase) -> ConformanceCase:
        """Return the case in a mode that the engine has, without thresholds or a stop it lacks."""
        can = self.capabilities
        if case.isolation not in can.isolation:
            case = replace(case, isolation=min(can.isolation, default="isolated"))
        if case.small and not can.small:
            case = replace(case, small=False)
        if case.on_error == "stop" and can.stop == "none":
            case = replace(case, on_error="skip")
        return case

    def lacks(self, case: ConformanceCase) -> str | None:
        """Return what a case needs and the engine does not claim, or `None`."""
        can = self.capabilities
        if case.isolation not in can.isolation:
            return f"it has no {case.isolation} mode"
        if case.with_topics and not can.kafka:
            return _NO_KAFKA
        if case.batches is not None and not can.batches:
            return _NO_BATCHES
        if (case.number or 1) > 1 and not can.partitions:
            return _ONE_PARTITION
        return None

    def beyond(self, meaning: Meaning) -> str | None:
        """Return why a case needs more, or shows more, than the engine claims, or `None`."""
        can, case, trace = self.capabilities, meaning.case, meaning.trace
        if (lacks := self.lacks(case)) is not None:
            return lacks
        if can.stop == "none" and trace.ended is not None:
            return _STOPS["none"]
        if can.order == "entity" and _meets_others(case):
            return f"{_KEEPS['entity']}, and messages that have met different entities meet one"
        if can.order == "none" and not _MET_AGAIN.isdisjoint(meaning.exercised):
            return f"{_KEEPS['none']}, and an entity is met again"
        return None

    def unpromised(self, meaning: Meaning) -> str | None:
        """Return why nothing but an answer is promised for a case, or `None` if more is."""
        case, findings = meaning.case, meaning.trace.findings
        if case.isolation != "trusting":
            return None
        if case.alters:
            return "trusting mode is not promised to components that alter what they read"
        if case.shows_copies:
            return (
                "trusting mode copies as often as it likes, which a codec that changes values "
                "shows, and a copy that ends the run"
            )
        if findings:
            kind = findings[0].kind.value
            return f"trusting mode is not promised to an application with findings ({kind})"
        return None

    def unclaimed(self, law: Law) -> str | None:
        """Return why the engine does not claim to keep a law, or `None` if it does."""
        can = self.capabilities
        if law.rule in can.unsupported_rules:
            return "by its own account"
        if not can.kafka and law.rule.startswith("kafka-"):
            return _NO_KAFKA
        if can.order != "total" and law.rule in _ORDER:
            return _KEEPS[can.order]
        if can.stop != "exact" and law.rule == "dead-4":
            return _STOPS[can.stop]
        return None

    def excuse(self, exercised: Set[str], kinds: Set[Kind]) -> Law | None:
        """Return a law that the engine may break without a fault, and that explains a difference.

        Laws that every case exercises excuse nothing, else no difference would be a fault.
        """
        rules = set(self.capabilities.unsupported_rules)
        if self.capabilities.order != "total":
            rules.add("order-1")
        unclaimed = [law for law in LAWS if law.rule in rules and law.id not in EVERYWHERE]
        return next((law for law in unclaimed if law.fits(exercised, kinds)), None)

    def comparable(self, expected: Trace, actual: Result) -> tuple[Trace, Result]:
        """Return two traces in which the parts that are not claimed are made equal, if possible."""
        can = self.capabilities
        claims_all = can.order == "total" and can.stop == "exact" and not can.unsupported_rules
        if claims_all or isinstance(actual, Crash):
            return expected, actual
        expected, actual = self._without(expected), self._without(actual)
        if can.order != "total":
            expected, actual = _unordered(expected), _unordered(actual)
        if can.stop == "batch" and expected.ended is not None:
            actual = _until_the_end(expected, actual, ordered=can.order == "total")
        return expected, actual

    def _without(self, trace: Trace) -> Trace:
        """Return a trace without the parts that only rules that are not claimed need."""
        rules = self.capabilities.unsupported_rules
        if "dead-1" in rules:
            trace = replace(trace, dead_letters=())
        if "route-4" in rules:
            entities = tuple([replace(entity, number=0) for entity in trace.entities])
            trace = replace(trace, entities=entities)
        if "window-11" in rules:
            trace = replace(trace, windows=())
        return trace


def _meets_others(case: ConformanceCase) -> bool:
    """Whether messages that have met different entities meet one entity, or may.

    If all that come to a state partition have met the same single entities, in one order, theirs is
    still known there.
    """
    met: dict[int, tuple[int, ...]] = {source.id: () for source in case.sources}
    """For each node, the entities that its messages have met on their way to it."""
    scattered: set[int] = set()  # nodes whose messages may have met different entities
    before: dict[int, tuple[int, ...]] = {}  # for each state partition, what its messages have met
    for step in case.steps:
        on_way = tuple(dict.fromkeys([one for origin in step.origins for one in met[origin]]))
        apart = not scattered.isdisjoint(step.origins)
        if case.meets_state(step):
            place = step.partition if step.operator in STATEFUL else -step.id
            if apart or before.setdefault(place, on_way) != on_way:
                return True
            single = step.operator in STATEFUL and case.form == "builder"
            apart = not (single and case.partitions[step.partition].shape == "single")
            on_way = (*on_way, place)
        met[step.id] = on_way
        if apart:
            scattered.add(step.id)
    return False


def _unordered(trace: Trace) -> Trace:
    return replace(
        trace,
        outputs={sink: tuple(sorted(outputs, key=repr)) for sink, outputs in trace.outputs.items()},
        dead_letters=tuple(sorted(trace.dead_letters, key=lambda one: (one.order, one.pipeline))),
    )


def _until_the_end(expected: Trace, actual: Trace, *, ordered: bool) -> Trace:
    """Return a trace without what comes after the end of the run, and without entities."""
    assert expected.ended is not None
    end = lineage_order(expected.ended.lineage)

    def part(wanted: Sequence[Any], given: Sequence[Any]) -> tuple[Any, ...]:
        if ordered:
            return tuple(given[: len(wanted)])
        left = list(given)
        return tuple([left.pop(left.index(one)) if one in left else None for one in wanted])

    return replace(
        actual,
        outputs={
            sink: part(expected.outputs.get(sink, ()), given)
            for sink, given in actual.outputs.items()
        },
        dead_letters=tuple([one for one in actual.dead_letters if one.order[0] <= end]),
        entities=expected.entities,
        windows=expected.windows,
        late=expected.late,
    )
