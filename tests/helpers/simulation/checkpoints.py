"""Runs a plan on the server with a checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from wallaroo_reference.checkpoints import blobs, collecting
from wallaroo_reference.options import CheckpointOptions
from wallaroo_reference.serving import checkpointing
from wallaroo_reference.serving.server import Server

from simulation.loop import Loop, Thread
from simulation.peers import Sender
from simulation.plans import Life, Plan
from simulation.runs import DEAD_LETTERS, Run
from simulation.threads import Threads
from simulation.world import Broken
from wallaroo.engine import ServeOptions, Summary
from wallaroo.transport import appending, dead_letter_file, input_log, threads
from wallaroo.transport.skipping import skipping

DIRECTORY = Path("/sim/checkpoint")
_STOPS = 1 / 8  # of the lives, at their first dead letter
_LETTER_BYTES = (1 << 30, 1 << 30, 1 << 30, 1_000, 4_000)


class CheckpointRun(Run):
    """A run of a plan. Subclasses say what is run, and what must be there in the end.

    Attributes:
        fixed: options of the checkpoint that are not left to chance.
        promised: what had arrived before stops that were in order.
        letter_bytes: of dead letters, from which the oldest are deleted.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.fixed: dict[str, Any] = {}
        self.threads = self.machine.threads = Threads(self.machine)
        self.promised: list[bytes] = []
        self._told = 0  # senders of this life that have been told that all is taken
        self._most_told: int | None = None
        self.letter_bytes = self.world.chance("letters").choice(_LETTER_BYTES)

    def serve(self, loop: Loop) -> Server:
        """Serve the application, from the checkpoint, options differ from life to life."""
        chance = self.world.chance("options", self.world.life)
        drawn = CheckpointOptions(
            DIRECTORY,
            checkpoint_interval=chance.choice((0.005, 0.05, 1.0)),
            log_bytes=chance.choice((500, 2_000, 20_000, 1 << 20)),
        )
        leaves_out = self.fixed.get("skip_record")
        options = self.options()
        served = skipping(self.application) if leaves_out else self.application
        return Server(
            served,
            lambda: self.kind(served, on_error=options.on_error, keeps=True),
            options,
            clock=self.world.time_ns,
            checkpoint=replace(drawn, **self.fixed),
            thread=Thread(loop),
        )

    def options(self, isolation: str | None = None) -> ServeOptions:
        """Return how to serve."""
        stops = self.world.chance("on error", self.world.life).random() < _STOPS
        return ServeOptions(
            dead_letters=DEAD_LETTERS,
            dead_letter_bytes=self.letter_bytes,
            isolation=isolation,
            on_error="stop" if stops else "skip",
        )

    def goes_on(self, summary: Summary | None) -> bool:
        """Go on if the first dead letter has ended the process: others do not stop at it."""
        return "--on-error stop" in ((summary and summary.problem) or "")

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Let threads be simulated, and few cells be packed at once, and stored together."""
        small: list[tuple[Any, str, Any]] = [
            (threads, "threading", self.threads.stand_ins),
            (threads, "queue", self.threads.stand_ins),
            (input_log, "threading", self.threads.stand_ins),
            (dead_letter_file, "threading", self.threads.stand_ins),
            (checkpointing, "_SLICE", 0.0),
            (checkpointing, "_RETRY", 0.03),
            (appending, "_RETRY", 0.03),
            (collecting, "_AT_ONCE", 1),
            (collecting, "_LEAST_AGAIN", 1),
            (collecting, "LAST", 0),
            (blobs, "BLOB", 100),
        ]
        with super().around(), contextlib.ExitStack() as stack:
            for module, name, value in small:
                stack.enter_context(mock.patch.object(module, name, value))
            yield

    def live(self, life: Life) -> Summary | None:
        """Run a process, and end its threads with it."""
        self._told, self._most_told = 0, life.told
        try:
            return super().live(life)
        finally:
            self.threads.end()

    def sender_ended(self, sender: Sender) -> None:
        """Count what senders are told: at some number the machine loses its power (frame-4)."""
        self._told += sender.told is not None
        if self._told == self._most_told and not self.world.dead:
            self.world.crash_soon()

    def check(self, life: Life, summary: Summary | None, *, last: bool) -> None:
        """Check how a process has ended, and after the last one all that there is."""
        if self.goes_on(summary):
            return
        if summary is not None and summary.exit_code and not self._may_fail(summary):
            raise Broken(f"a process ended with exit code {summary.exit_code}: {summary.problem}")
        if summary is not None and not summary.exit_code:
            self.promised += self.arrived
        if not last:
            return
        if summary is None:
            raise Broken("the last process died")
        self.check_end()

    def _may_fail(self, summary: Summary) -> bool:
        """Whether a process may end with exit code 1; a stop waits until a disk has room again."""
        told = summary.problem is not None and "given up" not in summary.problem
        return self.machine.failed or (self.machine.troubled and told)

    def check_end(self) -> None:
        """Check all that peers and the disk have in the end."""
        raise NotImplementedError
