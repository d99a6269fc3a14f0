"""Sessions: a web server's log comes in, and for each visit goes out who came, when, how long.

A visit is a session window: the requests of one client, with less than 30 minutes from each to the
next. It goes out once the log has gone on for 30 minutes, and one more for lines out of order,
without a request of that client.

In a shell pipe, without a network::

    python examples/access_log.py generate > /tmp/access.log
    wallaroo run examples/sessions.py --stdin --stdout < /tmp/access.log

Over TCP, each command in a terminal of its own::

    wallaroo receive --listen 127.0.0.1:7002
    wallaroo run examples/sessions.py --in 127.0.0.1:7010 --out 127.0.0.1:7002
    wallaroo send /tmp/access.log --to 127.0.0.1:7010

An output is a line such as ``192.0.2.7 2026-03-01 08:30:05 to 2026-03-01 09:12:44, 14 requests``.
Visits that are still open when the input ends go out then; a stop of the application ends no visit.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import NamedTuple

import wallaroo
from wallaroo.kinds import Bounds

GAP = wallaroo.minutes(30)
DELAY = wallaroo.minutes(1)

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LINE = re.compile(
    rf'(\S+) [^"]*?\[(\d\d)/({"|".join(MONTHS)})/(\d{{4}}):(\d\d):(\d\d):(\d\d) ([+-]\d\d)(\d\d)\]',
    re.ASCII,
)


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application: lines to requests, a client's requests to visits."""
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    requests = wallaroo.source(
        "Requests",
        wallaroo.TCPSourceConfig(in_host, in_port, decode_line, event_time=time_of),
    )
    visits = (
        requests.key_by(client_of)
        .to(wallaroo.session_windows(GAP).with_delay(DELAY).over(Visits))
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_visit))
    )
    return wallaroo.build_application("Sessions", visits)


class Request(NamedTuple):
    """A client asked for something."""

    client: str
    time: datetime.datetime


class Visit(NamedTuple):
    """A client's requests without a long pause between them; times in nanoseconds since 1970."""

    client: str
    first: int
    last: int
    requests: int


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_line(payload: bytes) -> Request:
    """Read a line; one without client and time raises, and is a dead letter."""
    found = LINE.match(payload.decode("latin-1"))
    if found is None:
        raise ValueError("the line has no client or no time")
    client, day, month, year, *clock, zone_hours, zone_minutes = found.groups()
    zone = datetime.timedelta(hours=int(zone_hours), minutes=int(zone_hours[0] + zone_minutes))
    hour, minute, second = map(int, clock)
    time = datetime.datetime(
        int(year),
        MONTHS.index(month) + 1,
        int(day),
        hour,
        minute,
        second,
        tzinfo=datetime.timezone(zone),
    )
    return Request(client, time)


def time_of(request: Request) -> datetime.datetime:
    """Return when a request was made."""
    return request.time


@wallaroo.key_extractor
def client_of(request: Request) -> str:
    """Return who made a request."""
    return request.client


class Visits:
    """Counts the requests of a visit."""

    def initial_accumulator(self) -> int:
        """Return the count of no request."""
        return 0

    def update(self, request: Request, count: int) -> int:
        """Count a request."""
        return count + 1

    def combine(self, earlier: int, later: int) -> int:
        """Return the count of two visits between which a request has come: they are one."""
        return earlier + later

    def output(self, client: str, count: int, window: Bounds) -> Visit:
        """Return the visit; its window ends one gap after the last request."""
        return Visit(client, window.start, window.end - GAP, count)


@wallaroo.encoder
def encode_visit(visit: Visit) -> str:
    """Write a visit as a line."""
    first, last = [
        datetime.datetime.fromtimestamp(time // 10**9, datetime.UTC)
        for time in (visit.first, visit.last)
    ]
    plural = "s" if visit.requests > 1 else ""
    return (
        f"{visit.client} {first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S}, "
        f"{visit.requests} request{plural}\n"
    )
