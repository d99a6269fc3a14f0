"""Findings: one for each slip that `trusting` mode would not forgive, none for other code."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import threading
from pathlib import Path

import pytest
from finding_parts import Message, count, decode, encode, first
from small_steps import Seen, stateful

import wallaroo
from wallaroo import testing
from wallaroo.findings import FindingKind

# -- altered and not said so ---------------------------------------------------------------------


def alters_and(end):
    def alters(message, state):
        if message.text.endswith("1"):
            return message, True
        state.items.append("altered")
        return end(message)

    return wallaroo.state_computation(name="alters")(alters)


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (lambda message: (message, False), "said changed=False"),
        (lambda message: 1 / 0, "raised"),
        (lambda message: message, "returned a bad result"),
        (lambda message: (threading.Lock(), True), "gave a value that cannot be pickled"),
    ],
)
def test_isolation_finds_an_unflagged_mutation(app, isolated, end, text):
    application = app(
        ("to_state_partition", alters_and(end), Seen, "s", first), decoder=decode, encoder=encode
    )
    result = isolated(application, [b"a1", b"b1", b"b2", b"a2"])
    (finding,) = [one for one in result.findings if one.kind is FindingKind.UNFLAGGED_MUTATION]
    assert (finding.pipeline, finding.step, finding.key) == ("p", "alters", "b")
    assert finding.lineage == (2,)
    assert text in finding.text


class ExitsWhenAltered(Seen):
    """Cannot be pickled when it has items: that exits."""

    def __getstate__(self):
        if self.items:
            raise SystemExit("not with items")
        return dict(self.__dict__)


@pytest.mark.parametrize("end", [lambda message: (message, False), lambda message: 1 / 0])
def test_isolation_a_look_at_a_state_does_not_end_the_run(app, isolated, end):
    application = app(
        ("to_stateful", alters_and(end), ExitsWhenAltered, "s"), decoder=decode, encoder=encode
    )
    result = isolated(application, [b"a2", b"a1"])
    assert "a1" in str(result.output[-1])
    assert FindingKind.UNFLAGGED_MUTATION in {one.kind for one in result.findings}


def test_dead_3_a_state_altered_by_a_call_that_ends_the_run_is_found(app, isolated):
    @stateful
    def quits(message, state):
        state.items.append(message.text)
        raise SystemExit

    application = app(("to_stateful", quits, Seen, "s"), decoder=decode, encoder=encode)
    (finding,) = isolated(application, [b"a"]).findings
    assert finding.kind is FindingKind.UNFLAGGED_MUTATION


def test_isolation_a_state_left_alone_is_no_finding(found):
    @stateful
    def reads(message, state):
        if message.text == "b1":
            raise ValueError
        return (None, False) if state.items else (message, False)

    assert found(("to_state_partition", reads, Seen, "s", first)) == []


def test_isolation_altered_and_put_back_is_no_finding(found):
    @stateful
    def there_and_back(message, state):
        state.items.append(1)
        state.items.pop()
        state.new = 1
        del state.new
        state.items = list(state.items)
        return message, False

    assert found(("to_stateful", there_and_back, Seen, "s")) == []


def test_isolation_other_bytes_for_the_same_state_are_no_finding(found):
    class_of = {"s": {"a", "b"}}

    @stateful
    def reorders(message, state):
        state.items = [dict(reversed(class_of.items())), {"x": 1.0, "y": None}]
        return message, True

    @stateful
    def looks(message, state):
        state.items[1] = dict(reversed(state.items[1].items()))
        return message, False

    assert found(("to_stateful", reorders, Seen, "s"), ("to_stateful", looks, Seen, "s")) == []


# -- shared messages -----------------------------------------------------------------------------


@stateful
def keeps_message(message, state):
    state.items.append(message)
    return None, True


@stateful
def keeps_output(message, state):
    state.last = [message.text]
    return state.last, True


@stateful
def keeps_part(message, state):
    state.items.append(message.notes)
    return None, True


@stateful
def gives_state(message, state):
    return state, True


@wallaroo.state_computation_multi(name="keeps_an_item")
def keeps_an_item(message, state):
    state.items.append([message.text])
    return [1, state.items[-1]], True


@pytest.mark.parametrize(
    "compute", [keeps_message, keeps_output, keeps_part, gives_state, keeps_an_item]
)
def test_isolation_finds_a_share_of_a_message_in_the_state(found, compute):
    (finding,) = found(("to_state_partition", compute, Seen, "s", first))
    assert finding == (FindingKind.SHARED_MESSAGE, compute.name(), "a", (0,))


@wallaroo.computation_multi(name="shares")
def shares(message):
    return [message, Message("other"), [message]]


@wallaroo.computation_multi(name="shares_part")
def shares_part(message):
    return [[message.notes], {"notes": message.notes}]


@pytest.mark.parametrize("compute", [shares, shares_part])
def test_isolation_finds_items_that_share(found, compute):
    expected = (FindingKind.SHARED_MESSAGE, compute.name(), None, (0,))
    assert found(("to", compute)) == [expected]


def test_isolation_finds_a_partition_function_that_alters(found):
    @wallaroo.partition
    def route(message):
        message.notes.append("routed")
        return message.text[:1]

    expected = (FindingKind.SHARED_MESSAGE, "count", None, (0,))
    assert found(("to_state_partition", count, Seen, "s", route)) == [expected]


@wallaroo.key_extractor
def altered(message):
    message.notes.append("read")
    return message.text[:1]


def altered_time(message):
    message.notes.append("read")
    return 1


@pytest.mark.parametrize(
    ("keyed", "how", "step", "what"),
    [
        (True, {}, "altered", "key extractor"),
        (False, {"event_time": altered_time}, "decode", "event-time function"),
    ],
)
def test_isolation_finds_what_alters_what_it_only_reads(isolated, keyed, how, step, what):
    source = wallaroo.source("p", wallaroo.TCPSourceConfig("127.0.0.1", 7001, decode, **how))
    pipeline = source.key_by(altered) if keyed else source
    sink = wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)
    application = wallaroo.build_application("app", pipeline.to_sink(sink))
    (finding,) = isolated(application, [b"a1", b"a2"]).findings
    assert (finding.kind, finding.step, finding.lineage) == (FindingKind.SHARED_MESSAGE, step, (0,))
    assert finding.text.startswith(f"the {what} altered the message")


def test_isolation_finds_an_encoder_that_alters(found):
    @wallaroo.encoder
    def alters(message):
        message.notes.append("written")
        return message.text

    assert found(encoder=alters) == [(FindingKind.SHARED_MESSAGE, "alters", None, (0,))]


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass(frozen=True)
class Price:
    value: decimal.Decimal
    at: datetime.datetime


@pytest.mark.parametrize(
    "value",
    [
        "text",
        12345678901234567890,
        ("a", (1, None)),
        frozenset(["a"]),
        Colour.RED,
        Seen,
        len,
        decimal.Decimal("1.5"),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        datetime.timedelta(1),
        Path("a"),
        Price(decimal.Decimal(1), datetime.datetime(2026, 1, 1)),
        (Price(decimal.Decimal(1), datetime.datetime(2026, 1, 1)), Colour.RED),
        2 + 1j,
    ],
    ids=lambda value: type(value).__name__,
)
def test_isolation_what_cannot_change_may_be_shared(found, value):
    @stateful
    def keeps(message, state):
        state.last = value
        return value, True

    items = wallaroo.computation_multi(name="items")(lambda message: [message, value, [value]])
    assert found(("to_stateful", keeps, Seen, "s"), decoder=decode) == []
    assert found(("to", items)) == []


def test_isolation_a_frozen_dataclass_of_a_list_can_change(found):
    @dataclasses.dataclass(frozen=True)
    class Holder:
        items: list

    globals()["Holder"] = Holder
    Holder.__qualname__ = "Holder"

    @stateful
    def keeps(message, state):
        state.last = Holder([message.text])
        return state.last, True

    assert [one[0] for one in found(("to_stateful", keeps, Seen, "s"))] == [
        FindingKind.SHARED_MESSAGE
    ]


def test_isolation_copies_are_no_finding(found):
    @stateful
    def keeps_copies(message, state):
        state.items.append(list(message.notes))
        return [list(item) for item in state.items], True

    assert found(("to_stateful", keeps_copies, Seen, "s")) == []


# -- states, portability -------------------------------------------------------------------------


@pytest.mark.parametrize("state", [int, float, str, bytes, tuple, frozenset, decimal.Decimal, bool])
def test_isolation_finds_a_state_that_can_never_change(found, state):
    compute = wallaroo.state_computation(name="adds")(lambda message, state: (message, True))
    expected = (FindingKind.IMMUTABLE_STATE, "adds", "a", (0,))
    assert found(("to_state_partition", compute, state, "s", first)) == [expected]


@pytest.mark.parametrize("state", [list, dict, set, bytearray, Seen, lambda: None])
def test_isolation_a_state_that_can_change_is_no_finding(found, state):
    if not isinstance(state, type):
        state = type("Builder", (), {"build": lambda self: ([],)})()
    compute = wallaroo.state_computation(name="adds")(lambda message, state: (message, True))
    assert found(("to_stateful", compute, state, "s")) == []


def test_isolation_finds_what_cannot_be_pickled(found):
    gives = wallaroo.computation(name="gives")(lambda message: [threading.Lock()])
    assert found(("to", gives)) == [(FindingKind.UNPORTABLE, "gives", None, (0,))]


def test_isolation_a_builder_whose_states_share(found):
    class Shares:
        def __init__(self):
            self.common = []

        def build(self):
            return [self.common]

    compute = wallaroo.state_computation(name="c")(lambda message, state: (message, True))
    ((kind, step, _, _),) = found(("to_stateful", compute, Shares(), "s"))
    assert (kind, step) == (FindingKind.SHARED_MESSAGE, "c")


# -- how often -----------------------------------------------------------------------------------


def test_isolation_each_finding_is_told_once_per_step(found):
    findings = found(
        ("to_stateful", keeps_message, Seen, "s"),
        payloads=[b"a", b"b"] * 10,
    )
    assert len(findings) == 1


def test_isolation_a_late_slip_is_found_by_looking_thoroughly(app):
    @stateful
    def keeps_the_900th(message, state):
        state.items.append(1)
        if len(state.items) == 900:
            state.kept = message
        return None, True

    application = app(("to_stateful", keeps_the_900th, Seen, "s"), decoder=decode)
    payloads = {"p": [b"a"] * 1000}
    (finding,) = testing.run(application, payloads).findings
    assert finding.lineage == (899,)
    assert testing.run(application, payloads, options={}).findings == []


def test_isolation_an_unflagged_mutation_is_looked_for_at_every_call(app):
    @stateful
    def forgets_once(message, state):
        if message.text == "900":
            state.items.append(1)
            return None, False
        return message, False

    application = app(("to_stateful", forgets_once, Seen, "s"), decoder=decode, encoder=encode)
    payloads = {"p": [str(n).encode() for n in range(1000)]}
    (finding,) = testing.run(application, payloads, options={}).findings
    assert finding.lineage == (900,)


class Ordered:
    def __init__(self):
        self.items = {"a": [0], "b": [0]}


def test_isolation_an_unflagged_mutation_is_found_that_makes_a_state_as_one_before_was(app):
    @stateful
    def orders(message, state):
        state.items = {"new": {"z": [1]}, "altered": {"b": [0], "a": [0]}}[message.text]
        return message, message.text == "new"

    application = app(("to_stateful", orders, Ordered, "s"), decoder=decode, encoder=encode)
    payloads = {"p": [b"altered", b"new", b"altered"]}  # the first means the same state
    (finding,) = testing.run(application, payloads).findings
    assert finding.lineage == (2,)


# -- clean applications --------------------------------------------------------------------------
