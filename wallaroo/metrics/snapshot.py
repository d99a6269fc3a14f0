"""The figures of a run as plain data, which JSON can write: what `/api` gives and pages show.

What an engine does not know is `None`. Durations are seconds, sizes bytes, times seconds since
1970, rates a second. Where `sampling.estimate` is true, the messages looked at stand
for others too, and what is counted with them is an estimate: `received`, `sent`, `calls`,
`seconds`, `time`, `load`, `visits`, `fired`.
Frames, bytes, outputs, dead letters, entities and latencies are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import asdict
from typing import Any

from wallaroo.keys import show_key
from wallaroo.metrics.figures import KeyFigures, Latency, key_of
from wallaroo.metrics.registry import Registry
from wallaroo.metrics.sketches import Histogram
from wallaroo.metrics.verdict import not_ready, verdict
from wallaroo.topology import Sink, Source
from wallaroo.trace import DeadLetter

FORMAT = 1
"""Changes when something here gets another meaning."""

_TOP = 20  # busiest keys that are shown
_SHARES = (0.5, 0.9, 0.99, 0.999)  # of a distribution that are shown: p50 to p99.9
_MOST_NUMBERS = 256  # partition numbers whose visits are shown
_BUSIEST_NUMBERS = 16  # partition numbers whose keys are shown, those with most visits
_KEYS = 5  # busiest keys of each of these
_MOST_KEYS = 256  # busiest keys that are looked at for this


def snapshot(
    registry: Registry, *, history: bool = False, histograms: bool = False
) -> dict[str, Any]:
    """Return the figures as of now; rates and lines as of the last tick.

    Args:
        registry: the run's.
        history: with the lines of the last fifteen minutes; without, their last values.
        histograms: with the sources' whole latencies: [bucket, count], see `Histogram`.
    """
    registry.refresh()
    with registry.lock:
        nodes, now = _nodes(registry), registry.clock()
        found: dict[str, Any] = {
            "format": FORMAT,
            "application": registry.application.name,
            "engine": registry.engine,
            "state": registry.state,
            "time": now,
            "uptime": now - registry.began,
            "sampling": {
                "looked_at": registry.sampled,
                "left_out": registry.left_out,
                "estimate": bool(registry.left_out),
            },
            "backlog": registry.backlog,
            "held_back": registry.held_back,
            "processed": registry.processed,
            "processed_rate": registry.rate("processed"),
            "stands": registry.stands,
            "busy": None if registry.thread is None else registry.rate("busy"),
            "busy_seconds": registry.busy_seconds,
            "sources": [one for one in nodes if one["kind"] == "source"],
            "steps": [one for one in nodes if one["kind"] == "step"],
            "sinks": [one for one in nodes if one["kind"] == "sink"],
            "partitions": _partitions(registry),
            "dead_letters": sum([node.dead.total() for node in registry.nodes]),
            "phases": dict(registry.phases),
            "kept": None if registry.kept is None else asdict(registry.kept),
            "executors": list(registry.executors),
            "hosts": [
                {"host": host, "records": records, "seconds": seconds}
                for host, (records, seconds) in sorted(registry.hosts.items())
            ],
            "process": dict(registry.process),
            "last": registry.lines.last(),
        }
        letters = list(registry.letters)
        if history:
            found["history"] = registry.lines.to_json()
        if histograms:
            for one in found["sources"]:
                whole = registry.sources[one["name"]].latency.whole()
                one["latency"]["whole"]["buckets"] = sorted(whole.buckets.items())
    found["last_dead_letters"] = [_letter(*one) for one in reversed(letters)]
    found["not_ready"] = not_ready(registry)
    found["ready"] = not found["not_ready"]
    found["verdict"] = verdict(registry, found)
    return found


def _nodes(registry: Registry) -> list[dict[str, Any]]:
    received = registry.received()
    found = []
    for index, (node, figures) in enumerate(
        zip(registry.application.nodes, registry.nodes, strict=True)
    ):
        made: dict[str, Any] = {
            "node": index,
            "kind": "step",
            "pipeline": node.pipeline,
            "position": registry.application.position(node),
            "received": round(received[index]),
            "received_rate": registry.rate("received", index),
            "sent": round(registry.sent(index, received)),
            "sent_rate": registry.rate("sent", index),
            "calls": round(figures.time.count),
            "seconds": figures.seconds,
            "load": registry.rate("seconds", index),
            "time": distribution(figures.time),
            "dead_letters": dict(figures.dead),
            "dead_letter_rate": registry.rate("dead", index),
        }
        if isinstance(node, Source):
            made |= {"kind": "source", "name": node.pipeline, **_source(registry, node.pipeline)}
        elif isinstance(node, Sink):
            name = f"{node.pipeline}/{node.index}"
            made |= {"kind": "sink", "name": name, "index": node.index, **_sink(registry, node)}
        else:
            made["name"] = node.name
            if index in registry.windows:
                windows = registry.windows[index]
                made["windows"] = {
                    "open": windows.open,
                    "fired": round(figures.fired),
                    "late": dict(windows.late),
                    "watermark_lag": windows.lag,
                    "watermark_stands": windows.stands,
                    "held_by": windows.held_by,
                    **_keys(windows.keys),
                }
        found.append(made)
    _tell_apart([one for one in found if one["kind"] == "step"])
    return found


def _tell_apart(steps: list[dict[str, Any]]) -> None:
    """Add to each step a text for people: its name, with its place if others have that name."""
    names = Counter([one["name"] for one in steps])
    places = Counter([(one["name"], one["pipeline"]) for one in steps])
    for one in steps:
        one["label"] = name = one["name"]
        if places[name, one["pipeline"]] > 1:
            one["label"] = f"{name} (step {one['position'] + 1} of {one['pipeline']})"
        elif names[name] > 1:
            one["label"] = f"{name} (of {one['pipeline']})"


def _source(registry: Registry, name: str) -> dict[str, Any]:
    source = registry.sources[name]
    return {
        "address": registry.application.sources[name].config.address,
        "frames": source.frames,
        "frame_rate": registry.rate("frames", name),
        "bytes": source.bytes,
        "byte_rate": registry.rate("bytes in", name),
        "backlog": source.backlog,
        "connections": source.connections,
        "refused_connections": source.refused_connections,
        "dropped_frames": source.dropped_frames,
        "position": {number: place.position for number, place in source.places.items()},
        "silent": list(source.silent),
        "lag": {number: place.lag for number, place in source.places.items()},
        "latency": _latency(source.latency),
    }


def _sink(registry: Registry, node: Sink) -> dict[str, Any]:
    sink = registry.sinks[node.id]
    return {
        "address": node.config.address,
        "written": sink.written,
        "write_rate": registry.rate("written", node.id),
        "bytes": sink.bytes,
        "byte_rate": registry.rate("bytes out", node.id),
        "waiting": sink.waiting,
        "waiting_for": None if sink.oldest is None else registry.monotonic() - sink.oldest,
        "full": registry.holds_back(sink),
        "connected": sink.connected,
        "reconnects": max(0, sink.connects - 1),
        "committed": sink.committed,
        "latency": _latency(sink.latency),
    }


def _partitions(registry: Registry) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "entities": partition.entities,
            **_keys(partition),
        }
        for name, partition in registry.partitions.items()
    ]


def _key(keys: KeyFigures, identity: Hashable, count: float) -> dict[str, Any]:
    """Return a key with its visits: their share is that of all visits to these keys."""
    return {
        "key": show_key(key_of(identity)),
        "number": keys.number_of(identity),
        "visits": round(count),
        "share": count / keys.busiest.visits,
    }


def _keys(keys: KeyFigures) -> dict[str, Any]:
    """Return what keys and partition numbers get: the busiest, and the busiest keys of these."""
    spread = keys.spread
    total = sum(spread.messages.values())
    by_number = dict(sorted(spread.messages.items())[:_MOST_NUMBERS])
    if spread.numbers == 1:
        by_number = {0: keys.visits}
    busiest = spread.busiest(_BUSIEST_NUMBERS)
    theirs: dict[int, list[tuple[Hashable, float]]] = {number: [] for number, _ in busiest}
    for key in keys.busiest.top(_MOST_KEYS) if busiest else ():
        found = theirs.get(keys.number_of(key[0]))
        if found is not None and len(found) < _KEYS:
            found.append(key)
    return {
        "visits": round(keys.visits),
        "busiest": [_key(keys, *one) for one in keys.busiest.top(_TOP)],
        "visits_too_low_by": round(keys.busiest.error),
        "numbers": spread.numbers,
        "skew": spread.skew,
        "visits_by_number": {number: round(count) for number, count in by_number.items()},
        "busiest_numbers": [
            {
                "number": number,
                "visits": round(count),
                "share": count / total,
                "busiest": [_key(keys, *key) for key in theirs[number]],
            }
            for number, count in busiest
        ],
    }


def distribution(values: Histogram) -> dict[str, Any]:
    """Return how durations in nanoseconds are distributed, in seconds."""
    found = values.quantiles(_SHARES)
    return {
        "count": round(values.count),
        "mean": values.total / values.count / 1e9 if values.count else None,
        "max": values.greatest / 1e9 if values.count else None,
        **{
            f"p{share * 100:g}": None if value is None else value / 1e9
            for share, value in zip(_SHARES, found, strict=True)
        },
    }


def _latency(latency: Latency) -> dict[str, Any]:
    return {"whole": distribution(latency.whole()), "recent": distribution(latency.recent())}


def _letter(time: float, size: int | None, letter: DeadLetter) -> dict[str, Any]:
    return {
        "time": time,
        "lineage": list(letter.lineage),
        "source": letter.source,
        "pipeline": letter.pipeline,
        "step": letter.step,
        "sink": letter.sink,
        "key": None if letter.key is None else show_key(letter.key),
        "reason": letter.reason.value,
        "error_type": letter.error_type,
        "error": letter.error,
        "payload": None if letter.payload is None else repr(letter.payload)[2:-1],
        "payload_bytes": size,
        "where": [str(frame) for frame in letter.where[-3:]],
    }
