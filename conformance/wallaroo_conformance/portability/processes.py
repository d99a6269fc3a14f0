"""Runs an application on the reference in fresh processes, and notes what its calls gave."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias

from wallaroo.errors import WallarooError
from wallaroo.trace import InputLog
from wallaroo_conformance.pipe.process import DiedError, LineProcess, SilentError
from wallaroo_conformance.portability.worker import log_to_json

NOON = 1_700_000_000.0  # what the clock shows
LATER = NOON + 40 * 86_400 + 3_723.5  # another day of another month, hour, minute and second
_TIMEOUT = 600.0  # seconds that a request may take

Answer: TypeAlias = dict[str, Any]
"""The worker's answer for one input: ``trace``, ``findings``, ``calls``, ``errors``."""


class PortabilityError(WallarooError):
    """The application could not be looked at."""


class Subject(ExitStack):
    """An application that is loaded afresh for each request: a context manager.

    Args:
        app: its file or module.
        args: its own arguments.
    """

    def __init__(self, app: str, args: Sequence[str]) -> None:
        super().__init__()
        self.app = app
        self.args = list(args)
        self._parents: dict[tuple[int, int], LineProcess] = {}

    def answers(
        self,
        logs: Sequence[InputLog],
        *,
        clock: float = NOON,
        chance: int = 0,
        hash_seed: int = 0,
        parent: int = 0,
    ) -> list[Answer]:
        """Return what the application gives for inputs, one after the other in a fresh process.

        Args:
            logs: the inputs.
            clock: what the clock shows, seconds since 1970.
            chance: decides what is random; it begins anew with each input.
            hash_seed: PYTHONHASHSEED.
            parent: which of the processes that the fresh one may be a child of. Children of two
                parents have their objects at other addresses, children of one at the same.

        Raises:
            PortabilityError: it failed.
        """
        request = {
            "app": self.app,
            "args": self.args,
            "clock": clock,
            "chance": chance,
            "logs": [log_to_json(log) for log in logs],
        }
        process = self._parent(hash_seed, parent)
        process.send(json.dumps(request).encode() + b"\n")
        try:
            answer: list[Answer] | None = json.loads(process.line(_TIMEOUT))
        except SilentError:
            problem = f"it has not answered within {_TIMEOUT:g} s"
        except DiedError as died:
            problem = str(died)
        else:
            if answer is not None:
                return answer
            lines = process.tail().strip().splitlines()
            problem = lines[-1] if lines else "it said nothing"
        raise PortabilityError(f"{self.app} cannot be run: {problem}")

    def _parent(self, hash_seed: int, number: int) -> LineProcess:
        """Return a process that has imported what all runs need, and has a child for each."""
        if (hash_seed, number) not in self._parents:
            # What the application prints goes to a file: a pipe that nobody reads would fill up.
            printed = self.enter_context(tempfile.NamedTemporaryFile())  # noqa: SIM115 - it is one
            process = LineProcess(
                [sys.executable, "-m", "wallaroo_conformance.portability.worker"],
                printed,
                {**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            )
            self.callback(process.kill)  # and its child
            self._parents[hash_seed, number] = process
        return self._parents[hash_seed, number]
