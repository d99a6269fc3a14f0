"""Runs a plan on the reference engine's server, life after life, and checks what it promises."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from simulation import application, plans
from simulation.calls import Machine, installed, running
from simulation.checks import check_dead_letters, check_order, check_outputs
from simulation.disk import File
from simulation.loop import Loop, Thread
from simulation.peers import Receiver, Sender
from simulation.plans import Life, Plan, smaller
from simulation.world import Broken, Crash, World
from wallaroo.engine import ServeOptions, Summary
from wallaroo.transport import edges
from wallaroo.transport.sink import TCPSink
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.serving.server import Server

DEAD_LETTERS = Path("/sim/dead-letters.jsonl")
_LIFE = 0.3  # seconds after which a life is stopped once its senders are done
_LONGEST = 20.0  # and if they are not
_LOOK = 0.05
_BETWEEN = 0.1  # seconds, at most, until a process is started again

__all__ = ["Run", "drawn", "run", "smaller"]

_application = application.build()
_SmallSink = partial(TCPSink, limit=6000)  # full after a few outputs


def drawn(seed: int) -> Plan:
    """Return the plan of a seed."""
    return plans.drawn(
        seed, durable=False, sources=len(application.SOURCES), sinks=len(application.SINKS)
    )


def run(plan: Plan) -> int:
    """Run a plan and return how many crashes there were.

    Raises:
        Broken: the server broke a promise.
    """
    one = Run(plan)
    one.run()
    return one.crashes


class Run:
    """A run of a plan.

    Attributes:
        crashes: lives that ended in a crash.
        world: afterwards, what happened.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.crashes = 0
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
        self._checked = 0  # bytes of the dead-letter file
        self._isolated = self.world.chance("isolation").random() < 0.3

    def run(self) -> None:
        """Run it.

        Raises:
            Broken: a promise was broken.
        """
        application.pass_time = self.world.pass_time
        with running(self.machine), mock.patch.object(edges, "TCPSink", _SmallSink):
            for life in self.plan.lives:
                application.forget()
                self._begin(life)
                summary = self._live(life)
                self.machine.crash(power=life.power and summary is None)
                self.world.settle(self.world.chance("pause", self.world.life).uniform(0, _BETWEEN))
                self._check(summary, life, last=life is self.plan.lives[-1])

    # -- inside ------------------------------------------------------------------------------------

    def _sender(self, plan: Any) -> Sender:
        name = application.SOURCES[plan.source]
        chance = self.world.chance("payloads", plan.number)
        payloads = [
            f"{plan.number}.{index} {chance.choice('abc')} {name} {kind} {'x' * chance.randint(0, 40)}"
            for index, kind in enumerate(plan.frames)
        ]
        return Sender(
            self.world,
            self.machine.network,
            plan,
            application.IN[name],
            [payload.encode() for payload in payloads],
            self._acknowledged,
        )

    def _acknowledged(self, sender: Sender) -> None:
        """Check that what a sender is told is true: everything was processed (frame-4)."""
        wanted = [payload.decode().split()[0] for payload in sender.payloads[: sender.told]]
        missing = [one for one in wanted if one not in application.seen]
        if missing:
            raise Broken(f"frame-4: a sender was told that {missing} were taken; they were not")

    def _begin(self, life: Life) -> None:
        self.machine.begin(life)
        for sender in self.senders:
            if sender.plan.life == self.world.life:
                self.world.at(sender.plan.after, sender.start)

    def _live(self, life: Life) -> Summary | None:
        """Run a process, and return what it said in the end; `None`: it crashed."""
        loop: Loop | None = None
        try:
            loop = Loop(self.machine)
            server = self._serve(loop)
            self._arrived: list[str] = []
            if life.stop_after is not None:
                self.world.at(life.stop_after, lambda: self._stop_now(server))
            self.world.at(_LIFE, lambda: self._stop(server, self.world.now, self.world.life))
            loop.run_forever()
            loop.run_until_complete(asyncio.sleep(0))
            if loop.errors:
                raise Broken(f"the event loop met {loop.errors}")
            return server.wait(0)
        except Crash:
            return None
        finally:
            self.crashes += self.world.dead
            if loop is not None:
                loop.end()

    def _serve(self, loop: Loop) -> Server:
        kind = Interpreter if self._isolated else Compiled
        options = ServeOptions(dead_letters=DEAD_LETTERS)
        return Server(
            _application,
            lambda: kind(_application),
            options,
            clock=self.world.time_ns,
            thread=Thread(loop),
        )

    def _stop(self, server: Server, began: float, life: int) -> None:
        """Stop the server once no sender has anything to send."""
        if self.world.life != life or self.world.dead:
            return
        waiting = [one for one in self.senders if one.connected and not one.over]
        if any(one.plan.half_closes or not one.done for one in waiting):
            if self.world.now - began < _LONGEST:
                self.world.at(_LOOK, lambda: self._stop(server, began, life))
                return
            raise Broken(f"the engine has not taken what {len(waiting)} senders sent")
        self._stop_now(server)

    def _stop_now(self, server: Server) -> None:
        if self.world.dead:
            return
        for sender in self.senders:
            if sender.connected and not sender.over and sender.plan.breaks_at is None:
                sent = sender.payloads[: sender.whole()]
                self._arrived += [payload.decode().split()[0] for payload in sent]
        server.stop()

    def _check(self, summary: Summary | None, life: Life, *, last: bool) -> None:
        if last and summary is None:
            raise Broken("the last process died")
        if summary is not None and summary.exit_code:
            raise Broken(f"a process ended with exit code {summary.exit_code}: {summary.problem}")
        ended = summary is not None
        check_order(application.seen)
        if ended and (missing := sorted(set(self._arrived) - set(application.seen))):
            raise Broken(f"stop-1: {missing} had arrived before the stop and were not processed")
        if ended and life.stop_after is None:
            self._check_windows()
        check_outputs(self.receivers, self.world.life, application.made, ended=ended)
        text = self._letters()
        added = text[self._checked :]
        if added and text[: self._checked][-1:] not in (b"", b"\n"):
            if added[:1] != b"\n":
                raise Broken("dead-1: a line begins in the middle of one that a crash has cut")
            added = added[1:]
        check_dead_letters(added, application.failed, ended=ended)
        self._checked = len(text)

    def _check_windows(self) -> None:
        """Check that every window has fired: long enough has nothing been sent (time-1)."""
        fired = {one for line in application.made.get("windows", ()) for one in line.split()[2:]}
        windows = [one for one in self.senders if application.SOURCES[one.plan.source] == "windows"]
        wanted = {f"{one.plan.number}." for one in windows}
        missing = [
            one
            for one in application.seen
            if one[: one.index(".") + 1] in wanted and one not in application.failed
        ]
        if missing := sorted(set(missing) - fired):
            raise Broken(f"time-1: the windows of {missing} have not fired")

    def _letters(self) -> bytes:
        """Return what is in the dead-letter file."""
        try:
            node = self.machine.disk.find(str(DEAD_LETTERS))
        except FileNotFoundError:
            return b""
        assert isinstance(node, File)
        return bytes(node.data)
