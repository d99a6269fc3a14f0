"""A check ends with its time, however an engine fails; no process runs here, and no clock."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.counterexamples import stored
from wallaroo_conformance.judge.differences import Crash
from wallaroo_conformance.pipe import engine as pipe
from wallaroo_conformance.pipe.engine import PipeEngine
from wallaroo_conformance.pipe.process import DiedError, SilentError
from wallaroo_conformance.report.showing import failure_text
from wallaroo_conformance.search.budget import Budget, Check
from wallaroo_conformance.search.search import Search
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Case
from wallaroo.trace import Trace

SECONDS = 40.0
START = 0.3  # seconds until a process has said hello
ANSWER = 2.0  # seconds for each answer
JOB = 10  # most cases at once


class World:
    """Its time goes by while processes start and answer, and while someone waits for them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.starts = 0
        self.fault = ""
        """What processes do on every case: ``dies`` or ``hangs``; else they answer, wrongly."""


class Process:
    """Takes the place of `LineProcess`."""

    world: World
    has_ended = False

    def __init__(self, *_arguments: object) -> None:
        self.world.starts += 1
        self._answers: Iterator[dict[str, Any]] = iter(())

    def send(self, line: bytes) -> None:
        message = json.loads(line)
        self._answers = self._answered(message)

    def _answered(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if message["type"] == "hello":
            capabilities = {"isolation": ["isolated"]}
            yield {**message, "name": "fake", "capabilities": capabilities}
            return
        for case in message["cases"]:
            yield {"type": "trace", "job": message["job"], "id": case["id"], "trace": {}}
        yield {"type": "done", "job": message["job"]}

    def line(self, seconds: float) -> bytes:
        answer = next(self._answers)
        answers = answer["type"] == "trace"
        if answers and self.world.fault == "dies":
            raise DiedError("it ended with exit 7")
        takes = {"trace": ANSWER, "hello": START}.get(answer["type"], 0.0)
        if answers and self.world.fault == "hangs":
            takes = math.inf
        self.world.now += min(takes, seconds)
        if takes > seconds:
            self._answers = chain([answer], self._answers)
            raise SilentError
        return json.dumps(answer).encode()

    def tail(self) -> str:
        return ""

    def kill(self) -> None:
        pass

    close = kill


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    Process.world = World()
    monkeypatch.setattr(pipe, "LineProcess", Process)
    return Process.world


def checked(world: World, log: Path, *, stored_cases: int = 40, job: int = 100) -> Search:
    engine = PipeEngine("fake", log)
    world.now = 0.0
    check = Check(Budget(None, SECONDS), job=job)
    search = Search(engine, check, clock=lambda: world.now)
    search.replay([example.case for example in stored()][:stored_cases])
    search.search()
    search.explain()
    engine.close()
    return search


@pytest.mark.parametrize("job", [1, 7, 100])
def test_an_engine_that_dies_on_every_case_is_given_up_and_its_failures_are_reduced(
    world: World, tmp_path: Path, job: int
) -> None:
    world.fault = "dies"
    search = checked(world, tmp_path / "log", job=job)
    assert world.now < SECONDS
    assert search.findings.generated == 30
    assert "failed too often, and was given no more" in search.runner.given_up
    failure = search.findings.failures[0]
    assert failure.case == ConformanceCase()
    assert not failure.cut_short


def test_a_check_of_an_engine_that_hangs_on_every_case_ends_with_its_time(
    world: World, tmp_path: Path
) -> None:
    world.fault = "hangs"
    search = checked(world, tmp_path / "log")
    assert world.now <= SECONDS
    [failure] = search.findings.failures
    assert isinstance(failure.actual, Crash)
    assert failure.actual.error.startswith("hang: no answer within")
    assert failure.cut_short
    assert "the check ended before the case was reduced" in failure_text(failure, "fake")
    assert search.problems == ["the time was over when 1 of 40 stored cases had been run"]


def test_a_quarter_of_the_time_is_kept_for_reducing(world: World, tmp_path: Path) -> None:
    search = checked(world, tmp_path / "log", stored_cases=0, job=JOB)
    assert world.now <= SECONDS
    run, tried = search.findings.supported, search.runner.cases
    assert abs(run * ANSWER - SECONDS * 3 / 4) <= ANSWER  # no case is cut
    assert run < tried
    assert search.problems == []


def test_time_that_nothing_needs_afterwards_is_for_the_search() -> None:
    now = 0.0

    class Slow(ReferenceEngine):
        def run_many(self, cases: Iterable[Case]) -> list[Trace]:
            nonlocal now
            now += 1.0
            return super().run_many(cases)

    check = Check(Budget(None, 8.0), job=JOB)
    search = Search(Slow(), check, clock=lambda: now)
    search.search()
    assert now == 8.0
