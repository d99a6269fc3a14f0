"""For tests of load tests: runs that are made up, as a perfect run has them; Locust's page."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from receiving import eventually
from wallaroo_loadgen.common import measure
from wallaroo_loadgen.common.config import RunConfig
from wallaroo_loadgen.common.measure import Timeline
from wallaroo_loadgen.control.result import Result

LOCUSTFILE = Path(__file__).parents[2] / "loadgen" / "locustfile.py"

GOOD = {
    "scheduled": 100,
    "sent": 100,
    "expected": 100,
    "received": 100,
    "distinct": 100,
    "missing": 0,
    "repeated": 0,
    "reordered": 0,
    "unmatched": 0,
    "early": 0,
    "held_up": 0,
    "held_back": 0,
    "unanswered": 0,
    "sinks_closed": 0,
}


@cache  # a summary goes through all classes of a histogram, and a search asks for many
def _measured(micros: tuple[int, ...]) -> tuple[dict[str, Any], str]:
    hist = measure.histogram()
    measure.record(hist, np.array(micros, dtype=np.int64))
    return measure.summary(hist), measure.encode(hist)


def result(
    latency: Sequence[int],
    lateness: Sequence[int] = (50,),
    own: Sequence[int] | None = None,
    **changes: Any,
) -> Result:
    """Return a run with these values in µs; `counts` are changes to a perfect run's."""
    measured = {
        "latency": _measured(tuple(latency)),
        "lateness": _measured(tuple(lateness)),
        "own_lateness": _measured(tuple(lateness if own is None else own)),
    }
    settings: dict[str, Any] = {
        "label": "x",
        "config": RunConfig("echo", (("h", 1),), duration=8.0, warmup=1.0).to_json(),
        "started": "2026-01-01T00:00:00+00:00",
        **{name: dict(summary) for name, (summary, _) in measured.items()},
        "histograms": {name: text for name, (_, text) in measured.items()},
        "timeline": Timeline(10**9, 10).to_json(),
        "rates": {"offered": 10.0, "sent": 10.0, "owed": 10.0, "received": 10.0},
        "busy": {},
    }
    counts = {**GOOD, **changes.pop("counts", {})}
    return Result(**{**settings, "counts": counts, **changes})


def locusts_stats(port: int) -> dict[str, Any]:
    """Return what Locust's page knows of its test; nothing while it does not listen."""
    with (
        contextlib.suppress(OSError),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/stats/requests") as answer,
    ):
        return dict(json.load(answer))
    return {}


@contextmanager
def locusts_page(port: int, options: str, *, state: str = "ready", log: Path | None = None):
    """Start Locust with a page at this port; wait until its test has this state."""
    program = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--web-port", str(port)]
    with contextlib.ExitStack() as stack:
        errors = subprocess.DEVNULL if log is None else stack.enter_context(log.open("w"))
        command = [*program, *options.split()]
        process = stack.enter_context(subprocess.Popen(command, stderr=errors))
        try:
            eventually(lambda: locusts_stats(port).get("state") == state)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)
