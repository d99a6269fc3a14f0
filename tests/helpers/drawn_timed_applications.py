"""Applications with graphs, keys, time and windows, drawn by Hypothesis, and their records."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

import wallaroo
from wallaroo.records import End, Frame, Tick, Value

LETTERS = "abcdeghknoqrstuwxz"
"""A message is a letter and its event time, such as ``b12``; some letters make a step misbehave."""


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return None if payload[:1] == b"z" else payload.decode("ascii")


@wallaroo.encoder
def plain(text):
    if "e" in text:
        raise KeyError(text)
    return text + ";"


def event_time(text):
    """`x` raises; `q` and `w` give no event time; `t` gives an aware datetime."""
    time = int("".join([one for one in text if one.isdigit()]) or 0)
    if text[0] == "x":
        raise LookupError(text)
    odd = {"q": float(time), "w": -1, "t": datetime.fromtimestamp(0, UTC)}
    return odd.get(text[0], time)


@wallaroo.key_extractor
def letter(text):
    return {"r": 1 / (text[0] != "r" or len(text) % 2), "o": 1.5, "n": 7}.get(text[0], text[0])


@wallaroo.key_extractor
def pair_of_letters(text):
    return (text[:1], (text[1:2],))


@wallaroo.partition
def first(text):
    return None if text[0] == "o" else text[0]


class Texts:
    """Accumulators that are altered in place; `combine` alters the earlier one."""

    def __init__(self, name):
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
        if earlier[0][0] == later[0][0] == "k":
            raise ArithmeticError(f"{earlier} {later}")
        earlier.extend(later)

    def output(self, key, accumulator, window):
        if accumulator[-1][0] == "s":
            raise RuntimeError(accumulator)
        if accumulator[-1][0] == "d":
            return None
        return f"{accumulator[0][0]}{window.start}-{window.end}:{','.join(accumulator)}:{key}"


class Total(Texts):
    """Accumulators that are replaced."""

    def initial_accumulator(self):
        return 0

    def update(self, text, accumulator):
        if text[0] == "h":
            raise ValueError(text)
        return accumulator + len(text)

    def combine(self, earlier, later):
        return earlier * 3 + later

    def output(self, key, accumulator):
        return f"{'aegku'[accumulator % 5]}{accumulator}"


class Seen:
    def __init__(self):
        self.visits = 0


def windows(draw):
    late = draw(st.sampled_from(["dead-letter", "drop", "fire-per-message", "place"]))
    delay = draw(st.sampled_from([0, 0, 3, 12]))
    kind = draw(st.sampled_from(["range", "range", "slide", "session", "count"]))
    if kind == "count":
        made = wallaroo.count_windows(draw(st.integers(1, 4)))
        timeout = draw(st.sampled_from([None, 5, 11]))
        return made if timeout is None else made.with_timeout(timeout)
    if kind == "session":
        late = "drop" if late == "place" else late
        sessions = wallaroo.session_windows(draw(st.integers(1, 6)))
    else:
        ranges = wallaroo.range_windows(draw(st.sampled_from([4, 10])))
        ranges = ranges.with_slide(draw(st.integers(1, 4))) if kind == "slide" else ranges
        policy = "place-in-oldest-window" if late == "place" else late
        return ranges.with_delay(delay).with_late_data_policy(policy)
    return sessions.with_delay(delay).with_late_data_policy(late)


def step(draw, pipeline, number):
    """Return the pipeline with one more step, whose name has this number."""
    kind = draw(st.sampled_from(["window", "window", "key", "tuple", "collect", "one", "multi",
                                 "state", "state multi"]))  # fmt: skip
    if kind == "window":
        aggregation = draw(st.sampled_from([Texts, Total]))
        return pipeline.to(windows(draw).over(aggregation(f"window {number}")))
    if kind == "key":
        return pipeline.key_by(letter)
    if kind == "tuple":
        return pipeline.key_by(pair_of_letters)
    if kind == "collect":
        return pipeline.collect()
    expire_after = draw(st.sampled_from([None, 1, 4, 9]))

    if kind == "one":

        @wallaroo.computation(name=f"one {number}")
        def one(text):
            if text[0] == "g":
                raise ValueError(text)
            return None if text[0] == "n" else text + "1"

        return pipeline.to(one)
    if kind == "multi":

        @wallaroo.computation_multi(name=f"multi {number}")
        def multi(text):
            return [text, None, "a" + text[1:]] if text[0] != "c" else text

        return pipeline.to(multi)
    if kind == "state":

        @wallaroo.state_computation(name=f"state {number}", state=Seen, expire_after=expire_after)
        def state(text, seen):
            if text[0] == "b" and seen.visits:
                raise ValueError(text)
            seen.visits += 1
            return f"{text}{seen.visits}"

        return pipeline.to(state)

    @wallaroo.state_computation_multi(
        name=f"state {number}", state=Seen, state_name="shared", expire_after=4
    )
    def state_multi(text, seen):
        seen.visits += 1
        return [text] * (seen.visits % 3)

    return pipeline.to(state_multi)


def sink():
    return wallaroo.TCPSinkConfig("127.0.0.1", 1, plain)


class Generator:
    def initial_value(self):
        return "a"

    def apply(self, last):
        return None


def source(draw, number):
    timed = draw(st.sampled_from([None, event_time, event_time]))
    idle = draw(st.sampled_from([None, None, 3, 8]))
    config = {} if timed is None else {"event_time": timed, "idle_after": idle}
    if draw(st.booleans()) and number:
        return wallaroo.source(f"g{number}", wallaroo.GenSourceConfig(Generator(), **config))
    return wallaroo.source(f"p{number}", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode, **config))


@st.composite
def applications(draw):
    """A graph: pipelines that go on, branch and merge, each ended in a sink or two, or in none."""
    open_ones = [(source(draw, number), False) for number in range(draw(st.integers(1, 3)))]
    ended = []
    for number in range(draw(st.integers(1, 7))):
        index = draw(st.integers(0, len(open_ones) - 1))
        pipeline, keyed = open_ones[index]
        do = draw(st.sampled_from(["step", "step", "step", "branch", "merge"]))
        if do == "merge":
            other, _ = open_ones[draw(st.integers(0, len(open_ones) - 1))]
            open_ones[index] = pipeline.collect().merge(other.collect()), True
            continue
        made = step(draw, pipeline, number)
        if do == "branch":
            open_ones.append((made, keyed))
        else:
            open_ones[index] = made, keyed
    for pipeline, _ in open_ones:
        end = draw(st.sampled_from(["one", "one", "two", "done"]))
        ended.append(
            pipeline.done()
            if end == "done"
            else pipeline.to_sinks([sink() for _ in range(1 + (end == "two"))])
        )
    return wallaroo.build_application("drawn", *ended)


@st.composite
def built_applications(draw):
    """The builder's form, with windows and a key of their own."""
    builder = wallaroo.ApplicationBuilder("drawn")
    timed = draw(st.sampled_from([None, event_time]))
    builder.new_pipeline("p0", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode, event_time=timed))
    for number in range(draw(st.integers(1, 3))):
        route = draw(st.sampled_from([None, first, pair_of_letters]))
        builder.to_window(windows(draw).over(Texts(f"window {number}")), route)
        if draw(st.booleans()):

            @wallaroo.state_computation(name=f"count {number}")
            def count(text, seen):
                seen.visits += 1
                return f"{text}{seen.visits}", True

            builder.to_stateful(count, Seen, f"seen {number}")
    return builder.to_sink(sink()).build()


@st.composite
def logs(draw, application):
    records, now = [], 0
    names = sorted(application.sources)
    ended = set()
    letters = st.sampled_from(LETTERS)
    for _ in range(draw(st.integers(0, 25))):
        now += draw(st.sampled_from([0, 0, 0, 1, 2, 9]))
        name = draw(st.sampled_from(names))
        kind = draw(st.sampled_from(["message"] * 7 + ["tick", "end"]))
        if kind == "tick" or name in ended:
            records.append(Tick(now))
        elif kind == "end":
            ended.add(name)
            failed = name[0] == "g" and draw(st.booleans())
            records.append(End(name, now, "ValueError" if failed else None))
        else:
            text = f"{draw(letters)}{draw(st.integers(0, 40))}"
            record = Value(name, text, now) if name[0] == "g" else Frame(name, text.encode(), now)
            records.append(record)
    if draw(st.booleans()):
        records += [End(name, now) for name in names if name not in ended]
    return records


@st.composite
def cases(draw):
    application = draw(st.one_of(applications(), applications(), built_applications()))
    return application, draw(logs(application)), draw(st.sampled_from(["skip", "skip", "stop"]))
