"""The summary of a run, printed at its end: as text for people, or as a line of JSON."""

from __future__ import annotations

import json
from typing import IO, Any

from wallaroo.engine import Progress, Summary
from wallaroo.metrics.silence import named
from wallaroo.text import counted, escaped
from wallaroo.topology import Application


def print_summary(
    application: Application, engine: str, summary: Summary, stream: IO[str], *, as_json: bool
) -> None:
    """Print a run's summary to `stream`."""
    if as_json:
        print(json.dumps({"summary": as_values(application, summary)}), file=stream, flush=True)
        return
    for line in as_lines(application, engine, summary):
        print(escaped(line), file=stream)
    stream.flush()


def print_counts(
    application: Application, progress: Progress, stream: IO[str], *, as_json: bool
) -> None:
    """Print what a run that is stopped at once has done, in place of its summary."""
    if as_json:
        counts = {
            "received": progress.received,
            "written": progress.written,
            "undelivered": progress.pending,
            "dead_letters": progress.dead_letters,
        }
        form = {"application": application.name, "problem": "stopped at once", "totals": counts}
        print(json.dumps({"summary": form}), file=stream, flush=True)
        return
    line = (
        f"{application.name} was stopped at once: {progress.received:,} in, "
        f"{progress.written:,} out, {progress.pending:,} outputs not delivered, "
        f"{progress.dead_letters:,} dead letters"
    )
    print(escaped(line), file=stream, flush=True)


def as_lines(application: Application, engine: str, summary: Summary) -> list[str]:
    """Return the summary as lines of text."""
    received = sum(summary.received.values())
    processed = max(0, received - summary.unprocessed)
    rate = processed / summary.seconds if summary.seconds else 0.0
    lines = [
        f"{application.name} ran for {summary.seconds:.1f} s on the {engine} engine, "
        f"{rate:,.0f} messages/s"
    ]
    for pipeline in application.sources:
        sinks = [id_ for id_ in application.sinks if id_[0] == pipeline]
        outs = [
            f"{summary.written.get(id_, 0):,} out" + (f" by sink {id_[1]}" if sinks[1:] else "")
            for id_ in sinks
        ]
        counts = ", ".join([f"{summary.received.get(pipeline, 0):,} in", *outs])
        lines.append(f"  {pipeline}: {counts}")
    if summary.unprocessed:
        lines.append(f"  received and not processed: {summary.unprocessed:,}")
    letters = summary.dead_letters
    if letters:
        lines.append(f"  dead letters: {sum(letters.values()):,}")
        for (pipeline, step, reason), count in sorted(letters.items(), key=str):
            place = f"{pipeline}, {step}" if step is not None else pipeline
            lines.append(f"    {count:,} {reason}: {place}")
        if summary.deleted_dead_letters:
            lines.append(
                f"    the oldest, {summary.deleted_dead_letters:,} bytes, were deleted from disk "
                "(--dead-letter-bytes)"
            )
        dead = sum(letters.values())
        if dead >= received > 0 and not _came_out(summary):
            lines.append(
                f"  no message came through: {received:,} in, {dead:,} dead letters, nothing out. "
                "An application written for another version of Wallaroo? "
                'See "Migrating an application", docs/migrating.md'
            )
    for source, count in summary.dropped_frames.items():
        if count:
            lines.append(f"  {source}: {count:,} incomplete or refused frames dropped")
    for source, count in summary.refused_connections.items():
        if count:
            lines.append(f"  {source}: {count:,} connections refused")
    for (pipeline, index), count in summary.undelivered.items():
        if count:
            lines.append(f"  {pipeline}: {count:,} outputs of sink {index} undelivered")
    for source, count in summary.tombstones.items():
        lines.append(f"  {source}: {counted(count, 'record')} without a value filtered")
    for (step, what), count in sorted(summary.late.items()):
        said = "late, dropped" if what == "dropped" else "late for some of the windows"
        lines.append(f"  {step}: {counted(count, 'message')} {said}")
    if summary.open_windows == 1:
        lines.append("  1 window was open at the end, and what is in it is lost")
    elif summary.open_windows:
        lines.append(
            f"  {summary.open_windows:,} windows were open at the end, and what is in them is lost"
        )
    for source, partitions in summary.silent.items():
        lines.append(
            f"  windows wait for {named(source, partitions)}, from which nothing comes; with "
            "idle_after= of the source they do not"
        )
    for finding in summary.findings:
        where = f"{finding.pipeline}, {finding.step}"
        lines.append(f"  finding: {finding.kind.value}: {where}: {finding.text}")
    if summary.problem is not None:
        lines.append(f"  ended early: {summary.problem}")
    return lines


def _came_out(summary: Summary) -> int:
    """Return the number of outputs, delivered or not."""
    return sum(summary.written.values()) + sum(summary.undelivered.values())


def as_values(application: Application, summary: Summary) -> dict[str, Any]:
    """Return the summary as JSON values."""
    return {
        "application": application.name,
        "seconds": round(summary.seconds, 3),
        "received": dict(summary.received),
        "written": _by_sink(summary.written),
        "undelivered": _by_sink(summary.undelivered),
        "dead_letters": [
            {"pipeline": pipeline, "step": step, "reason": reason, "count": count}
            for (pipeline, step, reason), count in sorted(summary.dead_letters.items(), key=str)
        ],
        "deleted_dead_letter_bytes": summary.deleted_dead_letters,
        "dropped_frames": dict(summary.dropped_frames),
        "refused_connections": dict(summary.refused_connections),
        "late": [
            {"step": step, "what": what, "count": count}
            for (step, what), count in sorted(summary.late.items())
        ],
        "open_windows": summary.open_windows,
        "tombstones": dict(summary.tombstones),
        "silent_partitions": {source: list(some) for source, some in summary.silent.items()},
        "unprocessed": summary.unprocessed,
        "findings": [finding.to_json() for finding in summary.findings],
        "exit_code": summary.exit_code,
        "problem": summary.problem,
    }


def _by_sink(counts: Any) -> list[dict[str, Any]]:
    return [
        {"pipeline": pipeline, "sink": index, "outputs": count}
        for (pipeline, index), count in counts.items()
    ]
