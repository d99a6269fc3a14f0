"""Runs a plan on a served engine, life after life."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.serving.server import Server

from simulation import application, bounds
from simulation.disk import File
from simulation.loop import Loop
from simulation.machine import Machine, running
from simulation.peers import Receiver, Sender
from simulation.plans import Life, Plan
from simulation.world import Broken, Crash, World
from wallaroo.engine import Summary
from wallaroo.errors import WallarooError
from wallaroo.transport import dead_letter_file, edges
from wallaroo.transport.sink import TCPSink

APPLICATIONS = tuple([application.build(windows) for windows in application.WINDOWS])
DEAD_LETTERS = Path("/sim/dead-letters.jsonl")

_LEAST = 0.2  # seconds after which a life is stopped, if its senders are done
_LONGEST = 20.0  # and if they are not, something hangs
_LOOK = 0.05
_QUIET = 0.2  # seconds before a stop in which nothing is sent: time alone makes things due
_BETWEEN = 0.1  # seconds, at most, until a process is started again
_SmallSink = partial(TCPSink, limit=6000)  # full after a few outputs


class Run:
    """A run of a plan. Subclasses say how the engine is served and what must hold.

    Attributes:
        longest_stop: seconds that a stop may take: nobody is away for more than one.
        crashes: lives that ended in a crash.
        isolated: the engine runs in `isolated` mode.
        stopped_at: when this life was told to stop; `None`: it was not.
        world: afterwards, what happened.
    """

    longest_stop = 5.0

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.crashes = 0
        self.stopped_at: float | None = None
        self.world = World(plan.seed)
        self.machine = Machine(self.world)
        self.senders = [self._sender(one) for one in plan.sendings]
        self.receivers = {
            sink: Receiver(
                self.world,
                self.machine.network,
                address,
                [one for one in plan.troubles if one.sink == number],
            )
            for number, (sink, address) in enumerate(application.OUT.items())
        }
        self.isolated = self.world.chance("isolation").random() < 0.3
        self.application = self.world.chance("application").choice(APPLICATIONS)
        self.kind: type[Compiled] | type[Interpreter] = Interpreter if self.isolated else Compiled
        self.arrived: list[bytes] = []  # before the stop of this life

    def run(self) -> int:
        """Run it, and return how many crashes there were.

        Raises:
            Broken: a promise was broken.
        """
        application.pass_time = self.world.pass_time
        silent = contextlib.redirect_stderr(io.StringIO())  # the addresses of each life
        with running(self.machine), self.around(), silent:
            lives = [*self.plan.lives, Life()]
            for life in lives:
                application.forget()
                self.arrived.clear()
                summary = self.live(life)
                self.machine.crash(power=life.power)
                if self.machine.lost:
                    break
                if self.goes_on(summary) and life is lives[-1]:
                    lives.append(Life())
                self.check(life, summary, last=life is lives[-1])
                most = 4.0 if life in lives[-2:] else _BETWEEN  # no disk is full then
                self.world.settle(
                    self.world.chance("pause", self.world.life).uniform(most / 2, most)
                )
        return self.crashes

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Let sinks be full after a few outputs, and dead-letter files after a few letters."""
        sinks = mock.patch.object(edges, "TCPSink", _SmallSink)
        with sinks, mock.patch.object(dead_letter_file, "_FILES", 1 << 20):
            yield

    def serve(self, loop: Loop) -> Server:
        """Serve the application."""
        raise NotImplementedError

    def waiting(self) -> Sequence[object]:
        """Return what the engine has not come to the end of: connections that are open."""
        open_now = [one for one in self.senders if one.connected and not one.over]
        return [one.plan for one in open_now if one.plan.half_closes or not one.done]

    def sender_ended(self, sender: Sender) -> None:
        """Check how a sender's connection has ended (frame-4)."""

    def goes_on(self, summary: Summary | None) -> bool:
        """Whether a process has said how the next one gets further than it did."""
        return False

    def check(self, life: Life, summary: Summary | None, *, last: bool) -> None:
        """Check what there is after a life.

        Args:
            life: its plan.
            summary: what the process said in the end; `None`: it died.
            last: it was the last one.

        Raises:
            Broken: a promise was broken.
        """
        raise NotImplementedError

    def letters(self) -> bytes:
        """Return what is in the dead-letter file, behind what is in the rotated ones."""
        folder, name = self.machine.disk.folder_of(str(DEAD_LETTERS))
        rotated = sorted([one for one in folder.names if one.startswith(f"{name}.")])
        files = [folder.names[one] for one in (*rotated, name) if one in folder.names]
        *before, last = [bytes(file.data) for file in files if isinstance(file, File)] or [b""]
        # A rotated file whose sync has failed may end in half a line: readers see it by itself.
        return b"".join([data.removesuffix(b"\n") + b"\n" for data in before]) + last

    # -- inside ------------------------------------------------------------------------------------

    def _sender(self, plan: Any) -> Sender:
        name = application.SOURCES[plan.source]
        chance = self.world.chance("payloads", plan.number)
        payloads = [
            f"{plan.number}.{index} {chance.choice('abcdefgh')} {name} {kind} "
            f"{'x' * chance.randint(0, 40)}"
            for index, kind in enumerate(plan.frames)
        ]
        return Sender(
            self.world,
            self.machine.network,
            plan,
            application.IN[name],
            [payload.encode() for payload in payloads],
            self.sender_ended,
        )

    def live(self, life: Life) -> Summary | None:
        """Run a process, and return what it said in the end; `None`: it died."""
        self.machine.begin(life)
        self.stopped_at = None
        for sender in self.senders:
            if sender.plan.life == self.world.life:
                self.world.beside(sender.plan.after, sender.start)
        loop: Loop | None = None
        small = contextlib.ExitStack()
        try:
            small.enter_context(bounds.drawn(self.world.chance("bounds", self.world.life)))
            loop = Loop(self.machine)
            server = self.serve(loop)
            if life.stop_after is not None:
                self.world.at(life.stop_after, self._in_life(lambda: self._stop(server)))
            began = self.world.now
            self.world.at(_LEAST, self._in_life(lambda: self._stop_when_sent(server, began)))
            loop.run_forever()
            loop.run_until_complete(asyncio.sleep(0))
            if loop.errors:
                raise Broken(f"the event loop met {loop.errors}")
            if self.stopped_at is not None and self.world.now - self.stopped_at > self.longest_stop:
                raise Broken("stop-1: a stop went on though there was nothing to wait for")
            return server.wait(0)
        except Crash:
            self.crashes += 1
            return None
        except WallarooError as error:
            self._not_started(error)
            return None
        finally:
            if loop is not None:
                loop.end()
            small.close()

    def _not_started(self, error: WallarooError) -> None:
        if self.machine.troubled:
            return
        if self.machine.disk.gaps and "damaged" in str(error):
            self.machine.lost = (
                True  # a later write outlived an earlier one: a person has to decide
            )
            return
        raise Broken(f"a process cannot start: {type(error).__name__}: {error}") from error

    def _in_life(self, event: Callable[[], None]) -> Callable[[], None]:
        """Return an event that does not happen if this life is over by then."""
        life = self.world.life

        def happen() -> None:
            if self.world.life == life and not self.world.dead:
                event()

        return happen

    def _stop_when_sent(self, server: Server, began: float) -> None:
        """Stop the server once nothing is to come."""
        if not (waiting := self.waiting()):
            self.world.at(_QUIET, self._in_life(lambda: self._stop(server)))
        elif self.world.now - began < _LONGEST:
            again = self._in_life(lambda: self._stop_when_sent(server, began))
            self.world.at(_LOOK, again)
        else:
            raise Broken(f"the engine has not come to the end of {waiting}")

    def _stop(self, server: Server) -> None:
        self.stopped_at = self.world.now
        for sender in self.senders:
            if sender.connected and not sender.over and sender.plan.breaks_at is None:
                self.arrived += sender.payloads[: sender.whole()]
        self.world.at(4 * self.longest_stop, self._in_life(self._hangs))
        server.stop()

    def _hangs(self) -> None:
        raise Broken("stop-1: a stop has no end")
