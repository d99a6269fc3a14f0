"""`log_status`: a web server's log lines in, and at each day's end its status codes with counts.

One entity, so one connection: between connections the lines' order would be undefined. A day is a
block of lines with one date, then `END_OF_DAY`; the outputs are caused by that boundary, and their
latency is that of the whole way from the boundary's intended time. Each count is checked. Options:
`lines` a day (1000), `post`, the part that is not GET and counts as `null` (0.05).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np

from wallaroo.frames import frames
from wallaroo.overriding import override
from wallaroo_loadgen.workloads.cycle import CycleStream, matched
from wallaroo_loadgen.workloads.protocol import IGNORED, Block, Framing, Matched, Options, Workload

BOUNDARY = b"END_OF_DAY"
_DAYS = 8  # different days until the lines repeat, with new dates
_FIRST = date(2000, 1, 1)
_LAST = (date.max - _FIRST).days
_PROBE_DAY = date(1999, 12, 31)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = b"##/###/####"
_CODES = (b"200", b"206", b"301", b"304", b"403", b"404", b"416", b"500")
_WEIGHTS = np.array([0.82, 0.02, 0.03, 0.06, 0.01, 0.04, 0.01, 0.01])


class LogStatus(Workload):
    """Each output `YYYY-MM-DD CODE COUNT` belongs to its day's boundary."""

    sources: Sequence[str] = ("log",)
    framing: Framing = "lines"

    def __init__(self, options: Options) -> None:
        options.known("lines", "post")
        lines = options.integer("lines", 1000, high=100_000)
        post = options.fraction("post", 0.05)
        random = np.random.default_rng([options.seed, 5])
        days: list[list[bytes]] = []
        self._counts: list[dict[bytes, tuple[int, bytes]]] = []  # per day: CODE -> (rank, COUNT)
        for _ in range(_DAYS):
            codes = [_CODES[code] for code in random.choice(len(_CODES), size=lines, p=_WEIGHTS)]
            gets = random.random(lines) >= post
            days.append([_line(*item) for item in zip(range(lines), codes, gets, strict=True)])
            counted = Counter(
                code if get else b"null" for code, get in zip(codes, gets, strict=True)
            )
            ranked = sorted(counted, key=lambda code: (code == b"null", code))
            self._counts.append(
                {code: (rank, b"%d" % counted[code]) for rank, code in enumerate(ranked)}
            )
        self._stream = _DayStream(days, [len(counts) for counts in self._counts])
        self.streams = [self._stream]

    @override
    def match(self, outputs: list[bytes]) -> Matched:
        # The day and the code of each line; a wrong count matches nothing.
        result = matched(len(outputs))
        for index, output in enumerate(outputs):
            day = _day(output[:10])
            if day is None:
                continue
            if day == _PROBE_DAY:
                result.streams[index] = IGNORED
                continue
            number = (day - _FIRST).days
            code, _, count = output[11:].partition(b" ")
            due = self._counts[number % _DAYS].get(code)
            if number >= 0 and due is not None and count == due[1]:
                result.streams[index] = 0
                result.numbers[index] = self._stream.first_of_day(number) + due[0]
        return result

    @override
    def preparation(self) -> dict[int, bytes]:
        # A boundary, which ends what the application counted before.
        return {0: frames([BOUNDARY])}

    @override
    def probe(self, attempt: int) -> dict[int, bytes]:
        # A day of one line.
        line = _line(0, b"200", get=True).replace(_DATE, _stamp(_PROBE_DAY))
        return {0: frames([line, BOUNDARY])}

    @override
    def answers(self, outputs: list[bytes]) -> bool:
        return any(_day(output[:10]) == _PROBE_DAY for output in outputs)


class _DayStream(CycleStream):
    """Days of lines whose date is put in when they are sent."""

    def __init__(self, days: list[list[bytes]], outputs: list[int]) -> None:
        self._length = len(days[0]) + 1
        payloads = [line for lines in days for line in (*lines, BOUNDARY)]
        causes = [0] * len(payloads)
        causes[self._length - 1 :: self._length] = outputs
        super().__init__(payloads, causes, 0, 1.0)

    def first_of_day(self, day: int) -> int:
        """Return the number of the first output of that day's boundary."""
        return self.expected(day * self._length + self._length - 1)

    @override
    def block(self, first: int, count: int) -> Block:  # up to the day's end at most
        day, line = divmod(first, self._length)
        block = super().block(first, min(count, self._length - line))
        stamp = _stamp(_FIRST + timedelta(days=day % (_LAST + 1)))
        return Block(block.data.replace(_DATE, stamp), block.ends)


def _line(index: int, code: bytes, get: bool) -> bytes:
    method = b"GET" if get else b"POST"
    return b'10.0.%d.%d - - [%s:%02d:%02d:%02d +0000] "%s /page/%d HTTP/1.1" %s %d' % (
        index // 250 % 250,
        index % 250,
        _DATE,
        index // 3600 % 24,
        index // 60 % 60,
        index % 60,
        method,
        index % 97,
        code,
        200 + index % 5000,
    )


def _stamp(day: date) -> bytes:
    return f"{day.day:02}/{_MONTHS[day.month - 1]}/{day.year:04}".encode()


def _day(text: bytes) -> date | None:
    try:
        return date.fromisoformat(text.decode("ascii"))
    except ValueError:
        return None
