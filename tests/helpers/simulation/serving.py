"""Runs a plan on the server without a checkpoint: each process begins anew."""

from __future__ import annotations

from collections.abc import Sequence

from wallaroo_reference.serving.server import Server

from simulation import application
from simulation.checks import check_dead_letters, check_order, check_outputs
from simulation.loop import Loop, Thread
from simulation.peers import Sender
from simulation.plans import Life, Plan
from simulation.runs import DEAD_LETTERS, Run
from simulation.world import Broken
from wallaroo.engine import ServeOptions, Summary

_IDLE = (None, None, 0.01, 0.05)
"""Seconds of silence after which connections are closed, or never."""


class ServerRun(Run):
    """A run of a plan."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._checked = 0  # bytes of the dead-letter file
        self._idle = self.world.chance("idle").choice(_IDLE)

    def serve(self, loop: Loop) -> Server:
        """Serve the application."""
        return Server(
            self.application,
            lambda: self.kind(self.application),
            ServeOptions(dead_letters=DEAD_LETTERS, idle_timeout=self._idle),
            clock=self.world.time_ns,
            thread=Thread(loop),
        )

    def sender_ended(self, sender: Sender) -> None:
        """Check that what a sender is told is true: everything was processed (frame-4)."""
        stops = self.stopped_at is not None
        if sender.told is None:
            late = self._idle and sender.paused >= self._idle  # just as it was to be closed
            if not (self.world.dead or stops or sender.plan.too_large or late):
                raise Broken("frame-4: a connection was reset that had done nothing wrong")
            return
        wanted = [payload.decode().split()[0] for payload in sender.payloads[: sender.told]]
        if missing := [one for one in wanted if one not in application.seen]:
            raise Broken(f"frame-4: a sender was told that {missing} were taken; they were not")
        quiet = self.world.now - sender.sent_at
        if not (sender.silent or stops or (self._idle and quiet >= self._idle)):
            raise Broken(f"frame-4: a connection was closed that had been quiet for {quiet} s only")

    def waiting(self) -> Sequence[object]:
        """Return the open connections: those that are silent are closed too, if any are."""
        open_now = [one.plan for one in self.senders if one.connected and not one.over]
        return super().waiting() if self._idle is None else open_now

    def check(self, life: Life, summary: Summary | None, *, last: bool) -> None:
        """Check what a process has received, made and delivered."""
        ended = summary is not None
        if last and not ended:
            raise Broken("the last process died")
        if summary is not None and summary.exit_code:
            raise Broken(f"a process ended with exit code {summary.exit_code}: {summary.problem}")
        check_order(application.seen)
        arrived = {payload.decode().split()[0] for payload in self.arrived}
        if ended and (missing := sorted(arrived - set(application.seen))):
            raise Broken(f"stop-1: {missing} had arrived before the stop and were not processed")
        # A connection that cannot be accepted waits for a second, perhaps until the stop.
        if ended and life.stop_after is None and not life.accept_fails:
            self._check_windows()
        check_outputs(self.receivers, self.world.life, application.made, ended=ended)
        self._check_letters(ended=ended)

    def _check_windows(self) -> None:
        """Check that every window has fired: long enough has nothing been sent (time-1)."""
        fired = {one for line in application.made.get("windows", ()) for one in line.split()[2:]}
        windows = application.SOURCES.index("windows")
        numbers = {one.plan.number for one in self.senders if one.plan.source == windows}
        wanted = {one for one in application.seen if int(one.partition(".")[0]) in numbers}
        if missing := sorted(wanted - fired - set(application.failed)):
            raise Broken(f"time-1: the windows of {missing} have not fired")

    def _check_letters(self, *, ended: bool) -> None:
        text = self.letters()
        before, added = text[: self._checked], text[self._checked :]
        self._checked = len(text)
        if added and before and not before.endswith(b"\n"):
            if not added.startswith(b"\n"):
                raise Broken("dead-1: a line begins in the middle of one that a crash has cut")
            added = added[1:]
        check_dead_letters(added, application.failed, ended=ended)
