"""The figures of a running application as lines of text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from wallaroo.metrics.verdict import duration
from wallaroo.text import escaped

_Row: TypeAlias = dict[str, str]
"""A row's cells by the heads of their columns, in order."""
_Table: TypeAlias = list[_Row]

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
    about = "≈ " if figures["sampling"]["estimate"] else ""
    tables = [*_sources(figures), *_steps_and_sinks(figures, about), *_states(figures, about)]
    for table in (*tables, *_machines(figures)):
        lines += _lines_of(table)
    for letter in figures["last_dead_letters"][:_LETTERS]:
        where = letter["step"] or ("decoder" if letter["sink"] is None else "encoder")
        lines.append(
            escaped(f"dead letter: {letter['pipeline']}, {where}, {letter['reason']}: ")
            + escaped(letter["error"])[:100]
        )
    return lines


def _sources(figures: dict[str, Any]) -> Iterator[_Table]:
    """Yield the tables of sources and of their topics."""
    yield [
        {
            "source": one["name"],
            "frames": f"{one['frames']:,}",
            "rate": _rate(one["frame_rate"]),
            "backlog": f"{one['backlog']:,}",
            "connections": f"{one['connections']:,}",
            **_latency(one, ("p50", "p99", "p99.9", "max")),
            "dead": _dead(one),
        }
        for one in figures["sources"]
    ]
    yield [
        {
            "topic of": name,
            "partition": str(partition),
            "position": f"{position:,}",
            "lag": _number(lag),
        }
        for name, partition, position, lag in _places(figures["sources"])
    ]


def _steps_and_sinks(figures: dict[str, Any], about: str) -> Iterator[_Table]:
    """Yield the tables of steps and of sinks; `about` stands before estimates."""
    yield [
        {
            "step": one["label"],
            "in": f"{about}{one['received']:,}",
            "out": f"{about}{one['sent']:,}",
            "rate": _rate(one["received_rate"]),
            "load": f"{one['load']:.0%}",
            **{name: _duration(one["time"][name]) for name in ("mean", "p50", "p99")},
            "dead": _dead(one),
        }
        for one in figures["steps"]
    ]
    yield [
        {
            "sink": one["name"],
            "delivered": f"{one['written']:,}",
            "rate": _rate(one["write_rate"]),
            "waiting": f"{one['waiting']:,}",
            "oldest": _duration(one["waiting_for"]),
            "connection": "full" if one["full"] else "up" if one["connected"] else "away",
            "committed": _number(one["committed"]),
            **_latency(one, ("p50", "p99")),
            "dead": _dead(one),
        }
        for one in figures["sinks"]
    ]


def _states(figures: dict[str, Any], about: str) -> Iterator[_Table]:
    """Yield the tables of windows, of state partitions, and of the busiest partition numbers."""
    windows = [(one, one["windows"]) for one in figures["steps"] if "windows" in one]
    yield [
        {
            "window": one["label"],
            "open": _number(window["open"]),
            "fired": f"{about}{window['fired']:,}",
            "late": f"{sum(window['late'].values(), one['dead_letters'].get('late', 0)):,}",
            "watermark behind": _duration(window["watermark_lag"]),
            **_evenness(window),
            "busiest keys": _keys(window),
        }
        for one, window in windows
    ]
    yield [
        {
            "state": one["name"],
            "entities": _number(one["entities"]),
            "visits": f"{about}{one['visits']:,}",
            **_evenness(one),
            "busiest keys": _keys(one),
        }
        for one in figures["partitions"]
    ]
    spreads = [(one["name"], one) for one in figures["partitions"]]
    spreads += [(one["label"], window) for one, window in windows]
    yield [
        {
            "partition number": str(one["number"]),
            "of": name,
            "visits": f"{about}{one['visits']:,}",
            "share": f"{one['share']:.0%}",
            "busiest keys": _keys(one),
        }
        for name, spread in spreads
        for one in spread["busiest_numbers"][:_NUMBERS]
    ]


def _machines(figures: dict[str, Any]) -> Iterator[_Table]:
    """Yield the tables of micro-batches, of what is on disk, of executors and of hosts."""
    yield [
        {"last micro-batch": name, "time": _duration(seconds)}
        for name, seconds in figures["phases"].items()
    ]
    if kept := figures["kept"]:
        size = kept["checkpoint_bytes"]
        yield [
            {
                "input log": _size(kept["log_bytes"]),
                "records": f"{kept['log_records']:,}",
                "written": _ago(figures["time"], kept["log_written"]),
                "checkpoint": "-" if size is None else _size(size),
                "checkpoint written": _ago(figures["time"], kept["checkpoint_written"]),
                "restarts": f"{kept['restarts']:,}",
            }
        ]
    yield [
        {
            "executor": one["executor"],
            "host": one["host"],
            **{name: f"{one[name]:,}" for name in ("cores", "running", "tasks", "failed")},
            "time": _duration(one["seconds"]),
            "collections": _duration(one["gc_seconds"]),
        }
        for one in figures["executors"]
    ]
    yield [
        {
            "host": one["host"],
            "records": f"{one['records']:,}",
            "time": _duration(one["seconds"]),
        }
        for one in figures["hosts"]
    ]


def _places(sources: list[dict[str, Any]]) -> list[tuple[str, int, int, int | None]]:
    """Return name, partition, position and lag, of each source those that are most behind."""
    found = []
    for one in sources:
        lags = sorted(one["lag"].items(), key=lambda item: -(item[1] or 0))
        found += [(one["name"], at, one["position"][at], lag) for at, lag in lags[:_PLACES]]
    return found


def _evenness(spread: dict[str, Any]) -> _Row:
    """Return how many partition numbers there are, and their skew."""
    skew = spread["skew"]
    return {"partitions": f"{spread['numbers']:,}", "skew": "-" if skew is None else f"{skew:.2f}"}


def _keys(one: dict[str, Any]) -> str:
    return ", ".join([f"{key['key']} {key['share']:.0%}" for key in one["busiest"][:_KEYS]]) or "-"


def _lines_of(table: _Table) -> list[str]:
    """Return a table's lines, and an empty one; nothing for no rows."""
    if not table:
        return []
    rows = [list(table[0]), *[list(row.values()) for row in table]]
    cells = [[_fitted(escaped(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *others in cells:
        rest = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([f"{first:{widths[0]}}", *rest]).rstrip())
    return [*lines, ""]


def _fitted(text: str) -> str:
    return text if len(text) <= _WIDEST else text[:_WIDEST] + "…"


def _latency(one: dict[str, Any], names: Sequence[str]) -> _Row:
    return {name: _duration(one["latency"]["recent"][name]) for name in names}


def _dead(one: dict[str, Any]) -> str:
    return f"{sum(one['dead_letters'].values()):,}"


def _duration(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


def _number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _ago(now: float, then: float | None) -> str:
    return "never" if then is None else f"{duration(round(max(0.0, now - then), 1))} ago"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 or rate == 0 else f"{rate:.1f}/s"


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
