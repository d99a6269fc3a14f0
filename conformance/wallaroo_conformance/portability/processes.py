"""Runs an application on the reference in fresh processes, and notes what its calls gave."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

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


class Subject:
    """An application that is loaded afresh for each request: a context manager.

    Args:
        app: its file or module.
        args: its own arguments.
    """

    def __init__(self, app: str, args: Sequence[str]) -> None:
        self.app = app
        self.args = list(args)
        self._parents: dict[tuple[int, int], _Parent] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for parent in self._parents.values():
            parent.end()

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
        which = (hash_seed, parent)
        if which not in self._parents:
            self._parents[which] = _Parent(hash_seed)
        answer = self._parents[which].ask(request)
        if isinstance(answer, str):
            raise PortabilityError(f"{self.app} cannot be run: {answer}")
        return answer


class _Parent:
    """A process that has imported what all runs need, and has a child for each request."""

    def __init__(self, hash_seed: int) -> None:
        # What the application prints goes to a file: a pipe that nobody reads would fill up.
        self._printed = tempfile.NamedTemporaryFile()  # noqa: SIM115 - closed by end()
        self._process = LineProcess(
            [sys.executable, "-m", "wallaroo_conformance.portability.worker"],
            self._printed,
            {**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        )

    def ask(self, request: dict[str, Any]) -> list[Answer] | str:
        """Return the answers of a child to one request, or why there are none."""
        self._process.send(json.dumps(request).encode() + b"\n")
        try:
            answer: list[Answer] | None = json.loads(self._process.line(_TIMEOUT))
        except SilentError:
            return f"it has not answered within {_TIMEOUT:g} s"
        except DiedError as died:
            return str(died)
        if answer is not None:
            return answer
        lines = self._process.tail().strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def end(self) -> None:
        """End the process and its child."""
        self._process.kill()
        self._printed.close()
