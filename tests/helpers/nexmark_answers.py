"""Nexmark's queries with events to ask about, and the answers that SQL gives."""

from __future__ import annotations

import json
from functools import cache
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from wallaroo import milliseconds
from wallaroo.loading import load_application, load_module
from wallaroo.topology import Application

NEXMARK = Path(__file__).parents[2] / "examples" / "nexmark"
GENERATOR, QUERIES, ORACLE = [
    load_module(NEXMARK / f"{name}.py").module for name in ("generator", "queries", "oracle")
]

SHUFFLED = GENERATOR.Events(rate=30, shuffled=50)  # up to 1.7 seconds out of order
OVER_DAYS = GENERATOR.Events(rate=0.01, shuffled=7)
OF_DAYS = {"q14", "q15", "q16", "q17"}  # they ask for the hour or the day


def application(query: str) -> Application:
    """Return the application that answers a query."""
    return load_application(NEXMARK / "queries.py", ["--query", query], placeholders=True)


def events(query: str, count: int) -> dict[str, list[tuple[int, bytes]]]:
    """Return the first events for a query, as payloads of a test.

    Each arrives when it happens, but none before another that has come earlier (q12).
    """
    some = lines(query, count)
    times = [fields["date_time"] for line in some for fields in json.loads(line).values()]
    arrivals = [milliseconds(time) for time in accumulate(times, max)]
    return {"events": list(zip(arrivals, some, strict=True))}


def answers(query: str, count: int) -> list[bytes]:
    """Return the outputs that SQL gives for the same events."""
    rows = ORACLE.rows(query, ORACLE.tables(lines(query, count)))
    return [f"{json.dumps(row)}\n".encode() for row in rows]


def lines(query: str, count: int) -> list[bytes]:
    """Return the first events for a query, as JSON."""
    return _lines(query in OF_DAYS, count)


@cache
def _lines(over_days: bool, count: int) -> list[bytes]:
    some = islice(OVER_DAYS if over_days else SHUFFLED, count)
    return [
        json.dumps({kind: _rounded(fields)}).encode()
        for event in some
        for kind, fields in event.items()
    ]


def _rounded(fields: dict[str, Any]) -> dict[str, Any]:
    """Round times to half seconds and prices to powers of ten, so that many are equal."""
    rounded: dict[str, Any] = {
        name: fields[name] // 500 * 500 for name in ("date_time", "expires") if name in fields
    }
    if "price" in fields:
        rounded["price"] = 10 ** (len(str(fields["price"])) - 1)
    return fields | rounded
