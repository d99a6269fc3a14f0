"""The compiled path gives what the interpreter gives: graphs, keys, time and windows."""

from pathlib import Path

import pytest
from counted import text
from wallaroo_reference.compiled.codegen import compiled_source
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.compiled.ranges import RangePanes
from wallaroo_reference.engine import ReferenceEngine

import wallaroo
from wallaroo.engine import Case
from wallaroo.loading import load_application
from wallaroo.records import Frame, Tick, Value

ENGINE = ReferenceEngine()
HERE = Path(__file__).parent


@wallaroo.encoder
def encode(text):
    return text + ";"


@wallaroo.key_extractor
def letter(text):
    return text[0]


def event_time(text):
    return int(text[1:])


class Texts:
    """Accumulators that are altered in place; `combine` alters the earlier one."""

    def __init__(self, name="texts"):
        self._name = name

    def name(self):
        return self._name

    def initial_accumulator(self):
        return []

    def update(self, text, accumulator):
        if text[0] == "u":
            raise ValueError(text)
        accumulator.append(text)

    def combine(self, earlier, later):
        earlier.extend(later)

    def output(self, key, accumulator, window):
        if accumulator[-1][0] == "s":
            raise RuntimeError(accumulator)
        return f"{key}{window.start}-{window.end}:{','.join(accumulator)}"


def sink():
    return wallaroo.TCPSinkConfig("127.0.0.1", 1, encode)


def test_compiled_where_time_decides_nothing_no_line_serves_it():
    """`compiled_source.txt` has nothing for graphs, keys and windows, which would cost time."""
    addresses = ["--in", "127.0.0.1:0", "--out", "127.0.0.1:0"]
    application = load_application(HERE.parents[2] / "examples" / "word_count.py", addresses)
    assert compiled_source(application) == (HERE / "compiled_source.txt").read_text("utf-8")


def counted(windows, *, event_time=None, aggregation=None):
    config = wallaroo.TCPSourceConfig("127.0.0.1", 0, text, event_time=event_time)
    return wallaroo.build_application(
        "counted",
        wallaroo.source("p", config)
        .key_by(letter)
        .to(windows.over(aggregation or Texts("texts")))
        .to_sink(sink()),
    )


class Handles(Texts):
    """Accumulators that cannot be copied."""

    def update(self, text, accumulator):
        accumulator.append(lambda: text)

    def output(self, key, accumulator, window):
        return f"{window.start}:{len(accumulator)}"


def test_unportable_an_accumulator_that_several_windows_need_and_that_cannot_be_copied():
    application = counted(
        wallaroo.range_windows(4).with_slide(2), event_time=event_time, aggregation=Handles("h")
    )
    machine = Compiled(application)
    machine.feed("p", [b"a0", b"a9"])
    (outputs,) = machine.outputs.values()
    assert outputs == [b"0:1;"]  # the last window of the pane needs no copy
    (letter_,) = machine.dead_letters
    assert (letter_.lineage, letter_.step, letter_.key) == ((1, -1, 0), "h", "a")
    assert (letter_.reason.value, letter_.payload) == ("unportable", None)


def test_window_9_what_update_leaves_when_it_raises_is_said_to_be_half_changed():
    machine = Compiled(counted(wallaroo.range_windows(4), event_time=event_time))
    machine.feed("p", [b"a0", b"u0"])
    (letter_,) = machine.dead_letters
    assert letter_.error == "u0 [trusting: the window of 'u' may be half changed]"
    assert [one.key for one in machine.windows()] == ["a"]


def test_what_the_engine_itself_raises_is_no_dead_letter(monkeypatch):
    def fails(*_):
        raise ArithmeticError("of the engine")

    machine = Compiled(counted(wallaroo.range_windows(4), event_time=event_time))
    monkeypatch.setattr(type(machine._times), "turn", fails)
    with pytest.raises(ArithmeticError, match="of the engine"):
        machine.feed("p", [b"a0", b"a9"])


class WithoutNine(Texts):
    """Texts that cannot be added to others if the first of them is of time 9."""

    def combine(self, earlier, later):
        if later[0] == "a9":
            raise ValueError(later)
        super().combine(earlier, later)


def test_window_9_sessions_stay_as_they_are_when_the_second_of_two_combines_raises():
    """A message joins two sessions, and is added to the earlier one before that fails."""
    windows = wallaroo.session_windows(5).with_delay(10)
    machine = Compiled(counted(windows, event_time=event_time, aggregation=WithoutNine("w")))
    machine.feed("p", [b"a3", b"a9", b"a5"])
    assert [(one.start, one.value) for one in machine.windows()] == [(3, ["a3"]), (9, ["a9"])]


def test_window_10_what_has_fired_leaves_nothing():
    machine = Compiled(counted(wallaroo.range_windows(4).with_slide(2), event_time=event_time))
    for start in range(0, 4000, 4):
        machine.feed("p", [b"%c%d" % (97 + start % 7, start)])
    (step,) = machine._windows.values()
    assert isinstance(step, RangePanes)
    assert sum([len(one) for one in (step.panes, step._later, step._numbers)]) < 9


class Generator:
    def initial_value(self):
        return "a"

    def apply(self, last):
        return None


def test_graph_4_a_value_of_the_log_stays_as_it_is():
    @wallaroo.computation(name="alter")
    def alter(items):
        items.append("b")
        return "".join(items)

    config = wallaroo.GenSourceConfig(Generator)
    application = wallaroo.build_application(
        "altered", wallaroo.source("g", config).to(alter).to_sink(sink())
    )
    record = Value("g", ["a"])
    machine = Compiled(application)
    machine.take(record)
    machine.take(record)
    assert machine.outputs == {("g", 0): [b"ab;", b"ab;"]}


def test_route_6_behind_windows_with_a_key_a_state_has_one_entity():
    @wallaroo.state_computation(name="count")
    def count(text, seen):
        seen.append(text)
        return str(len(seen)), True

    builder = wallaroo.ApplicationBuilder("app")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
    builder.to_window(wallaroo.count_windows(1).over(Texts()), letter)
    application = builder.to_stateful(count, list, "seen").to_sink(sink()).build()
    for isolation in ("isolated", "trusting"):
        trace = ENGINE.run(Case(application, [("p", b"a"), ("p", b"c")], isolation=isolation))
        assert [one.key for one in trace.entities] == [()]
        assert trace.outputs["p", 0] == (b"1;", b"2;")


def test_dead_4_timeouts_after_the_one_that_stopped_the_run_have_not_fired():
    windows = wallaroo.count_windows(9).with_timeout(5)
    log = [Frame("p", b"a0"), Frame("p", b"s0"), Frame("p", b"t0"), Tick(5)]
    for isolation in ("isolated", "trusting"):
        trace = ENGINE.run(Case(counted(windows), log, isolation=isolation, on_error="stop"))
        assert trace.ended is not None
        assert [one.key for one in trace.windows] == ["t"]
