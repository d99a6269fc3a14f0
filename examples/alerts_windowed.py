"""Alerts: who has spent more than 1,500 within a minute, looked at every ten seconds.

The source is a generator, so there is nothing to send: transactions of four users are made up, one
every half second or so, and a little out of order. Sliding windows sum them for each user, by the
time at which they were made. The run ends by itself after the last transaction.

In a shell, without a network::

    wallaroo run examples/alerts_windowed.py --stdout

Over TCP, each command in a terminal of its own::

    wallaroo receive --listen 127.0.0.1:7002
    wallaroo run examples/alerts_windowed.py --out 127.0.0.1:7002

``--transactions N`` says how many there are (1,000). An output is a line such as
``09:00:10 to 09:01:10: ann spent 1,612``.
"""

from __future__ import annotations

import argparse
import datetime
import random
from collections.abc import Sequence
from typing import NamedTuple

import wallaroo
from wallaroo.kinds import Bounds

RANGE = wallaroo.minutes(1)
SLIDE = wallaroo.seconds(10)
LIMIT = 1_500

BEGIN = 1_772_442_000 * 10**9  # 2026-03-02 09:00 UTC, in nanoseconds
PACE = wallaroo.milliseconds(500)
OUT_OF_ORDER = wallaroo.seconds(2)  # the most

USERS = ("ann", "bob", "cid", "dee")


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application: transactions to sums by user and window, high sums to lines."""
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    transactions = wallaroo.source(
        "Transactions",
        wallaroo.GenSourceConfig(
            Transactions(parse_options(args).transactions), event_time=time_of
        ),
    )
    windows = wallaroo.range_windows(RANGE).with_slide(SLIDE).with_delay(OUT_OF_ORDER)
    alerts = (
        transactions.key_by(user_of)
        .to(windows.over(Spending))
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_alert))
    )
    return wallaroo.build_application("Alerts", alerts)


class Transaction(NamedTuple):
    """A user has spent an amount; the time is in nanoseconds since 1970."""

    number: int
    time: int
    user: str
    amount: int


class Alert(NamedTuple):
    """A user has spent too much from `start` to `end`, in nanoseconds since 1970."""

    user: str
    amount: int
    start: int
    end: int


class Transactions:
    """Makes up transactions, the same in every run.

    Each depends on its number only, so that the source goes on behind any of them.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        self._count = count

    def initial_value(self) -> Transaction | None:
        """Return the first transaction."""
        return self._make(0)

    def apply(self, last: Transaction) -> Transaction | None:
        """Return the transaction after `last`; `None` ends the source."""
        return self._make(last.number + 1)

    def _make(self, number: int) -> Transaction | None:
        if number >= self._count:
            return None
        random_ = random.Random(number)
        time = BEGIN + number * PACE + random_.randrange(OUT_OF_ORDER)
        return Transaction(number, time, random_.choice(USERS), random_.randrange(1, 100))


def time_of(transaction: Transaction) -> int:
    """Return when a transaction was made."""
    return transaction.time


@wallaroo.key_extractor
def user_of(transaction: Transaction) -> str:
    """Return who has spent the amount."""
    return transaction.user


class Spending:
    """Sums a user's amounts, and gives an alert where they are too much."""

    def initial_accumulator(self) -> int:
        """Return the sum of no transaction."""
        return 0

    def update(self, transaction: Transaction, total: int) -> int:
        """Add a transaction."""
        return total + transaction.amount

    def combine(self, earlier: int, later: int) -> int:
        """Return the sum of two parts of a window."""
        return earlier + later

    def output(self, user: str, total: int, window: Bounds) -> Alert | None:
        """Return an alert, or `None`, which sends nothing."""
        return Alert(user, total, window.start, window.end) if total > LIMIT else None


@wallaroo.encoder
def encode_alert(alert: Alert) -> str:
    """Write an alert as a line."""
    start, end = [
        datetime.datetime.fromtimestamp(time // 10**9, datetime.UTC)
        for time in (alert.start, alert.end)
    ]
    return f"{start:%H:%M:%S} to {end:%H:%M:%S}: {alert.user} spent {alert.amount:,}\n"


def parse_options(args: Sequence[str]) -> argparse.Namespace:
    """Read the application's own arguments; the others are ignored."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--transactions", type=int, default=1_000, metavar="N")
    return parser.parse_known_args(args)[0]
