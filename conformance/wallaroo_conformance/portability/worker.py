"""Runs an application on the reference in a fresh process: requests in, answers out, as JSON lines.

Run as ``python -m wallaroo_conformance.portability.worker``. Each request has a child of its own,
which alone loads the application. What all of them need is imported once, before: an import of
everything takes longer than most runs. The clock that user code sees stands where it is set, so
that dependence on the clock and dependence on chance can be distinguished.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import sys
import time
from typing import Any

from wallaroo.canonical import structure
from wallaroo.engine import Case, Engine, load_engine
from wallaroo.keys import BadKeyError, key_to_json
from wallaroo.loading import load_application
from wallaroo.topology import Application
from wallaroo.trace import InputLog, canonical_json
from wallaroo.user_code.calls import Call, CallSite, instrument
from wallaroo.user_code.failure import describe_error
from wallaroo_conformance.pipe.protocol import take_over_standard_streams

_ANSWERED = 17  # the exit code of a child that answered; user code that ends it hardly takes this
_SHORT = 200  # characters of a call's result that are kept


def main() -> int:
    """Answer each request on stdin with a line, ``null`` if its child failed."""
    engine = load_engine("reference")
    requests, write = take_over_standard_streams()
    for line in requests:
        child = os.fork()
        if not child:
            answer = _answer(engine, json.loads(line))
            write(json.dumps(answer).encode() + b"\n")
            # What the application has planned for its end is no part of a run.
            sys.stderr.flush()
            os._exit(_ANSWERED)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) != _ANSWERED:
            write(b"null\n")
    return 0


def _answer(engine: Engine, request: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the answer to a request, in a process of its own; `None`: it could not be run."""
    stop_clock(request["clock"])
    try:
        application = load_application(request["app"], request["args"], placeholders=True)
        return [_run(engine, application, log_from_json(log)) for log in request["logs"]]
    except BaseException as error:  # noqa: BLE001 - whatever the application raises
        print(f"{type(error).__name__}: {describe_error(error)}", file=sys.stderr)
        return None


def stop_clock(now: float) -> None:
    """Let every clock of the standard library show `now`, seconds since 1970, from here on."""

    def seconds(*_: object) -> float:
        return now

    def nanoseconds(*_: object) -> int:
        return int(now * 1e9)

    for name in ("time", "monotonic", "perf_counter"):
        setattr(time, name, seconds)
        setattr(time, f"{name}_ns", nanoseconds)
    local, utc = time.localtime, time.gmtime
    time.localtime = lambda when=None: local(now if when is None else when)
    time.gmtime = lambda when=None: utc(now if when is None else when)

    class StoppedDate(datetime.date):
        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(now)

    class StoppedDateTime(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.fromtimestamp(now, tz)

        @classmethod
        def utcnow(cls) -> Any:
            return cls.fromtimestamp(now, datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(now)

    datetime.date = StoppedDate  # type: ignore[misc]
    datetime.datetime = StoppedDateTime  # type: ignore[misc]


def log_from_json(log: list[list[str]]) -> InputLog:
    """Return an input log from its JSON form."""
    return [(source, base64.b64decode(payload)) for source, payload in log]


def log_to_json(log: InputLog) -> list[list[str]]:
    """Return an input log's JSON form."""
    return [[source, base64.b64encode(payload).decode("ascii")] for source, payload in log]


def _run(engine: Engine, application: Application, log: InputLog) -> dict[str, Any]:
    calls: list[list[Any]] = []
    case = Case(observed(application, calls), log, options={"thorough": True})
    trace = engine.run(case)
    findings = [finding.to_json() for finding in trace.findings]
    errors = [letter.error for letter in trace.dead_letters]
    return {"trace": trace.comparable(), "findings": findings, "calls": calls, "errors": errors}


def observed(application: Application, calls: list[list[Any]]) -> Application:
    """Return the application; its calls note what they gave: (component, key, result)."""
    key: list[Any] = [None]

    def around(site: CallSite, call: Call) -> Call:
        def noted(*arguments: Any) -> Any:
            result = call(*arguments)
            if site.method == "partition":
                key[0] = _key(result)
            else:
                calls.append([site.component.name, key[0], _shown(result)])
            return result

        return call if site.method == "build" else noted

    return instrument(application, around)


def _key(found: Any) -> Any:
    try:
        return key_to_json(found)
    except (BadKeyError, TypeError, AttributeError):
        return None


def _shown(result: Any) -> str:
    try:
        return canonical_json(structure(result))[:_SHORT]
    except Exception:  # noqa: BLE001 - generators and whatever else cannot be reduced
        return type(result).__name__


if __name__ == "__main__":
    sys.exit(main())
