"""Windows in process, compiled, against a loop written by hand with a dictionary of windows.

``python benchmarks/windows.py [--rounds N] [--messages N] [--keys N]``: counts per key over
windows of event time, every window fired and encoded. The loop calls the same user functions.
Goals: tumbling windows at most 1.3 times the loop; sliding ones with ten windows for each message
at most 2 times tumbling ones; with a million open windows a tick at which nothing is due under
50 µs, and a thousand due at most 3 times what they cost when no others are open.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable
from functools import partial

from facts import Figures, add_json_option, machine_facts, ratios, side_by_side
from spark_windowing import DELAY, RANGE, Message, decode, key_of, time_of
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.isolated.interpreter import Interpreter

import wallaroo
from wallaroo.keys import encode_key
from wallaroo.records import End, Tick
from wallaroo.topology import Application
from wallaroo.windows import RangeWindows

FIGURES = Figures(__file__)
DUE = 1_000
DUE_AT = RANGE + wallaroo.hours(1)
FEED = 100  # frames, as reads from a socket would give them

Run = Callable[[], list[bytes]]


class Count:
    """Counts."""

    def initial_accumulator(self) -> int:
        return 0

    def update(self, message: Message, count: int) -> int:
        return count + 1

    def combine(self, earlier: int, later: int) -> int:
        return earlier + later

    def output(self, key: str, count: int) -> tuple[str, int]:
        return key, count


@wallaroo.encoder
def encode(counted: tuple[str, int]) -> bytes:
    """A line."""
    return b"%s=%d" % (counted[0].encode(), counted[1])


def application(windows: RangeWindows) -> Application:
    """Return the application with these windows."""
    config = wallaroo.TCPSourceConfig("127.0.0.1", 0, decode, event_time=time_of)
    return wallaroo.build_application(
        "counts",
        wallaroo.source("events", config)
        .key_by(key_of)
        .to(windows.over(Count))
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 1, encode)),
    )


def events(messages: int, keys: int, per_window: int, disorder: int) -> list[bytes]:
    """Return payloads in time order, or up to `disorder` nanoseconds out of it.

    Args:
        messages: how many.
        keys: number of different keys.
        per_window: messages of one key in a window, on average.
        disorder: nanoseconds.
    """
    chance = random.Random(1)
    step = RANGE // (keys * per_window)
    times = [index * step + disorder for index in range(messages)]
    if disorder:
        times = [when - chance.randrange(disorder) for when in times]
    return [b"key-%d %d" % (chance.randrange(keys), when) for when in times]


def by_hand(payloads: list[bytes]) -> list[bytes]:
    """Tumbling windows as one would write them without an engine."""
    decoded, when, find_key = decode.decode, time_of, key_of.partition
    count = Count()
    windows: dict[int, dict[str, int]] = {}
    outputs: list[bytes] = []
    watermark = -1
    due = 1 << 64

    def fire() -> int:
        for start in sorted(windows):
            if start + RANGE + DELAY > watermark:
                return start + RANGE + DELAY
            window = windows.pop(start)
            for key in sorted(window, key=encode_key):
                outputs.append(encode.encode(count.output(key, window[key])))
        return 1 << 64

    for payload in payloads:
        message = decoded(payload)
        moment = when(message)
        if moment > watermark:
            watermark = moment
            if moment >= due:
                due = fire()
        key = find_key(message)
        start = moment - moment % RANGE
        if start in windows:
            window = windows[start]
        else:
            if start + RANGE + DELAY <= watermark:
                continue  # late
            window = windows[start] = {}
            due = min(due, start + RANGE + DELAY)
        if key in window:
            window[key] = count.update(message, window[key])
        else:
            window[key] = count.update(message, count.initial_accumulator())
    watermark = 1 << 64
    fire()
    return outputs


def by_machine(machine: Compiled | Interpreter, payloads: list[bytes]) -> Run:
    """Return a run that feeds a machine as the server does, a read at a time."""
    feeds = [payloads[start : start + FEED] for start in range(0, len(payloads), FEED)]

    def run() -> list[bytes]:
        for feed in feeds:
            machine.feed("events", feed)
        machine.take(End("events"))
        (outputs,) = machine.outputs.values()
        return outputs

    return run


def compare(options: argparse.Namespace, per_window: int, disorder: int) -> None:
    """Print what tumbling and sliding windows cost, beside the loop."""
    payloads = events(options.messages, options.keys, per_window, disorder)
    tumbling = application(wallaroo.range_windows(RANGE).with_delay(DELAY))
    sliding = application(wallaroo.range_windows(RANGE).with_slide(RANGE // 10).with_delay(DELAY))
    expected = by_hand(payloads)
    for make in (Compiled, Interpreter):
        assert by_machine(make(tumbling), payloads)() == expected, f"{make} disagrees"
    contenders: dict[str, Callable[[], Callable[[], object]]] = {
        "by-hand": lambda: partial(by_hand, payloads),
        "tumbling": lambda: by_machine(Compiled(tumbling), payloads),
        "sliding": lambda: by_machine(Compiled(sliding), payloads),
        "interpreter": lambda: by_machine(Interpreter(tumbling), payloads),
    }
    seconds = side_by_side(contenders, options.rounds, time.process_time)
    order = "out of order" if disorder else "in order"
    print(f"\n{per_window} messages in a window, {order} (median of {options.rounds} rounds)")
    for baseline, names in (("by-hand", list(contenders)), ("tumbling", ["sliding"])):
        for name in names:
            each = statistics.median(seconds[name]) / len(payloads) * 1e9
            ratio = ratios(seconds, baseline)[name]
            print(f"  {name:<12} {each:8.0f} ns/message   {ratio:6.2f} x {baseline}")
            figure = f"{per_window}/{order.replace(' ', '-')}/{name}-by-{baseline}"
            FIGURES.add(figure, each, "ns/message", ratio=ratio, baseline=baseline)


def opened(windows: int) -> Compiled:
    """Return a machine with so many open windows, of which the first `DUE` end before the others.

    The delay is an hour, so that none fires before `DUE_AT`.
    """
    machine = Compiled(application(wallaroo.range_windows(RANGE).with_delay(wallaroo.hours(1))))
    names = [b"key-%d %d" % (index, 0 if index < DUE else RANGE) for index in range(windows)]
    machine.feed("events", names)
    return machine


def many_windows(options: argparse.Namespace) -> None:
    """Print what a tick costs beside many open windows, and what a thousand due ones cost."""
    ticks: list[float] = []
    firing: dict[int, list[float]] = {DUE: [], options.windows: []}
    for _ in range(options.rounds):
        for windows, seconds in firing.items():
            machine = opened(windows)
            gc.collect()
            if windows > DUE:
                start = time.process_time()
                for _ in range(1_000):
                    machine.take(Tick(0))
                ticks.append((time.process_time() - start) / 1_000)
            start = time.process_time()
            machine.feed("events", [b"key-0 %d" % DUE_AT])
            seconds.append(time.process_time() - start)
            ((_, outputs),) = machine.outputs.items()
            assert len(outputs) == DUE
            del machine
    tick = statistics.median(ticks) * 1e6
    ratio = statistics.median(firing[options.windows]) / statistics.median(firing[DUE])
    each = statistics.median(firing[DUE]) / DUE * 1e9
    print(f"\n{options.windows:,} open windows (median of {options.rounds} rounds)")
    print(f"  a tick at which nothing is due {tick:8.1f} µs")
    print(f"  {DUE:,} due {ratio:6.2f} x the same without others ({each:,.0f} ns/window)")
    FIGURES.add("many/tick", tick, "µs")
    FIGURES.add("many/due", each * ratio, "ns/window", ratio=ratio, baseline="no others")


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--windows", type=int, default=1_000_000, help="open at the same time")
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    for per_window, disorder in ((100, 0), (100, DELAY), (1_000, 0)):
        compare(options, per_window, disorder)
    many_windows(options)
    FIGURES.write(options.json)


if __name__ == "__main__":
    main()
