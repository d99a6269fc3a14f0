"""Input for `log_status.py`: a web server's log made up from a seed, and the marks between days.

    python examples/access_log.py generate --lines 5000 --seed 7 > /tmp/access.log
    python examples/access_log.py mark < /tmp/access.log > /tmp/marked.log

``mark`` copies any log in the common or combined format, to the byte, and puts a line
``END_OF_DAY`` after each day's lines. ``wallaroo send`` sends each line as a frame.
"""

from __future__ import annotations

import argparse
import datetime
import random
import re
import sys
from collections.abc import Iterable, Iterator

END_OF_DAY = b"END_OF_DAY\n"

DATE = re.compile(rb'[^"]*?\[(\d\d/[A-Z][a-z][a-z]/\d{4}):')
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

# Requests and their answers, and how often they come. One path is not UTF-8, as real ones are not.
REQUESTS = {
    b'"GET / HTTP/1.1" 200 3638': 40,
    b'"GET /style.css HTTP/1.0" 304 -': 20,
    b'"GET /caf\xe9 HTTP/1.1" 404 208': 6,
    b'"GET /old?q=\\"quoted\\" HTTP/1.1" 301 5': 4,
    b'"GET /report HTTP/1.1" 500 0': 1,
    b'"HEAD / HTTP/1.1" 200 -': 3,
    b'"POST /login HTTP/1.1" 403 12': 2,
    b'"-" 408 -': 1,
}


def generate(lines: int, seed: int) -> Iterator[bytes]:
    """Yield the lines of a log of about a week, in time order; the same for the same seed."""
    random_ = random.Random(seed)
    time = datetime.datetime(2026, 3, 1, 8, 30, tzinfo=datetime.UTC)
    pace = 2 * 7 * 86_400 / max(lines, 1)  # seconds between lines: this at most, half on average
    for _ in range(lines):
        time += datetime.timedelta(seconds=random_.random() * pace)
        client = f"192.0.2.{random_.randrange(256)}"
        # Not by strftime, whose month names depend on the locale.
        stamp = f"{time:%d}/{MONTHS[time.month - 1]}/{time:%Y:%H:%M:%S} +0000"
        request = random_.choices(list(REQUESTS), list(REQUESTS.values()))[0]
        yield f"{client} - - [{stamp}] ".encode() + request + b' "-" "Mozilla/5.0"\n'


def mark(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield `lines` with `END_OF_DAY` where the date changes and at the end.

    A line without a date belongs to the day it stands in.
    """
    day = None
    line = b""
    for line in lines:
        date = DATE.match(line)
        if date and day is not None and date[1] != day:
            yield END_OF_DAY
        day = date[1] if date else day
        yield line if line.endswith(b"\n") else line + b"\n"
    if line:
        yield END_OF_DAY


def main() -> None:
    """Write what the command line asks for to standard output."""
    parser = argparse.ArgumentParser(description="Input for examples/log_status.py.")
    commands = parser.add_subparsers(dest="command", required=True)
    generating = commands.add_parser("generate", help="write a made-up log")
    generating.add_argument("--lines", type=int, default=5000, help="how many (5000)")
    generating.add_argument("--seed", type=int, default=7, help="a log for every number (7)")
    commands.add_parser("mark", help="copy a log from standard input, with END_OF_DAY lines")
    arguments = parser.parse_args()
    if arguments.command == "generate":
        sys.stdout.buffer.writelines(generate(arguments.lines, arguments.seed))
    else:
        sys.stdout.buffer.writelines(mark(sys.stdin.buffer))


if __name__ == "__main__":
    main()
