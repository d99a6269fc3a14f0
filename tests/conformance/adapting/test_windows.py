"""Windows by an engine that folds, through `wallaroo.judging`: as the reference does them."""

from __future__ import annotations

import pickle

import pytest
from wallaroo_conformance.adapting.calls import Calls, Message, Outcome
from wallaroo_conformance.adapting.windows import Folded, Folding, refuse_unfolded
from wallaroo_conformance.cases.building import assemble, engine_case
from wallaroo_conformance.cases.case import Input, WindowSpec
from wallaroo_conformance.cases.composing import TRIPLES_SOURCE, graph, step
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Case
from wallaroo.errors import UnsupportedTopology
from wallaroo.records import Frame
from wallaroo.topology import Application, Sink, Step
from wallaroo.trace import DeadLetter, Reason, Trace
from wallaroo.windows import RangeWindows


def folded(case: Case) -> Trace:
    """Run a case of one window step: windows by hand, which fire at the end."""
    application, results = case.application, list[Outcome]()
    calls = Calls(application)
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
    return calls.trace(results)


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
    inputs = tuple([Input(payload=payload) for payload in payloads])
    case = engine_case(graph(step(operator, window=window), inputs=inputs))
    assert folded(case).comparable() == ReferenceEngine().run(case).comparable()


def with_windows(window: WindowSpec) -> tuple[Application, Step]:
    """Return an application of one window step with letters as texts, and the step."""
    application = assemble(graph(step("texts", window=window)))
    made = application.nodes[1]
    assert isinstance(made, Step)
    return application, made


def sent(calls: Calls, *payloads: bytes) -> list[Message]:
    found = [
        message
        for number, payload in enumerate(payloads)
        for message in calls.begin(number, Frame("first", payload))
    ]
    return [message for message in found if isinstance(message, Message)]


def test_two_sessions_become_one_by_a_message_that_is_between_them() -> None:
    application, windows = with_windows(WindowSpec(kind="session", size=10))
    calls = Calls(application)
    folding = Folding(calls, windows, pytest.fail)
    early, late, between = sent(calls, b"a 5 x", b"a 20 y", b"a 12 z")
    key = calls.key(windows, early)
    assert isinstance(key, bytes)
    first, second = folding.add({}, key, early), folding.add({}, key, late)
    one = folding.join(folding.add(first, key, between), second)
    assert [*one] == [(5, 20)]
    [given] = folding.give(one, key)
    assert isinstance(given, Message)
    assert pickle.loads(given.value) == ["-", 30, "x+z+y@5-30"]
    assert given.time == 29


def test_window_9_sessions_that_cannot_be_combined_stay_without_the_message_between_them() -> None:
    application, windows = with_windows(WindowSpec(kind="session", size=5))
    calls, results = Calls(application), list[Outcome]()
    folding = Folding(calls, windows, results.append)
    early, late, between = sent(calls, b"a 3 x", b"a 9 c", b"a 5 z")  # with a c, combine raises
    key = calls.key(windows, early)
    assert isinstance(key, bytes)
    first, second = folding.add({}, key, early), folding.add({}, key, late)
    both = folding.join(folding.add(first, key, between), second)
    [letter] = results
    assert isinstance(letter, DeadLetter)
    assert (letter.lineage, letter.reason) == ((2,), Reason.RAISED)
    given = [pickle.loads(one.value) for one in folding.give(both, key)]  # type: ignore[union-attr]
    assert given == [["-", 8, "x@3-8"], ["-", 14, "c@9-14"]]


def test_a_message_late_for_several_windows_is_one_dead_letter() -> None:
    application, windows = with_windows(WindowSpec(size=10, slide=5))
    calls = Calls(application)
    folding = Folding(calls, windows, pytest.fail)
    [message] = sent(calls, b"a 5 m")
    key = calls.key(windows, message)
    assert isinstance(key, bytes)
    [letter] = folding.late(key, message)
    assert isinstance(letter, DeadLetter)
    assert letter.reason is Reason.LATE
    assert folding.late(key, message) == []
    folding.partly_late(message)
    assert calls.trace([]).late == {}


def test_a_message_late_for_some_windows_is_counted_once() -> None:
    application, windows = with_windows(WindowSpec(size=10, slide=5))
    calls = Calls(application)
    folding = Folding(calls, windows, pytest.fail)
    [message] = sent(calls, b"a 5 m")
    folding.partly_late(message)
    folding.partly_late(message)
    assert calls.trace([]).late == {(windows.name, "partly"): 1}


@pytest.mark.parametrize(
    ("window", "rule"),
    [
        (WindowSpec(kind="count", size=2), "window-8"),
        (WindowSpec(late="fire-per-message"), "window-6"),
        (WindowSpec(late="place-in-oldest-window"), "window-6"),
    ],
)
def test_build_2_windows_that_are_not_folded_are_refused(window: WindowSpec, rule: str) -> None:
    application, _ = with_windows(window)
    with pytest.raises(UnsupportedTopology) as caught:
        refuse_unfolded(application, "an engine")
    assert caught.value.rule == rule


def test_build_2_windows_of_several_sources_are_refused_to_who_has_one_input() -> None:
    merged = (step("merge", 0, 1), step("texts", window=WindowSpec()))
    application = assemble(graph(*merged, sources=(TRIPLES_SOURCE,) * 2))
    with pytest.raises(UnsupportedTopology, match="one source") as caught:
        refuse_unfolded(application, "an engine")
    assert caught.value.rule == "time-3"
