"""Whether a run is valid, and whether its latency was good enough."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wallaroo_loadgen.control.result import METRIC, Metric, Result

OK, SLO_MISSED, INVALID, TARGET_ENDED, INTERRUPTED = 0, 3, 4, 5, 130

WORDS = {
    OK: "valid",
    SLO_MISSED: "SLO missed",
    INVALID: "INVALID",
    TARGET_ENDED: "TARGET ENDED",
    INTERRUPTED: "PARTIAL",
}
"""The name of each verdict in a terminal and in a report."""

LATENESS_FLOOR = 500
"""µs: sender lateness at p99 up to this never makes a run invalid."""

_MOST_STOLEN = 0.001
_UNITS = {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
_SLO = re.compile(
    rf"\s*(?P<metric>{METRIC})\s*<\s*(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>us|µs|ms|s)\s*"
)


class SLOError(ValueError):
    """An SLO that cannot be read."""


@dataclass(frozen=True)
class SLO:
    """A bound on latency: `p99<5ms`, `p99.99<1s`, `max<20ms`, `mean<500us`."""

    text: str
    metric: Metric
    micros: float

    @classmethod
    def parse(cls, text: str) -> SLO:
        """Read one as the command line gives it.

        Raises:
            SLOError: with what is expected.
        """
        match = _SLO.fullmatch(text)
        try:
            metric = Metric.parse(match["metric"]) if match else None
        except ValueError:
            metric = None
        if match is None or metric is None:
            expected = "such as 'p99<5ms', 'p99.99<1s', 'max<20ms' or 'mean<500us'"
            raise SLOError(f"an SLO is a bound on latency {expected}, not {text!r}")
        return cls(text.strip(), metric, float(match["value"]) * _UNITS[match["unit"]])

    @property
    def words(self) -> str:
        """The bound in words: `p99 under 50 ms`."""
        match = _SLO.fullmatch(self.text)
        assert match is not None
        return f"{self.metric.name} under {match['value']} {match['unit']}"

    def judge(self, result: Result) -> dict[str, Any]:
        """Return `text`, the measured `value` in µs and whether it was `met`; no value misses."""
        value = self.metric.of(result)
        return {"text": self.text, "value": value, "met": value is not None and value < self.micros}


def judge(result: Result, slos: Sequence[SLO] = ()) -> None:
    """Fill in the verdicts of a result."""
    result.slos = [slo.judge(result) for slo in slos]
    result.invalid = why_invalid(result)
    result.notes = _notes(result)


def verdict(result: Result) -> int:
    """Return a run's exit code; the most serious problem decides."""
    if result.partial:
        return INTERRUPTED
    if target_ended(result):
        return TARGET_ENDED
    if result.invalid:
        return INVALID
    return OK if all(slo["met"] for slo in result.slos) else SLO_MISSED


def exit_code(results: Sequence[Result]) -> int:
    """Return the exit code for these runs together: the highest, which is the most serious."""
    return max([verdict(result) for result in results], default=OK)


def target_ended(result: Result) -> bool:
    """Whether the target crashed or closed its connections: its fault, not this machine's."""
    return bool(result.ended or result.closed or result.counts["sinks_closed"])


def why_invalid(result: Result) -> list[str]:
    """Return why a run is invalid, each reason a sentence; none when it is valid."""
    counts = result.counts
    reasons = _end_of_target(result)
    if result.failure is not None and result.failure != result.ended:
        reasons.append(result.failure)
    if result.started is None:
        return reasons
    if not result.latency["count"] and not counts["unanswered"]:
        reasons.append("no sample: not one output came for the messages of the measured part")
    if counts["sent"] < counts["scheduled"] and not result.partial and not target_ended(result):
        reasons.append(
            f"only {counts['sent']:,} of {counts['scheduled']:,} messages could be sent before the "
            f"time was over{_why_late(result)}"
        )
    reasons += _wrong_outputs(result)
    lateness, limit = result.lateness["p99"], _limit(result)
    if lateness is not None and lateness > limit and not target_ended(result):
        reasons.append(
            f"sender lateness p99 {show(lateness)} is over {show(limit)} (a tenth of the p99 "
            f"latency, at least {show(LATENESS_FLOOR)}){_why_late(result)}"
        )
    if counts["early"]:
        reasons.append(
            f"{counts['early']:,} outputs came before their messages were due: the clocks of the "
            "machines do not agree"
        )
    if counts["held_up"]:
        reasons.append("the receiver could not keep up with the outputs: this machine is too slow")
    return reasons


def _end_of_target(result: Result) -> list[str]:
    """Return how the target ended, as far as that can be seen."""
    counts = result.counts
    reasons = [] if result.ended is None else [result.ended]
    if result.closed:
        stream, what = next(iter(result.closed.items()))
        after = f"after {counts['sent']:,} of {counts['scheduled']:,} messages"
        reasons.append(f"connection {stream}: {what} {after}{_more(len(result.closed))}")
    if counts["sinks_closed"]:
        reasons.append(
            f"the application's sink closed its connection before all had come"
            f"{_more(counts['sinks_closed'])}"
        )
    return reasons


def _wrong_outputs(result: Result) -> list[str]:
    counts = result.counts
    parts = []
    if counts["missing"]:
        parts.append(f"{counts['missing']:,} missing")
    if counts["repeated"]:
        parts.append(f"{counts['repeated']:,} came more than once")
    if counts["unmatched"]:
        parts.append(f"{counts['unmatched']:,} match nothing, such as {result.example}")
    if not parts:
        return []
    both = f"received {counts['received']:,} outputs, expected {counts['expected']:,}"
    return [f"{both}: {', '.join(parts)}"]


def _limit(result: Result) -> float:
    return max(LATENESS_FLOOR, (result.latency["p99"] or 0) / 10)


def _why_late(result: Result) -> str:
    """Return why messages were late: the target's back-pressure, or this machine."""
    own = result.own_lateness["p99"]
    if own is not None and own <= _limit(result) and result.counts["held_back"]:
        part = result.counts["held_back"] / max(result.lateness["count"], 1)
        return f": the target did not take them (back-pressure on {part:.0%} of the messages)"
    return ": this machine cannot send at this rate on time"


def sender_too_late(result: Result) -> bool:
    """Whether a run is invalid because this machine could not send on time."""
    own = result.own_lateness["p99"]
    late = own is not None and own > _limit(result)
    return late and bool(result.invalid) and not target_ended(result)


def _notes(result: Result) -> list[str]:
    notes = []
    if result.counts["unanswered"]:
        notes.append(
            f"no latency: {result.counts['unanswered']:,} outputs came, and it is not known which "
            "message each of them answers. --metrics asks the application for its own figures"
        )
    if result.partial:
        notes.append("PARTIAL: interrupted, figures cover what was sent until then")
    if result.counts["reordered"]:
        notes.append(f"{result.counts['reordered']:,} outputs came after later ones (reordered)")
    if result.counts["held_back"]:
        notes.append(
            f"back-pressure: {result.counts['held_back']:,} measured messages were due while the "
            "target did not take any"
        )
    if result.stolen > _MOST_STOLEN:
        notes.append(
            f"the hypervisor gave {result.stolen:.1%} of this machine's processor time to others: "
            "pauses that are neither the application's nor ours"
        )
    busiest = max(result.busy.items(), key=lambda item: item[1], default=("", 0.0))
    if busiest[1] > 0.8:
        notes.append(f"the {busiest[0]} process used {busiest[1]:.0%} of a processor")
    return notes


def _more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""


def show(micros: float | None) -> str:
    """Return a time in µs with the unit that suits it."""
    if micros is None:
        return "–"  # noqa: RUF001 - the dash of a table's empty cell
    if micros < 1000:
        return f"{micros:.0f} µs"
    if micros < 1_000_000:
        return f"{micros / 1000:.3g} ms" if micros >= 100_000 else f"{micros / 1000:.2f} ms"
    return f"{micros / 1_000_000:.2f} s"
