"""The last fifteen minutes of a few figures, a value a second."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

LENGTH = 900  # values of each line, one a second


class Timelines:
    """Lines of values, all with the same times; the last `LENGTH` values are kept.

    Args:
        most: number of lines; further names are not kept.
    """

    def __init__(self, most: int = 64) -> None:
        self._times: deque[float] = deque(maxlen=LENGTH)
        self._lines: dict[str, deque[float | None]] = {}
        self._most = most

    def add(self, time: float, values: Mapping[str, float | None]) -> None:
        """Add a value to each line; `None`: there is none at this time."""
        for name in values:
            if name not in self._lines and len(self._lines) < self._most:
                none = [None] * len(self._times)
                self._lines[name] = deque(none, maxlen=LENGTH)
        self._times.append(time)
        for name, line in self._lines.items():
            line.append(values.get(name))

    def last(self) -> dict[str, Any]:
        """Return each line's last value: ``{"time": seconds since 1970, "values": {name: value}}``.

        `time` is `None` before the first.
        """
        values = {name: line[-1] for name, line in self._lines.items() if line}
        return {"time": self._times[-1] if self._times else None, "values": values}

    def to_json(self) -> dict[str, Any]:
        """Return the lines: ``{"times": [seconds since 1970], "values": {name: [values]}}``."""
        return {
            "times": list(self._times),
            "values": {name: list(line) for name, line in self._lines.items()},
        }
