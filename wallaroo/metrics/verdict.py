"""What a figure means, in a sentence: is the application ready, does it keep up, what is slow."""

from __future__ import annotations

from typing import Any

from wallaroo.metrics.registry import Registry
from wallaroo.metrics.silence import named
from wallaroo.text import escaped

_SILENT = 5.0  # seconds without a sign of the engine's thread from which that is said
_BUSY = 0.8  # share of the time from which the thread that runs user code is the bottleneck
_FAILING = 0.01  # share of messages that are dead letters from which that is said first
_WAITING = 1000  # outputs, or records, that wait before that is said
_LAG = 5.0  # seconds of reading that are left of a topic from which that is said
_STUCK = 5.0  # seconds without a delivery while outputs wait before that is said
_WATERMARK_STANDS = 30.0  # seconds that a watermark may stand still before that is said
_IDLE = 5.0  # seconds for which messages wait and none is processed before that is said
_IDLE_LONG = 30.0  # the same, from which that is bad


def not_ready(registry: Registry) -> list[str]:
    """Return why the application does not take input now; nothing if it does."""
    if registry.state != "running":
        return [f"it is {registry.state}"]
    found = []
    silent = _silent(registry)
    if silent is not None:
        found.append(f"{_inside(registry)} has not returned for {silent:.0f} s")
    for (pipeline, index), sink in registry.sinks.items():
        if registry.holds_back(sink):
            name = escaped(f"{pipeline}/{index}")
            away = "is slow" if sink.connected else "is away"
            wait = f"{_waiting(sink.waiting, 'output')} for it"
            found.append(f"sources are not read: sink {name} {away}, and {wait}")
    if registry.held_back and not found:
        found.append(f"sources are not read: {registry.held_back}")
    return found


def verdict(registry: Registry, figures: dict[str, Any]) -> dict[str, Any]:
    """Return how the run goes.

    Args:
        registry: the run's.
        figures: its snapshot.

    Returns:
        ``level``: ``good``, ``warning`` or ``bad``; ``text``: a sentence; ``node``: the index of
        the node that it is about, or `None`.
    """
    level, text, node = _verdict(registry, figures)
    return {"level": level, "text": text, "node": node}


def _waiting(number: int, what: str) -> str:
    return f"1 {what} waits" if number == 1 else f"{number:,} {what}s wait"


def _verdict(registry: Registry, figures: dict[str, Any]) -> tuple[str, str, int | None]:
    if registry.state != "running":
        return "warning", f"It is {registry.state}.", None
    silent = _silent(registry)
    if silent is not None:
        return (
            "bad",
            f"Nothing moves: {_inside(registry)} has not returned for {silent:.0f} s.",
            None,
        )
    looks = (_at_a_sink, _at_a_step, _idle, _at_the_engine, _dead, _behind, _lags, _calm)
    found = [one for look in looks if (one := look(figures)) is not None]
    return next((one for one in found if one[0] == "bad"), found[0])


def _at_a_sink(figures: dict[str, Any]) -> tuple[str, str, int | None] | None:
    for sink in sorted(figures["sinks"], key=lambda one: -one["waiting"]):
        name = escaped(sink["name"])
        wait = _waiting(sink["waiting"], "output")
        if (since := sink["waiting_for"]) is not None and since >= 1:
            wait += f", the oldest for {duration(round(since))}"
        if sink["full"]:
            what = (
                "slow" if sink["connected"] else f"away: nobody takes outputs at {sink['address']}"
            )
            return "bad", f"Sink {name} is {what}; {wait}; sources are held back.", sink["node"]
        if not sink["connected"]:
            text = f"Sink {name} is away: nobody listens at {sink['address']}; {wait}."
            return "bad" if sink["waiting"] else "warning", text, sink["node"]
        many = sink["waiting"] > _WAITING and sink["write_rate"] * 2 < sink["waiting"]
        stuck = sink["waiting"] and since is not None and since >= _STUCK and not sink["write_rate"]
        if many or stuck:
            return "warning", f"Sink {name} is slow: {wait}.", sink["node"]
    return None


def _at_a_step(figures: dict[str, Any]) -> tuple[str, str, int | None] | None:
    if (figures["busy"] or 0.0) < _BUSY:
        return None
    nodes = [*figures["sources"], *figures["steps"], *figures["sinks"]]
    slowest = max(nodes, key=lambda one: float(one["load"]))
    waits = f" {figures['backlog']:,} messages wait." if figures["backlog"] else ""
    about = "about " if figures["sampling"]["estimate"] else ""
    if slowest["load"] < figures["busy"] / 3:
        text = f"It is busy for {figures['busy']:.0%} of the time, spread over its steps.{waits}"
        return "warning", text, None
    what = {"source": "The decoder of source", "step": "Step", "sink": "The encoder of sink"}
    mean = slowest["time"]["mean"] or 0.0
    text = (
        f"{what[slowest['kind']]} {_name(slowest)} is the slowest: it takes "
        f"{about}{slowest['load']:.0%} of the time, {duration(mean)} a message.{waits}"
    )
    return "warning", text, slowest["node"]


def _idle(figures: dict[str, Any]) -> tuple[str, str, int | None] | None:
    """Say that nothing is processed although messages wait."""
    if figures["stands"] < _IDLE or figures["held_back"]:
        return None
    waits = _waiting(figures["backlog"], "message")
    text = f"Nothing was processed for {duration(round(figures['stands']))}, and {waits}."
    return "bad" if figures["stands"] >= _IDLE_LONG else "warning", text, None


def _name(node: dict[str, Any]) -> str:
    return escaped(node.get("label", node["name"]))


def _at_the_engine(figures: dict[str, Any]) -> tuple[str, str, int | None] | None:
    """Say that an engine whose threads we cannot see does not keep up, or that a log is full."""
    rate = sum([source["frame_rate"] for source in figures["sources"]])
    waits, done = figures["backlog"], figures["processed_rate"]
    held_back = figures["held_back"]
    keeps_up = figures["busy"] is not None or waits < _WAITING or done >= 0.9 * rate
    if keeps_up and not held_back:
        return None
    phases = figures["phases"]
    inside = [name for name in phases if name != "triggerExecution"]
    longest = max(inside, key=lambda name: float(phases[name]), default=None)
    where = (
        f" Of a micro-batch, {longest} takes most: {duration(phases[longest])}." if longest else ""
    )
    if held_back:
        wait = f" {waits:,} messages wait." if waits else ""
        return "warning", f"Sources are held back: {held_back}.{wait}{where}", None
    text = f"It processes {done:,.0f} of {rate:,.0f} messages a second, and {waits:,} wait.{where}"
    return "warning", text, None


def _dead(figures: dict[str, Any]) -> tuple[str, str, int | None] | None:
    rate = sum([source["frame_rate"] for source in figures["sources"]])
    nodes = [*figures["sources"], *figures["steps"], *figures["sinks"]]
    worst = max(nodes, key=lambda one: float(one["dead_letter_rate"]))
    if not rate or worst["dead_letter_rate"] < _FAILING * rate:
        return None
    reason = max(worst["dead_letters"], key=lambda one: int(worst["dead_letters"][one]))
    text = (
        f"Messages fail at {worst['kind']} {_name(worst)} ({reason}): "
        f"{worst['dead_letter_rate']:,.1f} dead letters a second, of {rate:,.0f} frames."
    )
    return "bad", text, worst["node"]


def _behind(figures: dict[str, Any]) -> tuple[str, str, int | None] | None:
    for step in figures["steps"]:
        windows = step.get("windows")
        if windows and windows["open"] and windows["watermark_stands"] > _WATERMARK_STANDS:
            source = windows["held_by"]
            silent = {one["name"]: one["silent"] for one in figures["sources"]}.get(source)
            held_by = named(source, silent) if silent else f"source {escaped(source)}"
            text = (
                f"The windows of {_name(step)} wait for {held_by}: their watermark has not moved "
                f"for {duration(windows['watermark_stands'])}. Is nothing sent there? See "
                "idle_after"
            )
            return "warning", text, step["node"]
    return None


def _lags(figures: dict[str, Any]) -> tuple[str, str, int | None] | None:
    """Say that a Kafka source has much of its topic before it."""
    for source in figures["sources"]:
        lag, rate = sum([one or 0 for one in source["lag"].values()]), source["frame_rate"]
        if lag > max(_WAITING, _LAG * rate):
            text = f"Source {_name(source)} is {lag:,} records behind the end of its topic"
            if rate:
                text += f"; at {rate:,.0f} a second it reads them in {duration(round(lag / rate))}"
            return "warning", f"{text}.", source["node"]
    return None


def _calm(figures: dict[str, Any]) -> tuple[str, str, int | None]:
    rate = sum([source["frame_rate"] for source in figures["sources"]])
    busy = ""
    if figures["busy"] is not None:
        busy = f", and is busy for {figures['busy']:.0%} of the time"
    if not rate and figures["backlog"]:
        done = f"{figures['processed_rate']:,.0f} a second are"
        if not figures["processed_rate"]:
            done = "nothing is"
        text = (
            f"Nothing comes now; {_waiting(figures['backlog'], 'message')}, and {done} processed."
        )
        return "good" if figures["processed_rate"] else "warning", text, None
    if not any(source["frames"] for source in figures["sources"]):
        return "good", "It waits for its first message.", None
    if not rate:
        return "good", "It has processed all that came, and nothing comes now.", None
    return (
        "good",
        f"It keeps up with {rate:,.0f} messages a second{busy}.",
        None,
    )


_LONG = ((86400, "days", 86400, ""), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def duration(seconds: float) -> str:
    """Return a duration for people: with three digits, or in minutes, hours or days."""
    if seconds <= 0:
        return f"-{duration(-seconds)}" if seconds else "0 s"
    for long, unit, part, name in _LONG:
        if seconds >= 2 * long:
            whole, rest = divmod(round(seconds / part), long // part)
            return f"{whole:,} {unit}" + (f" {rest} {name}" if rest and name else "")
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _silent(registry: Registry) -> float | None:
    """Return how long the engine's thread has given no sign, if that is long."""
    if registry.heard is None:
        return None
    silent = registry.monotonic() - registry.heard
    return silent if silent > _SILENT else None


def _inside(registry: Registry) -> str:
    return escaped(registry.inside() or "the engine")
