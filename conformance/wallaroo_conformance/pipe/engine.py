"""An engine in a process of its own, judged like any other: its faults are its answers.

A process that dies, that says nothing in time, or that says what the protocol does not allow, is
killed with its group and started again. Of the cases without an answer, the first is tried again
alone. If it fails again, this is its answer. Jobs then grow again: each has twice as many cases as
the one before. So an engine that fails on every case is started once for each, and not more often.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from wallaroo.engine import Capabilities, Case, Handle, ServeOptions
from wallaroo.errors import UnsupportedTopology, WallarooError
from wallaroo.topology import Application
from wallaroo.trace import Trace
from wallaroo_conformance.cases.building import GeneratedCase
from wallaroo_conformance.deadline import Deadline
from wallaroo_conformance.judge.differences import CrashError, NoMoreAnswersError
from wallaroo_conformance.pipe.process import DiedError, Fault, LineProcess, SilentError
from wallaroo_conformance.pipe.protocol import (
    PROTOCOL,
    ProtocolError,
    capabilities_from,
    case_message,
    from_line,
    to_line,
)

_MOST_FAULTS = 60
"""Faults until no case is run. After half of them no more cases are looked for: the rest is for
reducing those that have failed."""
_LONG = 5
"""What takes longer than a case alone may take counts as so many faults."""


class EngineCommandError(WallarooError):
    """A command is not an engine: it cannot be started, or does not say hello."""


@dataclass(frozen=True)
class Patience:
    """How long an engine may take, in seconds; being slower is a fault.

    Args:
        start: from its start to its hello.
        case: for one case. A case alone may take three times as long before it counts as hanging.
        more: for each further case of a job.
    """

    start: float = 120.0
    case: float = 10.0
    more: float = 0.05


class PipeEngine:
    """An engine behind a pipe.

    Args:
        command: what to run, as one would type it; or its words.
        log: file that gets what it writes to its standard error.
        patience: how long it may take; its hello may ask for more for a case.
        environment: of its process; `None`: this one's.
        option: how a command line names it; empty: by its command.

    Raises:
        EngineCommandError: it is not an engine.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        log: Path,
        *,
        patience: Patience = Patience(),
        environment: Mapping[str, str] | None = None,
        option: str = "",
    ) -> None:
        self._option = option
        self._command = shlex.split(command) if isinstance(command, str) else list(command)
        if not self._command:
            raise EngineCommandError("an engine's command is empty")
        self.deadline = Deadline()
        """When it is over, no answer is waited for any more."""
        self.reducing = False
        """Whether cases are run to reduce what has failed: then many faults are expected."""
        self._patience = patience
        self._environment = environment
        self._size = 1  # most cases of the next job
        self._faults = 0
        self._last_fault = ""
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log.open("wb")
        self._process: LineProcess | None = None
        self._jobs = 0
        try:
            hello = self._hello()
        except Fault as fault:
            self.close()
            said = f"; it wrote: {fault.tail.strip()}" if fault.tail.strip() else ""
            raise EngineCommandError(
                f"{shlex.join(self._command)} is not an engine: {fault}{said}"
            ) from None
        self.name = str(hello["name"])
        self.version = str(hello.get("version", ""))
        self._capabilities = capabilities_from(hello.get("capabilities", {}))
        self._patience = replace(patience, case=max(patience.case, hello.get("seconds", 0.0)))
        if "seconds" in hello:  # its jobs cost more than their cases
            self._size = sys.maxsize

    @property
    def option(self) -> str:
        """How a command line names it."""
        return self._option or f"--engine-command {shlex.quote(shlex.join(self._command))}"

    @property
    def log(self) -> Path:
        """The file that gets what it writes to its standard error."""
        return Path(self._log.name)

    def capabilities(self) -> Capabilities:
        """Return what its hello claims."""
        return self._capabilities

    def check(self, application: Application) -> None:
        """Refuse nothing: the engine answers a case with a refusal (`refuses_in_run`)."""

    def run(self, case: Case) -> Trace:
        """Run one case that conformance has made.

        Raises:
            CrashError: the engine failed.
            UnsupportedTopology: it refuses the application.
        """
        answer = self.run_many([case])[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def run_many(self, cases: Sequence[Case]) -> list[Trace | Exception]:
        """Run cases; what `run` would raise may take the place of a trace.

        Raises:
            NoMoreAnswersError: it cannot be started any more, or has failed too often, or the time
                is over.
        """
        answers: dict[int, Trace | Exception] = {}
        try:
            self._run_jobs(cases, answers)
        except NoMoreAnswersError as error:
            answered = takewhile(answers.__contains__, count())
            raise NoMoreAnswersError(
                str(error), [answers[number] for number in answered], gone=error.gone
            ) from None
        return [answers[number] for number in range(len(cases))]

    def serve(self, application: Application, options: ServeOptions) -> Handle:
        """Refuse: the protocol knows bounded cases only."""
        raise UnsupportedTopology("stop-1", application.name, "engines behind a pipe do not serve")

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add nothing."""

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.close()
            self._process = None
        self._log.close()

    # -- jobs --------------------------------------------------------------------------------

    def _run_jobs(self, cases: Sequence[Case], answers: dict[int, Trace | Exception]) -> None:
        """Get the answers of all cases.

        Raises:
            NoMoreAnswersError: some have none.
        """
        waiting = [*range(len(cases))]
        while waiting:
            if self.deadline.over:
                raise NoMoreAnswersError("")
            self._end_if_too_faulty()
            group = waiting[: self._size]
            fault = self._job(cases, group, answers)
            waiting[: len(group)] = left = [number for number in group if number not in answers]
            if fault is None:
                self._size = max(self._size, 2 * len(group))
                continue
            self._size = 1
            if left and len(group) == 1:
                answers[waiting.pop(0)] = CrashError(str(fault), fault.tail)
            self._count(fault)

    def _count(self, fault: Fault) -> None:
        self._faults += fault.weight
        self._last_fault = str(fault)

    def _end_if_too_faulty(self) -> None:
        """Let no more cases be run if there were too many faults.

        Raises:
            NoMoreAnswersError: there were.
        """
        if self._faults >= (_MOST_FAULTS if self.reducing else _MOST_FAULTS // 2):
            why = f"{self.name} failed too often, and was given no more; the last time: "
            raise NoMoreAnswersError(why + self._last_fault, gone=self._faults >= _MOST_FAULTS)

    def _job(
        self, cases: Sequence[Case], group: Sequence[int], answers: dict[int, Trace | Exception]
    ) -> Fault | None:
        """Get the answers of a group of cases; return what went wrong, if anything did."""
        self._jobs += 1
        job = self._jobs
        message = {
            "type": "job",
            "job": job,
            "cases": [
                case_message(number, _made_from(cases[number]), cases[number].options)
                for number in group
            ],
        }
        try:
            process = self._ready()
            process.send(to_line(message))
            return self._answers(process, job, group, answers)
        except Fault as fault:
            self._kill()
            return fault
        except NoMoreAnswersError:
            self._kill()
            raise

    def _answers(
        self,
        process: LineProcess,
        job: int,
        group: Sequence[int],
        answers: dict[int, Trace | Exception],
    ) -> Fault | None:
        """Take the answers of a job, until it is done; return how it was too slow, if it was.

        Raises:
            Fault: it is not done as it should be.
        """
        begun = time.monotonic()
        within = self._patience.case + self._patience.more * len(group)
        alone = len(group) == 1
        while True:
            message = self._message(process, within, late=alone)
            kind = message["type"]
            if kind == "done" and message.get("job") == job:
                break
            number = message.get("id")
            if message.get("job") != job or number not in group or number in answers:
                raise Fault(process, f"garbage: an answer that nobody asked for: {message!r:.120}")
            assert isinstance(number, int)
            answers[number] = _answer(message)
            if not alone:
                within = self._patience.case  # it answers case by case: silence counts now
        unanswered = [number for number in group if number not in answers]
        if unanswered:
            raise Fault(process, f"garbage: a job is done with {len(unanswered)} cases unanswered")
        took = time.monotonic() - begun
        if not alone or took <= within:
            return None
        said = f"slow: it answered after {took:.1f} s; a case has {self._patience.case:g} s"
        answers[group[0]] = CrashError(said)
        return Fault(None, said, _LONG)

    def _message(
        self, process: LineProcess, seconds: float, *, late: bool = False
    ) -> dict[str, Any]:
        """Return the next message.

        Args:
            process: the process.
            seconds: the time that it has.
            late: it may take three times as long.

        Raises:
            Fault: there is none.
            NoMoreAnswersError: the check's time is over, and nothing can be blamed on the engine.
        """
        within = min(3 * seconds if late else seconds, self.deadline.left)
        try:
            return from_line(process.line(within))
        except SilentError:
            if within < seconds:
                raise NoMoreAnswersError("") from None
            said = f"hang: no answer within {within:.1f} s"
            raise Fault(process, said, _LONG if late else 1) from None
        except DiedError as died:
            raise Fault(process, f"died: {died}") from None
        except ProtocolError as garbage:
            raise Fault(process, f"garbage: {garbage}") from None

    # -- the process -------------------------------------------------------------------------

    def _ready(self) -> LineProcess:
        """Return a running process.

        Raises:
            NoMoreAnswersError: there is no process, and none can be started.
        """
        if self._process is not None and self._process.has_ended:
            fault = Fault(self._process, "died: it ended when it had nothing to do")
            self._kill()
            self._count(fault)  # no case is to blame
        if self._process is None:
            try:
                self._hello()
            except Fault as fault:
                why = f"{self.name} cannot be started again: {fault}"
                raise NoMoreAnswersError(why, gone=True) from None
        assert self._process is not None
        return self._process

    def _hello(self) -> dict[str, Any]:
        """Start the process and return its hello."""
        try:
            self._process = LineProcess(self._command, self._log, self._environment)
        except OSError as error:
            raise Fault(None, f"it cannot be started: {error}") from None
        self._process.send(to_line({"type": "hello", "protocol": PROTOCOL}))
        message = self._message(self._process, self._patience.start)
        if message["type"] != "hello" or message.get("protocol") != PROTOCOL:
            raise Fault(
                self._process, f"its first line is not a hello of {PROTOCOL}: {message!r:.120}"
            )
        if not isinstance(message.get("name"), str) or not message["name"]:
            raise Fault(self._process, "its hello has no name")
        seconds = message.get("seconds", 0.0)
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            raise Fault(self._process, f"its hello asks for {seconds!r:.40} seconds a case")
        try:
            capabilities_from(message.get("capabilities", {}))
        except ProtocolError as error:
            raise Fault(self._process, str(error)) from None
        return message

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None


def _answer(message: Mapping[str, Any]) -> Trace | Exception:
    """Return the answer in a message; if it cannot be read, the case has failed."""
    kind = message["type"]
    try:
        if kind == "trace":
            return Trace.from_json(message["trace"])
        if kind == "refusal":
            rule, step, why = (str(message[name]) for name in ("rule", "step", "why"))
            return UnsupportedTopology(rule, step, why)
        if kind == "crash":
            return CrashError(str(message["error"]), str(message.get("traceback", "")))
    except (KeyError, ValueError) as error:
        return CrashError(f"garbage: {error}")
    return CrashError(f"garbage: an answer of type {kind!r:.40}")


def _made_from(case: Case) -> Any:
    if not isinstance(case, GeneratedCase):
        raise TypeError("an engine behind a pipe runs the cases of conformance only")
    return case.made_from
