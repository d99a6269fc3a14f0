"""Pipelines as small as tests of graphs, keys, time and windows want them.

A payload such as ``b"a1 5"`` is an event: its name, and its event time in seconds. Its key is the
first letter of the name.
"""

import wallaroo
from wallaroo import seconds


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_event(payload):
    name, time = payload.decode("utf-8").split()
    return name, float(time)


def when(event):
    return seconds(event[1])


@wallaroo.encoder
def encode_repr(message):
    return f"{message!r};"


@wallaroo.key_extractor
def initial(event):
    return event[0][0]


@wallaroo.computation(name="fail")
def fail(message):
    raise ValueError(message)


def config(event_time=when, decoder=decode_event, **options):
    return wallaroo.TCPSourceConfig("127.0.0.1", 0, decoder, event_time=event_time, **options)


def events(name="events", **options):
    """A source whose messages say when they happened."""
    return wallaroo.source(name, config(**options))


def arrivals(name="events"):
    """A source without event times."""
    return events(name, event_time=None)


def sink(encoder=encode_repr):
    return wallaroo.TCPSinkConfig("127.0.0.1", 7002, encoder)


def built(*pipelines):
    return wallaroo.build_application("app", *pipelines)


def windowed(windows, aggregation=None, source=None):
    """An application of one window step, by key, into one sink."""
    source = events() if source is None else source
    step = windows.over(Gather() if aggregation is None else aggregation)
    return built(source.key_by(initial).to(step).to_sink(sink()))


class Gather:
    """An aggregation: names in the order taken, ``+`` where accumulators were combined."""

    def __init__(self, name="gather"):
        self._name = name

    def name(self):
        return self._name

    def initial_accumulator(self):
        return ""

    def update(self, event, names):
        return names + event[0]

    def combine(self, earlier, later):
        return f"{earlier}+{later}"

    def output(self, key, names, window):
        return f"{key}:{names}@{window.start / 10**9:g}-{window.end / 10**9:g}"


class Total:
    """An aggregation: how many messages there were."""

    def initial_accumulator(self):
        return 0

    def update(self, message, total):
        return total + 1

    def combine(self, earlier, later):
        return earlier + later

    def output(self, key, total):
        return total


class Collect:
    """An aggregation: the messages in the order taken."""

    def initial_accumulator(self):
        return []

    def update(self, message, accumulator):
        accumulator.append(message)

    def combine(self, earlier, later):
        return earlier + later

    def output(self, key, accumulator):
        return accumulator


def said(result):
    """The outputs of a result's or session's only sink, without quotes."""
    return [output.decode()[1:-2] for output in result.output]
