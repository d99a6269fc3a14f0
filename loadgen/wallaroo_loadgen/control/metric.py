"""A figure of a run's latency, by its name; SLOs and comparisons set bounds for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wallaroo_loadgen.control.result import Result

PATTERN = r"p\d+(?:\.\d+)?|max|mean"
"""A regular expression for the names."""

_NAME = re.compile(PATTERN)


@dataclass(frozen=True)
class Metric:
    """Latency at a percentile, at its maximum, or its mean.

    Attributes:
        name: `max`, `mean` or `pN`, where N is above 0 and at most 100.
        percentile: N; `None` for the other two.
    """

    name: str
    percentile: float | None

    @classmethod
    def parse(cls, text: str) -> Metric:
        """Read one, such as `p99.9`.

        Raises:
            ValueError: with what is expected.
        """
        found = _NAME.fullmatch(text)
        percentile = float(text[1:]) if found and text.startswith("p") else None
        if found is None or (percentile is not None and not 0 < percentile <= 100):
            raise ValueError(
                f"a metric is a percentile such as p99.9, or max or mean, not {text!r}"
            )
        return cls(text if percentile is None else f"p{percentile:.10g}", percentile)

    def of(self, result: Result) -> float | None:
        """Return its value in a run, in µs; `None` where nothing was measured."""
        if not result.latency["count"]:
            return None
        if self.percentile is None or self.name in result.latency:
            return float(result.latency[self.name])
        return float(result.histogram("latency").get_value_at_percentile(self.percentile))
