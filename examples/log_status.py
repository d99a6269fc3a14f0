"""Log status: a web server's log comes in, and when a day ends, its counts of status codes go out.

This is event-triggered windowing: the input itself says where a window ends, by a frame that holds
``END_OF_DAY``. `access_log.py` invents a log, and puts such a line after each day of any log.

In a shell pipe, without a network::

    python examples/access_log.py generate > /tmp/access.log
    python examples/access_log.py mark < /tmp/access.log > /tmp/marked.log
    wallaroo run examples/log_status.py --stdin --stdout < /tmp/marked.log

Over TCP, each command in a terminal of its own::

    wallaroo receive --listen 127.0.0.1:7002
    wallaroo run examples/log_status.py --in 127.0.0.1:7010 --out 127.0.0.1:7002
    wallaroo send /tmp/marked.log --to 127.0.0.1:7010

An output is a day's lines ``YYYY-MM-DD CODE COUNT``, sorted by code; lines that are no ``GET``
request over HTTP/1.x are counted without a code, last, as ``null``. With ``--json`` an output is
the counts alone, a JSON object in a frame with a 4-byte header.

A day that has not ended has no output: a log's last line must be ``END_OF_DAY`` too. The boundary
decides which lines belong together; the day they are reported under is that of the first of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

import wallaroo
from wallaroo.frames import frame

END_OF_DAY = "END_OF_DAY"

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

# Both stop at the first quote, where the request begins: so nothing that a client sends can be
# taken for a date or a request. Inside the request a quote is escaped by a backslash.
DATE = re.compile(rf'[^"]*?\[(\d\d)/({"|".join(MONTHS)})/(\d{{4}}):', re.ASCII)
GET = re.compile(r'[^"]*"GET (?:[^"\\]|\\.)* HTTP/1\.\d" (\d{3})(?!\S)', re.ASCII)


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application: lines to codes, codes to one entity's counts, counts to text."""
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    encoder = encode_json if "--json" in args else encode_lines

    return (
        wallaroo.ApplicationBuilder("Log Status")
        .new_pipeline("Count Status", wallaroo.TCPSourceConfig(in_host, in_port, decode_line))
        .to_parallel(read_line)
        .to_stateful(count_status, Day, "status counts")
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encoder))
        .build()
    )


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_line(payload: bytes) -> str:
    """Turn a line into text, as Latin-1: clients send any bytes, and no line may be lost for it."""
    return payload.decode("latin-1")


class Line(NamedTuple):
    """The parts of a line that count: its date, ``YYYY-MM-DD``, and its status code, if present."""

    date: str | None
    code: str | None


class Report(NamedTuple):
    """A day's counts by status code, sorted; `None`, for lines without one, comes last."""

    date: str
    counts: dict[str | None, int]


class Day:
    """The state: what has been seen since the last boundary."""

    def __init__(self) -> None:
        self.date: str | None = None
        self.counts: dict[str | None, int] = {}


@wallaroo.computation(name="read line")
def read_line(text: str) -> Line | str:
    """Find a line's date and status code; the boundary goes on as it is."""
    if text == END_OF_DAY:
        return END_OF_DAY
    date = DATE.match(text)
    status = GET.match(text)
    return Line(
        f"{date[3]}-{MONTHS.index(date[2]) + 1:02}-{date[1]}" if date else None,
        status[1] if status else None,
    )


@wallaroo.state_computation(name="count status")
def count_status(message: Line | str, day: Day) -> tuple[Report | None, bool]:
    """Count a line; on the boundary return the day's report, if it had lines, and start over."""
    if isinstance(message, Line):
        day.date = day.date or message.date
        day.counts[message.code] = day.counts.get(message.code, 0) + 1
        return None, True
    if not day.counts:
        return None, False
    report = Report(day.date or "????-??-??", in_order(day.counts))
    day.date, day.counts = None, {}
    return report, True


def in_order(counts: dict[str | None, int]) -> dict[str | None, int]:
    """Return `counts` sorted by code, `None` last."""
    return dict(sorted(counts.items(), key=lambda item: (item[0] is None, item[0])))


@wallaroo.encoder
def encode_lines(report: Report) -> str:
    """Write a report as lines for people."""
    return "".join(
        [f"{report.date} {code or 'null'} {count}\n" for code, count in report.counts.items()]
    )


@wallaroo.encoder
def encode_json(report: Report) -> bytes:
    """Write a report's counts as framed JSON, in which `None` is the key ``"null"``."""
    return frame(json.dumps(report.counts).encode())
