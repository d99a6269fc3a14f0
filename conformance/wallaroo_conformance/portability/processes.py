"""An application in fresh processes: run on the reference, with what its calls gave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from wallaroo.errors import WallarooError
from wallaroo.trace import InputLog
from wallaroo_conformance.portability.worker import log_to_json

NOON = 1_700_000_000.0  # what the clock shows
LATER = NOON + 40 * 86_400 + 3_723.5  # another day of another month, hour, minute and second
_TIMEOUT = 600.0  # seconds that a process may take

Answer: TypeAlias = dict[str, Any]
"""What the worker says of one input: ``trace``, ``findings``, ``calls``, ``errors``."""


class PortabilityError(WallarooError):
    """The application could not be looked at."""


@dataclass(frozen=True)
class Subject:
    """An application as fresh processes load it: its file or module, and its own arguments."""

    app: str
    args: Sequence[str]


def answers(
    subject: Subject, logs: Sequence[InputLog], *, clock: float = NOON, hash_seed: int = 0
) -> list[Answer]:
    """Return what the application gives for inputs, one after the other in a fresh process.

    Raises:
        PortabilityError: it failed.
    """
    request = {
        "app": subject.app,
        "args": list(subject.args),
        "clock": clock,
        "logs": [log_to_json(log) for log in logs],
    }
    done = subprocess.run(
        [sys.executable, "-m", "wallaroo_conformance.portability.worker"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise PortabilityError(f"{subject.app} cannot be run: {last}")
    found: list[Answer] = json.loads(done.stdout)
    return found
