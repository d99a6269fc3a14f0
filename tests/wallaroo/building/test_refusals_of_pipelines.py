"""What pipelines, windows and aggregations refuse, and what the error says to write."""

from functools import partial

import pytest
from builder_parts import (
    NO_DURATIONS,
    Doubling,
    WantsArguments,
    begun,
    count,
    double,
    each,
    mistakes,
    own,
    plain,
    plain_with_state,
    refused,
    sink,
    source,
    with_attributes,
    words,
)
from small_steps import decode, encode, first
from small_windows import Gather

import wallaroo
from wallaroo import build_application as build
from wallaroo.windows import count_windows, range_windows, session_windows

TEN = range_windows(wallaroo.seconds(10))
NO_LENGTHS = (0, -1, 1.0, "1", None, True)


def names():
    return wallaroo.source("names", source())


def owning(**options):
    """A state computation that says its state."""
    options = {"name": "c", "state": list, **options}
    return wallaroo.state_computation(**options)(plain_with_state)


class Bare:
    """An aggregation without combine."""

    def initial_accumulator(self):
        return 0

    def update(self, message, accumulator):
        return accumulator

    def output(self, key, accumulator):
        return accumulator


BEHIND_THE_END = [
    lambda p: p.to(double),
    lambda p: p.to_parallel(double),
    lambda p: p.key_by(first),
    lambda p: p.collect(),
    lambda p: p.merge(words()),
    lambda p: words().merge(p),
    lambda p: p.to_sink(sink()),
    lambda p: p.to_sinks([sink()]),
    lambda p: p.done(),
]


def of_graphs():
    write = ".to_sink(wallaroo.TCPSinkConfig(HOST, PORT, ENCODER)) or .done()"
    where = "application 'app', pipeline 'words'"
    yield lambda: build("app", words().to(double)), where, write
    for end in (words().done(), words().to_sink(sink())):
        for call in BEHIND_THE_END:
            yield partial(call, end), "the pipeline has ended already", "before the end"
    yield lambda: build("app"), "wallaroo.build_application('app', PIPELINE, …)"
    yield lambda: build("app", double), "expected a pipeline"
    write = "wallaroo.TCPSourceConfig(HOST, PORT, DECODER)"
    yield from each([decode, sink()], partial(wallaroo.source, "p"), "expected a source", write)
    yield lambda: build("app", words().merge(words()).done()), "two sources have that name"
    both = [wallaroo.source(name, source(7010)) for name in "ab"]
    said = ("7010", "give each its own port")
    yield lambda: build("app", both[0].merge(both[1]).done()), *said
    yield from each([[], None, sink()], words().to_sinks, ".to_sinks([")
    yield lambda: words().to_sink(encode), ".to_sink(wallaroo.TCPSinkConfig("
    yield lambda: words().key_by(first).merge(names()), "'names'", ".collect() on both sides"
    yield lambda: words().merge(names().key_by(first)), "'words'", "key_by(KEY_EXTRACTOR)"
    yield lambda: words().merge(double), "merge(): expected a pipeline", "wallaroo.source(NAME"
    double_again = wallaroo.computation(name="double it")(plain)
    own_again = wallaroo.state_computation(name="own", state=list)(lambda message, state: message)
    renamed = wallaroo.computation(name="gather")(plain)
    for one, other, *said in (
        (double, double_again, "step 'double it'", "Write another name="),
        (own, own_again, "step 'own'", "state_name= where both share a state"),
        (TEN.over(Gather()), TEN.over(Gather()), "'gather'"),
        (TEN.over(Gather()), renamed, "'gather'"),
    ):
        ways = words().to(one).done(), names().to(other).done()
        said = ("pipeline 'words' has a step of that name", *said)
        yield partial(build, "app", *ways), *said


def of_keys_and_states():
    said = "pipeline 'words', key_by(double): double is not a partition function"
    yield lambda: words().key_by(double), said
    yield lambda: words().key_by(None), "key_by("
    said = "'count it' is a state computation that does not say its state"
    write = '@wallaroo.state_computation(name="count it", state=STATE)'
    yield lambda: words().to(count), said, write
    parallel = (own, TEN.over(Gather()))
    yield from each(parallel, words().to_parallel, "to_parallel(", "Write: .to(")
    for more in ({"state_name": "x"}, {"expire_after": 5}):
        call = partial(wallaroo.state_computation, name="c", **more)
        yield call, "has no state", "state=STATE"
    for state in (WantsArguments, 5):
        yield partial(build, "app", words().to(owning(state=state)).done()), "step 'c'"
    for time in NO_DURATIONS:
        made = words().to(owning(expire_after=time)).done()
        yield partial(build, "app", made), "expire_after"
        yield partial(begun().to_stateful, count, list, "s", expire_after=time), "expire_after"
    one, other = [
        owning(name=name, state_name="s", expire_after=after)
        for name, after in (("one", None), ("other", wallaroo.seconds(5)))
    ]
    said = "no expire_after there, expire_after 5 s here"
    yield lambda: build("app", words().to(one).to(other).done()), said


def of_windows():
    sessions, counts = session_windows(5), count_windows(5)
    for call, said in (
        (range_windows, "range_windows(…): the range"),
        (session_windows, "session_windows(…): the gap"),
        (count_windows, "an int of 1 or more"),
        (TEN.with_slide, "with_slide(…): the slide"),
        (counts.with_timeout, "with_timeout(…): the timeout"),
    ):
        yield from each(NO_LENGTHS, call, said)
    for windows in (TEN, sessions):
        yield from each(NO_LENGTHS[1:], windows.with_delay, "with_delay(…): the delay")
    yield lambda: range_windows(0), "wallaroo.seconds(COUNT)"
    yield lambda: TEN.with_slide(TEN.range + 1), "longer than the range", "up to the range"
    yield lambda: range_windows(10_001).with_slide(1), "10001 panes", "10000 is the most"
    hour, second = wallaroo.hours(1), wallaroo.seconds(1)
    yield lambda: range_windows(hour).with_slide(second + 1), "panes"
    for windows, method, value in (
        (TEN, "with_slide", wallaroo.seconds(5)),
        *[(one, "with_delay", 0) for one in (TEN, sessions)],
        *[(one, "with_late_data_policy", "drop") for one in (TEN, sessions)],
        (counts, "with_timeout", 5),
    ):
        once = getattr(windows, method)(value)
        yield partial(getattr(once, method), value), f"{method} is called twice"
    policies = ("late", "", None, 5, "DROP", b"drop")
    yield from each(policies, TEN.with_late_data_policy, "'dead-letter', 'drop'")
    oldest = "place-in-oldest-window"
    yield lambda: sessions.with_late_data_policy(oldest), "no grid", "'drop'"


def of_aggregations():
    over = TEN.over(Gather())
    for begin, call in ((words, "to"), (begun, "to_window")):
        said = ("is an aggregation, and has no window", "wallaroo.seconds(60)).over(")
        yield from each([Gather(), Gather], begin().to, *said)
        said = f"without an aggregation. Write: .{call}(WINDOWS.over(AGGREGATION))"
        yield from each([range_windows(7), session_windows(7)], begin().to, said)
    yield lambda: begun().to_window(TEN), "expected windows over an aggregation"
    yield lambda: begun().to(over), ".to_window(WINDOW, PARTITION_FUNCTION"
    yield from each([double, None], TEN.over, "not an aggregation")
    yield lambda: begun().to_window(over).to_window(over), "another STATE_NAME"
    yield lambda: begun().to_window(over, first, ""), "a non-empty str"
    for method in ("initial_accumulator", "update", "output"):
        missing = with_attributes(Bare, **{method: None})
        yield partial(TEN.over, missing()), "Odd is not an aggregation", method
    for method in ("update", "output"):
        odd = with_attributes(Bare, **{method: lambda self, one: one})
        yield partial(TEN.over, odd()), method
    for windows in (TEN.with_slide(wallaroo.seconds(5)), session_windows(5)):
        said = ("Bare has no combine", "Write: def combine(self, earlier, later): …")
        yield partial(windows.over, Bare), *said


@pytest.mark.parametrize(
    ("call", "said"),
    [
        *mistakes("graph", of_graphs),
        *mistakes("key, state-8", of_keys_and_states),
        *mistakes("window", of_windows, of_aggregations),
    ],
)
def test_a_mistake_is_refused_in_words(call, said):
    refused(call, *said)


def test_what_is_nearly_a_mistake_is_not_refused():
    assert words().collect().merge(names().key_by(first))
    assert TEN.with_delay(0) == TEN
    assert range_windows(10_000).with_slide(1).pane == 1
    for windows in (TEN, TEN.with_slide(TEN.range), count_windows(2)):
        assert windows.over(Bare)
    for method in ("initial_accumulator", "update", "combine", "output"):
        computation = with_attributes(Doubling, **{method: lambda self: 0})
        assert words().to(computation())
    begun().done().new_pipeline("q", source(0)).done().build()  # port 0 is no address yet
