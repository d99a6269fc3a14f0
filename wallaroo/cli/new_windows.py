"""What ``wallaroo new --windows`` writes: an application with event times and windows."""

from __future__ import annotations

from string import Template

# The words of the example fit an application of any name.
APPLICATION = Template('''\
r"""An example to start from: it counts each line by the minute. Put your own functions here.

A line begins with its time. In a shell pipe:

    printf '09:00:05 ann\\n09:00:40 ann\\n09:01:10 bob\\n' | wallaroo run $name.py --stdin --stdout

Over TCP, in three terminals:

    wallaroo receive --listen 127.0.0.1:7002
    wallaroo run $name.py --in 127.0.0.1:7010 --out 127.0.0.1:7002
    printf '09:00:05 ann\\n09:01:10 bob\\n' | wallaroo send - --to 127.0.0.1:7010

Its test: pytest test_$name.py
"""

import datetime

import wallaroo


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    lines = wallaroo.source(
        "lines",
        wallaroo.TCPSourceConfig(
            in_host,
            in_port,
            decode,
            # Time is what the lines say it is. When none comes for 5 s, the clock goes on for them.
            event_time=time_of,
            idle_after=wallaroo.seconds(5),
        ),
    )
    # A minute waits 10 s for lines that come out of order; what comes later is a dead letter.
    minutes = wallaroo.range_windows(wallaroo.minutes(1)).with_delay(wallaroo.seconds(10))
    counts = (
        lines.key_by(by_word)
        .to(minutes.over(Count))
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    )
    return wallaroo.build_application("$name", counts)


# A message on the wire is a 4-byte length, big-endian, and that many bytes.
@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    time, word = payload.decode("utf-8").split()
    return datetime.time.fromisoformat(time), word


def time_of(line):
    # A time with its zone, or nanoseconds since 1970.
    time, _ = line
    return datetime.datetime.combine(datetime.date(2026, 3, 2), time, datetime.timezone.utc)


@wallaroo.key_extractor
def by_word(line):
    _, word = line
    return word


class Count:
    """How many lines with one key a minute has: the accumulator is a number."""

    def initial_accumulator(self):
        return 0

    def update(self, line, count):
        return count + 1

    def combine(self, earlier, later):
        # For windows that slide, and for sessions: they are put together from parts.
        return earlier + later

    def output(self, key, count, window):
        # None sends nothing.
        return window.start, key, count


@wallaroo.encoder
def encode(result):
    start, word, count = result
    minute = datetime.datetime.fromtimestamp(start // 10**9, datetime.timezone.utc)
    return f"{minute:%H:%M} {word} => {count}\\n"
''')

TEST = Template('''\
"""Tests of $name: lines in, time goes on, bytes out; no ports, no waiting."""

from pathlib import Path

import wallaroo
from wallaroo import testing
from wallaroo.loading import load_application

APPLICATION = Path(__file__).with_name("$name.py")


def session():
    return testing.Session(load_application(APPLICATION, placeholders=True))


def test_a_minute_goes_out_when_a_later_line_shows_that_it_is_over():
    lines = session()
    lines.send("lines", b"09:00:05 ann", b"09:00:40 ann", b"09:01:09 bob")
    assert lines.output == []
    lines.send("lines", b"09:01:10 bob")
    assert lines.output == [b"09:00 ann => 2\\n"]


def test_a_line_that_is_ten_seconds_late_counts_and_a_later_one_is_a_dead_letter():
    lines = session()
    lines.send("lines", b"09:01:09 bob", b"09:00:59 ann", b"09:01:10 bob", b"09:00:59 ann")
    assert lines.output == [b"09:00 ann => 1\\n"]
    assert [letter.reason for letter in lines.dead_letters] == ["late"]


def test_a_minute_goes_out_when_no_line_comes():
    lines = session()
    lines.send("lines", b"09:00:50 ann")
    lines.advance(wallaroo.seconds(19))
    assert lines.output == []
    lines.advance(wallaroo.seconds(1))
    assert lines.output == [b"09:00 ann => 1\\n"]


def test_at_the_end_all_windows_fire():
    lines = session()
    lines.send("lines", b"09:00:50 ann", b"09:00:55 bob")
    assert len(lines.open_windows) == 2
    lines.end()
    assert lines.output == [b"09:00 ann => 1\\n", b"09:00 bob => 1\\n"]


def test_what_is_no_line_is_a_dead_letter_and_moves_no_time():
    lines = session()
    lines.send("lines", b"", b"soon ann", b"09:00:50 ann")
    lines.end()
    assert lines.output == [b"09:00 ann => 1\\n"]
    assert [letter.reason for letter in lines.dead_letters] == ["decode", "decode"]


def test_every_rule_is_kept():
    lines = session()
    lines.send("lines", b"09:00:05 ann", b"09:02:00 ann")
    assert lines.result.findings == []
''')
