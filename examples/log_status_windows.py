"""Log status by event time: a web server's log comes in, and each day's counts go out.

This is what `log_status.py` does, without frames that say where a day ends. The time that stands in
a line is its event time, and the day is a window. Lines may come out of order: a web server writes
a line when the request has been answered, and in it when it came. A day waits a minute for them.

In a shell pipe, without a network::

    python examples/access_log.py generate > /tmp/access.log
    wallaroo run examples/log_status_windows.py --stdin --stdout < /tmp/access.log

Over TCP, each command in a terminal of its own::

    wallaroo receive --listen 127.0.0.1:7002
    wallaroo run examples/log_status_windows.py --in 127.0.0.1:7010 --out 127.0.0.1:7002
    wallaroo send /tmp/access.log --to 127.0.0.1:7010

An output is a day's lines ``YYYY-MM-DD CODE COUNT``, sorted by code; lines that are no ``GET``
request over HTTP/1.x are counted without a code, last, as ``null``. A line without a time is a dead
letter; so is a line that comes when its day has gone out (reason ``late``).

A day goes out when a later line shows that it is over, or the end of the input. When no line comes
at all for ``--idle-after`` seconds (60), the clock goes on in the log's place, so that a day ends
on a quiet night too. ``--delay`` sets how long a day waits for late lines, in seconds (60).
"""

from __future__ import annotations

import argparse
import datetime
import re
from collections.abc import Sequence
from typing import NamedTuple

import wallaroo
from wallaroo.kinds import Bounds

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

# Both stop at the first quote, where the request begins: so nothing that a client sends can be
# taken for a time or a request. Inside the request a quote is escaped by a backslash.
TIME = re.compile(rf'[^"]*?\[(\d\d)/({"|".join(MONTHS)})/(\d{{4}}):(\d\d):(\d\d):(\d\d)', re.ASCII)
GET = re.compile(r'[^"]*"GET (?:[^"\\]|\\.)* HTTP/1\.\d" (\d{3})(?!\S)', re.ASCII)


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application: lines to a day's counts, counts to text."""
    options = parse_options(args)
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    lines = wallaroo.source(
        "Count Status",
        wallaroo.TCPSourceConfig(
            in_host,
            in_port,
            decode_line,
            event_time=time_of,
            idle_after=wallaroo.seconds(options.idle_after),
        ),
    )
    days = wallaroo.range_windows(wallaroo.days(1)).with_delay(wallaroo.seconds(options.delay))
    reports = lines.to(days.over(StatusCounts)).to_sink(
        wallaroo.TCPSinkConfig(out_host, out_port, encode_lines)
    )
    return wallaroo.build_application("Log Status", reports)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_line(payload: bytes) -> str:
    """Turn a line into text, as Latin-1: clients send any bytes, and no line may be lost for it."""
    return payload.decode("latin-1")


def time_of(line: str) -> datetime.datetime:
    """Return the time in a line, as the server's clock shows it: its days are the log's days."""
    found = TIME.match(line)
    if found is None:
        raise ValueError("the line has no time")
    day, month, year, hour, minute, second = found.groups()
    return datetime.datetime(
        int(year),
        MONTHS.index(month) + 1,
        int(day),
        int(hour),
        int(minute),
        int(second),
        tzinfo=datetime.UTC,  # windows of a day begin at midnight UTC
    )


def code_of(line: str) -> str | None:
    """Return the status code of a line, `None` if it is no ``GET`` request."""
    status = GET.match(line)
    return status[1] if status else None


class Report(NamedTuple):
    """A day's counts by status code, sorted; `None`, for lines without one, comes last."""

    date: str
    counts: dict[str | None, int]


class StatusCounts:
    """Counts the lines of a day by status code."""

    def name(self) -> str:
        """Return the step's name."""
        return "count status"

    def initial_accumulator(self) -> dict[str | None, int]:
        """Return the counts of no line."""
        return {}

    def update(self, line: str, counts: dict[str | None, int]) -> None:
        """Count a line."""
        code = code_of(line)
        counts[code] = counts.get(code, 0) + 1

    def output(self, key: tuple[()], counts: dict[str | None, int], window: Bounds) -> Report:
        """Return the day's report."""
        day = datetime.datetime.fromtimestamp(window.start // 10**9, datetime.UTC)
        ordered = sorted(counts.items(), key=lambda item: (item[0] is None, item[0]))
        return Report(f"{day:%Y-%m-%d}", dict(ordered))


@wallaroo.encoder
def encode_lines(report: Report) -> str:
    """Write a report as lines for people."""
    return "".join(
        [f"{report.date} {code or 'null'} {count}\n" for code, count in report.counts.items()]
    )


def parse_options(args: Sequence[str]) -> argparse.Namespace:
    """Read the application's own arguments; the others are ignored."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--delay", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--idle-after", type=float, default=60.0, metavar="SECONDS")
    return parser.parse_known_args(args)[0]
