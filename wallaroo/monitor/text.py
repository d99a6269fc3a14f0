"""The figures of a running application as lines of text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wallaroo.metrics.verdict import duration
from wallaroo.text import escaped

_WIDEST = 100  # characters of a cell
_KEYS = 5  # busiest keys of a state partition
_NUMBERS = 8  # busiest partition numbers of what is held, where some are busier
_LETTERS = 5  # dead letters
_PLACES = 8  # partitions of a topic, those with the greatest lag
_MARKS = {"good": "ok", "warning": "!", "bad": "!!"}


def as_lines(figures: dict[str, Any]) -> list[str]:
    """Return the figures, as `wallaroo.metrics.snapshot` makes them, as lines."""
    process, verdict = figures["process"], figures["verdict"]
    frames = sum([source["frame_rate"] for source in figures["sources"]])
    outputs = sum([sink["write_rate"] for sink in figures["sinks"]])
    busy = "" if figures["busy"] is None else f"busy {figures['busy']:.0%} · "
    lines = [
        f"{escaped(figures['application'])} on the {figures['engine']} engine, "
        f"{figures['state']}, up {duration(round(figures['uptime']))}",
        f"{_MARKS[verdict['level']]} {escaped(verdict['text'])}",
        f"in {_rate(frames)} · processed {_rate(figures['processed_rate'])} · "
        f"out {_rate(outputs)} · backlog {figures['backlog']:,} · "
        f"dead letters {figures['dead_letters']:,} · {busy}"
        f"processor {process.get('cpu', 0.0):.0%} · memory {_size(process.get('memory_bytes', 0))}",
        "",
    ]
    lines += _table(
        (
            "source",
            "frames",
            "rate",
            "backlog",
            "connections",
            "p50",
            "p99",
            "p99.9",
            "max",
            "dead",
        ),
        [
            (
                one["name"],
                f"{one['frames']:,}",
                _rate(one["frame_rate"]),
                f"{one['backlog']:,}",
                f"{one['connections']:,}",
                *_latency(one, ("p50", "p99", "p99.9", "max")),
                _dead(one),
            )
            for one in figures["sources"]
        ],
    )
    lines += _table(
        ("topic of", "partition", "position", "lag"),
        [
            (name, str(partition), f"{position:,}", "-" if lag is None else f"{lag:,}")
            for name, partition, position, lag in _places(figures["sources"])
        ],
    )
    about = "≈ " if figures["sampling"]["estimate"] else ""
    lines += _table(
        ("step", "in", "out", "rate", "load", "mean", "p50", "p99", "dead"),
        [
            (
                one["label"],
                f"{about}{one['received']:,}",
                f"{about}{one['sent']:,}",
                _rate(one["received_rate"]),
                f"{one['load']:.0%}",
                *[_duration(one["time"][name]) for name in ("mean", "p50", "p99")],
                _dead(one),
            )
            for one in figures["steps"]
        ],
    )
    lines += _table(
        (
            *("sink", "delivered", "rate", "waiting", "oldest", "connection", "committed"),
            *("p50", "p99", "dead"),
        ),
        [
            (
                one["name"],
                f"{one['written']:,}",
                _rate(one["write_rate"]),
                f"{one['waiting']:,}",
                _duration(one["waiting_for"]),
                "full" if one["full"] else "up" if one["connected"] else "away",
                "-" if one["committed"] is None else f"{one['committed']:,}",
                *_latency(one, ("p50", "p99")),
                _dead(one),
            )
            for one in figures["sinks"]
        ],
    )
    lines += _table(
        (
            "window",
            "open",
            "fired",
            "late",
            "watermark behind",
            "partitions",
            "skew",
            "busiest keys",
        ),
        [
            (
                one["label"],
                "-" if one["windows"]["open"] is None else f"{one['windows']['open']:,}",
                f"{about}{one['windows']['fired']:,}",
                f"{sum(one['windows']['late'].values(), one['dead_letters'].get('late', 0)):,}",
                _duration(one["windows"]["watermark_lag"]),
                *_evenness(one["windows"]),
                _keys(one["windows"]) or "-",
            )
            for one in figures["steps"]
            if "windows" in one
        ],
    )
    lines += _table(
        ("state", "entities", "visits", "partitions", "skew", "busiest keys"),
        [
            (
                one["name"],
                "-" if one["entities"] is None else f"{one['entities']:,}",
                f"{about}{one['visits']:,}",
                *_evenness(one),
                _keys(one),
            )
            for one in figures["partitions"]
        ],
    )
    lines += _table(
        ("partition number", "of", "visits", "share", "busiest keys"),
        [
            (
                str(one["number"]),
                name,
                f"{about}{one['visits']:,}",
                f"{one['share']:.0%}",
                _keys(one) or "-",
            )
            for name, spread in _spreads(figures)
            for one in spread["busiest_numbers"][:_NUMBERS]
        ],
    )
    phases = [(name, _duration(seconds)) for name, seconds in figures["phases"].items()]
    lines += _table(("last micro-batch", "time"), phases)
    if kept := figures["kept"]:
        ages = [
            None if kept[name] is None else max(0.0, figures["time"] - kept[name])
            for name in ("log_written", "checkpoint_written")
        ]
        lines += _table(
            ("input log", "records", "written", "checkpoint", "written", "restarts"),
            [
                (
                    _size(kept["log_bytes"]),
                    f"{kept['log_records']:,}",
                    _ago(ages[0]),
                    "-" if kept["checkpoint_bytes"] is None else _size(kept["checkpoint_bytes"]),
                    _ago(ages[1]),
                    f"{kept['restarts']:,}",
                )
            ],
        )
    lines += _table(
        ("executor", "host", "cores", "running", "tasks", "failed", "time", "collections"),
        [
            (
                one["executor"],
                one["host"],
                *[f"{one[name]:,}" for name in ("cores", "running", "tasks", "failed")],
                _duration(one["seconds"]),
                _duration(one["gc_seconds"]),
            )
            for one in figures["executors"]
        ],
    )
    lines += _table(
        ("host", "records", "time"),
        [
            (one["host"], f"{one['records']:,}", _duration(one["seconds"]))
            for one in figures["hosts"]
        ],
    )
    for letter in figures["last_dead_letters"][:_LETTERS]:
        where = letter["step"] or ("decoder" if letter["sink"] is None else "encoder")
        lines.append(
            escaped(f"dead letter: {letter['pipeline']}, {where}, {letter['reason']}: ")
            + escaped(letter["error"])[:100]
        )
    return lines


def _places(sources: list[dict[str, Any]]) -> list[tuple[str, int, int, int | None]]:
    """Return name, partition, position and lag, of each source those that are most behind."""
    found = []
    for one in sources:
        lags = sorted(one["lag"].items(), key=lambda item: -(item[1] or 0))
        found += [(one["name"], at, one["position"][at], lag) for at, lag in lags[:_PLACES]]
    return found


def _spreads(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return what has partition numbers, by name: state partitions and windows."""
    windows = [(one["label"], one["windows"]) for one in figures["steps"] if "windows" in one]
    return [(one["name"], one) for one in figures["partitions"]] + windows


def _evenness(spread: dict[str, Any]) -> tuple[str, str]:
    """Return how many partition numbers there are, and their skew."""
    return f"{spread['numbers']:,}", "-" if spread["skew"] is None else f"{spread['skew']:.2f}"


def _keys(one: dict[str, Any]) -> str:
    return ", ".join([f"{key['key']} {key['share']:.0%}" for key in one["busiest"][:_KEYS]])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table's lines, and an empty one; nothing for no rows."""
    if not rows:
        return []
    cells = [[_fitted(escaped(cell)) for cell in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *others in cells:
        rest = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([f"{first:{widths[0]}}", *rest]).rstrip())
    return [*lines, ""]


def _fitted(text: str) -> str:
    return text if len(text) <= _WIDEST else text[:_WIDEST] + "…"


def _latency(one: dict[str, Any], names: Sequence[str]) -> list[str]:
    return [_duration(one["latency"]["recent"][name]) for name in names]


def _dead(one: dict[str, Any]) -> str:
    return f"{sum(one['dead_letters'].values()):,}"


def _duration(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


def _ago(seconds: float | None) -> str:
    return "never" if seconds is None else f"{duration(round(seconds, 1))} ago"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 or rate == 0 else f"{rate:.1f}/s"


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
