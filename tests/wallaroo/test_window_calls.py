"""Windows by an engine that folds, through `wallaroo.judging`: as the reference does them."""

from __future__ import annotations

import pytest
from wallaroo_conformance.cases.either import engine_case
from wallaroo_conformance.cases.timed.case import Entry, TimedCase, TimedStep, WindowSpec
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Case
from wallaroo.judging.calls import Message, Outcome
from wallaroo.judging.folding import Folded, Folding
from wallaroo.judging.window_calls import WindowCalls
from wallaroo.topology import Sink, Step
from wallaroo.trace import Trace
from wallaroo.windows import RangeWindows


def folded(case: Case) -> Trace:
    """Run a case of one window step: windows by hand, which fire at the end."""
    application, results = case.application, list[Outcome]()
    calls = WindowCalls(application)
    step, sink = application.nodes[1:]
    assert isinstance(step, Step)
    assert isinstance(sink, Sink)
    windows = step.operation.windows  # type: ignore[union-attr]
    folding = Folding(calls, step, results.append)
    holding: dict[int, Folded] = {}
    key = b""
    for sequence, record in enumerate(case.records):
        for message in calls.begin(sequence, record):
            if not isinstance(message, Message):
                results.append(message)
                continue
            found = calls.key(step, message)
            assert isinstance(found, bytes)
            key, starts = found, [0]
            if isinstance(windows, RangeWindows):
                latest = message.time // windows.slide * windows.slide
                starts = [*range(latest, message.time - windows.range, -windows.slide)]
            for start in starts:
                holding[start] = folding.add(holding.get(start, {}), key, message)
    for start, held in sorted(holding.items()):
        for given in folding.give(held, key, start):
            results += calls.pass_on(sink, given) if isinstance(given, Message) else [given]
    return calls.trace(results, [])


@pytest.mark.parametrize("operator", ["texts", "halves", "greatest", "prepended"])
@pytest.mark.parametrize(
    "window",
    [
        WindowSpec(delay=1000),  # so nothing is late, and all fire when the source ends
        WindowSpec(size=10, slide=4, delay=1000),
        WindowSpec(kind="session", size=100, delay=1000),
    ],
)
def test_what_is_folded_is_what_the_rules_combine(operator: str, window: WindowSpec) -> None:
    payloads = [b"a 12 m", b"a 15 u", b"a 9 x", b"a 13 z", b"a x y", b"a 11 o", b"a 14 n"]
    inputs = tuple([Entry(payload=payload) for payload in payloads])
    case = engine_case(TimedCase(steps=(TimedStep(operator, window=window),), inputs=inputs))
    assert folded(case).comparable() == ReferenceEngine().run(case).comparable()
