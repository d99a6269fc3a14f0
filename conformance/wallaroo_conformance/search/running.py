"""Running: runs cases on an engine, in jobs or alone; an exception of the engine is an answer."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from wallaroo.engine import Capabilities, Case, Engine
from wallaroo.errors import UnsupportedTopology
from wallaroo.trace import Trace
from wallaroo.user_code.failure import describe_error
from wallaroo_conformance.cases.either import AnyCase, assemble, engine_case
from wallaroo_conformance.cases.timed.case import TimedCase
from wallaroo_conformance.judge.differences import Crash, CrashError, EngineGoneError, Result

MOST_CASES_A_JOB = 2_048
"""The default. On Spark the cost of a job depends little on the number of its cases."""

_FRAMES = 8  # the innermost frames of a crash's traceback are kept

REFUSED = "refused: "
"""The beginning of `Runner.beyond`'s answer if the engine refuses the application (build-2)."""


class HarnessError(Exception):
    """The check itself has failed: nothing can be said about the engine."""


class Runner:
    """Runs cases on one engine.

    Args:
        engine: the engine.
        job: most cases in one job.
        options: the engine's own thresholds, for every case.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        job: int = MOST_CASES_A_JOB,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.engine = engine
        self.capabilities: Capabilities = engine.capabilities()
        self.job = job
        self.options = dict(options or {})
        self.jobs = 0
        self.cases = 0
        self.seconds_a_job = 0.0  # of the last job of several cases

    def adapted(self, case: AnyCase) -> AnyCase:
        """Return the case in a mode and with thresholds that the engine has."""
        if case.small and not self.capabilities.small:
            case = replace(case, small=False)
        if case.isolation in self.capabilities.isolation:
            return case
        return replace(case, isolation=min(self.capabilities.isolation, default="isolated"))

    def beyond(self, case: AnyCase) -> str | None:
        """Return what the case needs and the engine does not claim, or `None`."""
        can = self.capabilities
        if case.isolation not in can.isolation:
            return f"it has no {case.isolation} mode"
        if isinstance(case, TimedCase) and case.alters and case.isolation == "trusting":
            return "trusting mode is not promised to components that alter what they read"
        if case.batches is not None and not can.batches:
            return "it takes no chosen batches"
        if case.number is not None and case.number > 1 and not can.partitions:
            return "it has one partition only"
        return self.refusal(case)

    def refusal(self, case: AnyCase) -> str | None:
        """Return what the engine says if it refuses the case's application (build-2)."""
        try:
            self.engine.check(assemble(case))
        except UnsupportedTopology as refusal:
            return f"{REFUSED}{refusal}"
        return None

    def run(self, cases: Sequence[AnyCase]) -> list[Result]:
        """Run cases in jobs and return what each gave, in their order.

        Raises:
            HarnessError: the engine gave no list of traces, one for each case.
        """
        results: list[Result] = []
        for start in range(0, len(cases), self.job):
            results += self._run_job(cases[start : start + self.job])
        return results

    def run_alone(self, case: AnyCase) -> Result:
        """Run one case in a job of its own."""
        self.jobs += 1
        self.cases += 1
        try:
            return self._checked(self.engine.run(self._engine_case(case)))
        except HarnessError:
            raise
        except EngineGoneError as error:
            raise HarnessError(str(error)) from None
        except BaseException as error:
            if _is_ours(error):
                raise
            return crash(error)  # it is an engine's answer

    def options_for(self, case: AnyCase) -> dict[str, Any]:
        """Return the options that a case is run with: small thresholds if it wants them."""
        return {**(self.capabilities.small if case.small else {}), **self.options}

    def _engine_case(self, case: AnyCase) -> Case:
        return engine_case(case, options=self.options_for(case))

    def _run_job(self, cases: Sequence[AnyCase]) -> list[Result]:
        if len(cases) == 1:
            return [self.run_alone(cases[0])]
        self.jobs += 1
        self.cases += len(cases)
        built = [self._engine_case(case) for case in cases]
        begun = time.perf_counter()
        try:
            traces = self.engine.run_many(built)
        except EngineGoneError as error:
            raise HarnessError(str(error)) from None
        except BaseException as error:  # one case caused it: run halves to find it
            if _is_ours(error):
                raise
            half = len(cases) // 2
            return self._run_job(cases[:half]) + self._run_job(cases[half:])
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
            return crash(trace)
        if not isinstance(trace, Trace):
            raise HarnessError(
                f"engine {self.engine.name!r} answered with a {type(trace).__name__}, not a Trace"
            )
        return trace


def _is_ours(error: BaseException) -> bool:
    """Whether Ctrl-C was meant for the check: the one of the catalogue's operators has a text."""
    return isinstance(error, KeyboardInterrupt) and not error.args


def crash(error: BaseException) -> Crash:
    """Return what takes the place of a trace when an engine raised."""
    if isinstance(error, CrashError):
        return Crash(str(error), error.report)
    text = f"{type(error).__name__}: {describe_error(error)}"
    refusal = str(error) if isinstance(error, UnsupportedTopology) else ""
    frames = "".join(traceback.format_tb(error.__traceback__)[-_FRAMES:])
    return Crash(text, frames, refusal=refusal)
