"""Runs an application on the reference in a fresh process: requests in, answers out, as JSON lines.

Run as ``python -m wallaroo_conformance.portability.worker``. Each request has a child of its own,
which alone loads the application. What all of them need is imported once, before: an import of
everything takes longer than most runs. The clock that user code sees stands where it is set, and a
seed decides what is random, so that one dependence can be told from another.
"""

from __future__ import annotations

import base64
import ctypes
import datetime
import gc
import hashlib
import json
import os
import random
import sys
import time
from typing import Any

from wallaroo.canonical import structure_or_kind
from wallaroo.engine import Case, Engine, load_engine
from wallaroo.keys import BadKeyError, key_to_json
from wallaroo.loading import load_application
from wallaroo.topology import Application
from wallaroo.trace import InputLog, canonical_json
from wallaroo.user_code.calls import Call, CallSite, instrument
from wallaroo.user_code.failure import describe_error
from wallaroo_conformance.pipe.protocol import take_over_standard_streams

_ANSWERED = 17  # the exit code of a child that answered; user code that ends it hardly takes this


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
    decide_chance(request["chance"])
    try:
        application = load_application(request["app"], request["args"], placeholders=True)
        return [
            _run(engine, application, log_from_json(log), request["chance"])
            for log in request["logs"]
        ]
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
    local, utc, shown, written = time.localtime, time.gmtime, time.asctime, time.strftime
    time.localtime = lambda when=None: local(now if when is None else when)
    time.gmtime = lambda when=None: utc(now if when is None else when)
    time.ctime = lambda when=None: shown(time.localtime(when))
    time.asctime = lambda when=None: shown(when or time.localtime())
    time.strftime = lambda form, when=None: written(form, when or time.localtime())
    # In the class itself: a value of a subclass, and one of the class that it hides, cannot be
    # pickled, and modules that are imported already have the class. `today` asks `time.time`.
    methods = gc.get_referents(vars(datetime.datetime))[0]
    methods["now"] = classmethod(lambda cls, tz=None: cls.fromtimestamp(now, tz))
    methods["utcnow"] = classmethod(
        lambda cls: cls.fromtimestamp(now, datetime.UTC).replace(tzinfo=None)
    )
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime.datetime))


def decide_chance(seed: int) -> None:
    """Let `random` and all that asks the system for random bytes begin anew, from `seed`."""
    random.seed(seed)
    system = random.Random(seed)  # noqa: S311 - it must be the same again
    os.urandom = random._urandom = system.randbytes  # type: ignore[attr-defined]


def log_from_json(log: list[list[str]]) -> InputLog:
    """Return an input log from its JSON form."""
    return [(source, base64.b64decode(payload)) for source, payload in log]


def log_to_json(log: InputLog) -> list[list[str]]:
    """Return an input log's JSON form."""
    return [[source, base64.b64encode(payload).decode("ascii")] for source, payload in log]


def _run(engine: Engine, application: Application, log: InputLog, chance: int) -> dict[str, Any]:
    decide_chance(chance)
    calls: list[list[Any]] = []
    case = Case(observed(application, calls), log, options={"thorough": True})
    trace = engine.run(case)
    findings = [finding.to_json() for finding in trace.findings]
    errors = [letter.error for letter in trace.dead_letters]
    return {"trace": trace.comparable(), "findings": findings, "calls": calls, "errors": errors}


def observed(application: Application, calls: list[list[Any]]) -> Application:
    """Return the application; its calls note (component, key, what it was given, what came of it).

    What came of it is the result, and the arguments as they are then.
    """
    key: list[Any] = [None]

    def around(site: CallSite, call: Call) -> Call:
        several = site.method == "compute" and getattr(site.component, "multi", False)

        def noted(*arguments: Any) -> Any:
            given = _digest(arguments)
            result = call(*arguments)
            if site.method == "partition":
                key[0] = _key(result)
                return result
            if several and hasattr(result, "__next__"):
                result = list(result)  # as an engine does, within the call (compute-2)
            calls.append([site.component.name, key[0], given, _digest((result, *arguments))])
            return result

        return call if site.method == "build" else noted

    return instrument(application, around)


def _key(key: Any) -> Any:
    try:
        return key_to_json(key)
    except (BadKeyError, TypeError, AttributeError):
        return None


def _digest(values: tuple[Any, ...]) -> str:
    """Return a short text that is the same for values of the same structure."""
    shown = canonical_json([structure_or_kind(value) for value in values])
    return hashlib.blake2b(shown.encode(), digest_size=8).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
