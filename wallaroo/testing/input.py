"""The input log of a test: what `wallaroo.testing` is given, as records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, get_args

from wallaroo.config import GenSourceConfig
from wallaroo.engine import Isolation, OnError
from wallaroo.errors import WallarooParameterError
from wallaroo.generating import generate
from wallaroo.records import (
    End,
    Frame,
    Record,
    Tick,
    Value,
    with_times_that_never_decrease,
)
from wallaroo.topology import Application

Payloads: TypeAlias = Mapping[str, Sequence[Any]] | Iterable[Record | tuple[str, Any]]
"""Payloads by source; or records and pairs (source, payload) in the order received."""


def input_log_of(application: Application, payloads: Payloads, *, end: bool) -> list[Record]:
    """Return the records that `wallaroo.testing.run` is given; see there.

    Raises:
        WallarooParameterError: the application has no such source, or a payload is not bytes.
    """
    if isinstance(payloads, (bytes, str)):
        raise WallarooParameterError(
            f"expected payloads by source, not one {type(payloads).__name__}. "
            "Write: {SOURCE: [PAYLOAD, …]}"
        )
    if isinstance(payloads, Mapping):
        for source, items in payloads.items():
            if isinstance(items, (bytes, str)):
                raise WallarooParameterError(
                    f"source {source!r}: expected a list of payloads, "
                    f"not one {type(items).__name__}"
                )
        given = [
            record_of(application, source, item) for source in payloads for item in payloads[source]
        ]
        given.sort(key=lambda record: record.at)  # stable: those of one time stay as they are
    else:
        given = [
            one
            if isinstance(one, (Frame, Value, Tick, End))
            else record_of(application, *_pair(one))
            for one in payloads
        ]
    records = with_times_that_never_decrease(given)
    latest = records[-1].at if records else 0
    ended = {record.source for record in records if isinstance(record, End)}
    filled = {record.source for record in records if isinstance(record, Value)} | ended
    for name, source in application.sources.items():
        if isinstance(source.config, GenSourceConfig) and name not in filled:
            for record in generate(name, source.config.generator, lambda: latest):
                # Unless told so, a source does not end; but one that has failed has (graph-4).
                if end or isinstance(record, Value) or record.error_type is not None:
                    records.append(record)
            ended.add(name)
    if end and application.time_decides:
        records += [End(name, latest) for name in application.sources if name not in ended]
    return records


def refuse_unknown(isolation: Any, on_error: Any) -> None:
    """Refuse a mode, or a way to go on after a dead letter, that does not exist.

    Raises:
        WallarooParameterError: one of them does not.
    """
    for name, value, allowed in (
        ("isolation", isolation, get_args(Isolation)),
        ("on_error", on_error, get_args(OnError)),
    ):
        if value not in allowed:
            raise WallarooParameterError(
                f"{name} is {' or '.join(map(repr, allowed))}, not {value!r:.60}"
            )


def _pair(item: Any) -> tuple[str, Any]:
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        raise WallarooParameterError(
            f"expected a pair (source, payload), or a record, not {item!r:.60}. "
            "Write: [(SOURCE, PAYLOAD), …] or {SOURCE: [PAYLOAD, …]}"
        )
    source, payload = item
    return source, payload


def record_of(application: Application, source: str, item: Any) -> Record:
    """Return a payload, or a pair (nanoseconds, payload), as a record of `source`.

    For a generator source it is a value, or a pair of nanoseconds and a value.

    Raises:
        WallarooParameterError: the application has no such source, or it is not a payload.
    """
    if source not in application.sources:
        names = ", ".join(repr(name) for name in application.sources)
        raise WallarooParameterError(
            f"application {application.name!r} has no source {source!r}; it has {names}"
        )
    at, payload = 0, item
    if isinstance(item, tuple) and len(item) == 2:
        at, payload = item
        if type(at) is not int or at < 0:
            raise WallarooParameterError(
                f"source {source!r}: an arrival time is an int of nanoseconds, 0 or more, not "
                f"{at!r:.60}"
            )
    if isinstance(application.sources[source].config, GenSourceConfig):
        return Value(source, payload, at)
    if type(payload) is not bytes:
        raise WallarooParameterError(
            f"source {source!r}: a payload is bytes, not {type(payload).__name__} {payload!r:.60}"
        )
    return Frame(source, payload, at)
