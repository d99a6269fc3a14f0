"""Running: runs cases on an engine, in jobs or alone; an exception of the engine is an answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from wallaroo.engine import Capabilities, Case, Engine
from wallaroo.errors import UnsupportedTopology
from wallaroo.trace import Trace
from wallaroo_conformance.cases.building import assemble, engine_case
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.deadline import Deadline
from wallaroo_conformance.judge.differences import Crash, NoMoreAnswersError, Result, readable
from wallaroo_conformance.pipe.engine import PipeEngine
from wallaroo_conformance.search.budget import MOST_CASES_A_JOB

REFUSED = "refused: "
"""The beginning of `Runner.refusal`'s answer (build-2)."""


class HarnessError(Exception):
    """The check itself has failed: nothing can be said about the engine."""


class _JobError(Exception):
    """A job of several cases has failed as a whole."""


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Let an engine log no warning of what a case is made to do, and no user has written."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        yield
    finally:
        logging.disable(before)


class Runner:
    """Runs cases on one engine.

    Args:
        engine: the engine.
        job: most cases in one job.
        options: the engine's own thresholds, for every case.
        deadline: when it is over, no further job begins; `None`: there is none.
    """

    def __init__(
        self,
        engine: Engine,
        job: int = MOST_CASES_A_JOB,
        options: Mapping[str, Any] | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self.engine = engine
        self._deadline = deadline or Deadline()
        if isinstance(engine, PipeEngine):
            engine.deadline = self._deadline
        self.capabilities: Capabilities = engine.capabilities()
        self.job = job
        self.options = dict(options or {})
        self.cases = 0
        self.seconds_a_job = 0.0  # of the last job of several cases
        self.given_up = ""
        """Why the engine was given no more cases; empty: it was not given up."""
        self._gone = False

    @property
    def ended(self) -> bool:
        """Whether no case can be run any more: the time is over, or the engine has gone."""
        return self._gone or self._deadline.over

    @contextmanager
    def reducing(self) -> Iterator[None]:
        """Inside, many cases are expected to fail one after the other, and no engine is given up.

        It is given up all the same when it has gone.
        """
        pipe = self.engine if isinstance(self.engine, PipeEngine) else None
        if pipe is not None:
            pipe.reducing = True
        try:
            yield
        finally:
            if pipe is not None:
                pipe.reducing = False

    def refusal(self, case: ConformanceCase) -> str | None:
        """Return what the engine says if it refuses the case's application (build-2)."""
        try:
            with _no_warnings():
                self.engine.check(assemble(case))
        except UnsupportedTopology as refusal:
            return f"{REFUSED}{refusal}"
        return None

    def run(self, cases: Sequence[ConformanceCase]) -> list[Result]:
        """Run cases in jobs and return what each gave, in their order.

        There are fewer results than cases if the time is over or the engine answers no more.

        Raises:
            HarnessError: the engine gave no list of traces, one for each case.
        """
        results: list[Result] = []
        jobs = [cases[start : start + self.job] for start in range(0, len(cases), self.job)]
        jobs.reverse()
        while jobs and not self.ended:
            job = jobs.pop()
            try:
                results += [self._run_case(job[0])] if len(job) == 1 else self._run_job(job)
            except NoMoreAnswersError as error:
                self.given_up = self.given_up or str(error)
                self._gone = self._gone or error.gone
                self.cases -= len(job) - len(error.answers)
                results += [self._checked(trace) for trace in error.answers]
                break
            except _JobError:  # one case caused it: run halves to find it
                half = len(job) // 2
                jobs += [job[half:], job[:half]]
        return results

    def run_alone(self, case: ConformanceCase) -> Result:
        """Run one case in a job of its own.

        Raises:
            HarnessError: the engine gave no trace, or answers no more.
        """
        try:
            return self._run_case(case)
        except NoMoreAnswersError as error:
            raise HarnessError(str(error)) from None

    def options_for(self, case: ConformanceCase) -> dict[str, Any]:
        """Return the options that a case is run with: small thresholds if it wants them."""
        return {**(self.capabilities.small if case.small else {}), **self.options}

    def _engine_case(self, case: ConformanceCase) -> Case:
        return engine_case(case, options=self.options_for(case))

    def _run_case(self, case: ConformanceCase) -> Result:
        self.cases += 1
        try:
            return self._checked(self.engine.run(self._engine_case(case)))
        except (HarnessError, NoMoreAnswersError):
            raise
        except BaseException as error:
            if _is_ours(error):
                raise
            return Crash.of(error)  # it is an engine's answer

    def _run_job(self, cases: Sequence[ConformanceCase]) -> list[Result]:
        """Run several cases in one job.

        Raises:
            _JobError: the engine failed, on whichever case.
        """
        self.cases += len(cases)
        built = [self._engine_case(case) for case in cases]
        begun = time.perf_counter()
        try:
            traces = self.engine.run_many(built)
        except NoMoreAnswersError:
            raise
        except BaseException as error:
            if _is_ours(error):
                raise
            raise _JobError from error
        self.seconds_a_job = time.perf_counter() - begun
        if not isinstance(traces, list) or len(traces) != len(cases):
            given = len(traces) if isinstance(traces, list) else type(traces).__name__
            raise HarnessError(
                f"engine {self.engine.name!r} was given {len(cases)} cases "
                f"and answered with {given} traces"
            )
        return [self._checked(trace) for trace in traces]

    def _checked(self, trace: object) -> Result:
        if isinstance(trace, Exception):
            return Crash.of(trace)
        if not isinstance(trace, Trace):
            return Crash(f"it answered with a {type(trace).__name__}, not a Trace")
        return readable(trace)


def _is_ours(error: BaseException) -> bool:
    """Whether Ctrl-C was meant for the check: the one of the catalogue's operators has a text."""
    return isinstance(error, KeyboardInterrupt) and not error.args
