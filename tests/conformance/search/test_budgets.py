"""A budget of time, Ctrl-C, and what is told while a search goes on."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from io import StringIO
from itertools import count
from threading import Event

import pytest
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.cli.commands import register_conform
from wallaroo_conformance.cli.conform import stopped_by_ctrl_c
from wallaroo_conformance.cli.output import progress_shown
from wallaroo_conformance.judge.results import BROKEN, INCOMPLETE
from wallaroo_conformance.search.budget import Budget
from wallaroo_conformance.search.search import Progress, Search
from wallaroo_reference.engine import ReferenceEngine


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    register_conform(parser.add_subparsers())
    return parser.parse_args(["conform", *arguments])


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("2m", 120), ("1h", 3_600), ("0.5s", 0.5), ("90", 90)]
)
def test_a_time_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert parsed("--budget", text).budget == seconds


@pytest.mark.parametrize("text", ["", "m", "0s", "-1s", "1d", "1e9s", "nans", "infs", "²s", "2 m"])
def test_what_is_no_time_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(f"--budget={text}")
    assert "as 90s, 2m or 1h" in capsys.readouterr().err


def test_a_budget_of_cases_and_seconds_ends_with_whichever_comes_first() -> None:
    search = Search(ReferenceEngine(), Check(Budget(20, 3_600.0)))
    search.search()
    assert search.findings.generated == 20
    check = Check(Budget(1_000_000, 1.0))
    search = Search(ReferenceEngine(), check, clock=count(0.0, 0.1).__next__)
    search.search()
    assert 0 < search.findings.generated < 1_000


def test_time_that_is_left_says_how_many_cases_come_next() -> None:
    assert Budget(None, 60.0).left(0, 0.0) is None
    assert Budget(None, 60.0).left(200, 10.0, 50.0) == 1_000  # 20 cases a second, and 50 s left
    assert Budget(600, 60.0).left(200, 10.0, 50.0) == 400
    assert Budget(None, 60.0).left(200, 59.99, 0.01) == 8
    assert Budget(None, 60.0).left(200, 60.0, 0.0) == 0


class _Stopping(Event):
    """Is set when it has been asked so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_a_check_that_is_stopped_reports_what_it_has_found(no_state: ReferenceEngine) -> None:
    check = Check(Budget(10_000), counterexamples=None, stop=_Stopping(2))
    report = check_engine(no_state, check)
    assert report.generated == 256
    [failure] = report.failures
    assert failure.rule.startswith("state") or failure.case is not None
    assert report.exit_code == BROKEN
    assert report.problems == ("interrupted: this is what was found until then",)


def test_a_check_that_is_stopped_without_a_failure_is_incomplete() -> None:
    check = Check(Budget(10_000), counterexamples=None, stop=_Stopping(2))
    report = check_engine(ReferenceEngine(), check)
    assert report.exit_code == INCOMPLETE
    assert any(law.status == "kept" for law in report.laws)


def test_a_check_that_is_stopped_before_it_begins_is_incomplete() -> None:
    report = check_engine(ReferenceEngine(), Check(Budget(10), stop=_Stopping(0)))
    assert report.exit_code == INCOMPLETE
    assert report.problems == ("interrupted: this is what was found until then",)


def test_without_a_way_to_stop_ctrl_c_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "search", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_engine(ReferenceEngine(), Check(Budget(10), counterexamples=None))


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """What Python does at Ctrl-C; a session of Spark in this process changes it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_asks_first_and_is_raised_then(capsys: pytest.CaptureFixture[str]) -> None:
    with stopped_by_ctrl_c() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        assert "Ctrl-C again" in capsys.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("planned", "planned_seconds", "said"),
    [
        (100, None, "25 of 100 cases,"),
        (None, 120.0, "25 cases, 30 of 120 s,"),
        (100, 120.0, "25 of 100 cases, 30 of 120 s,"),
    ],
)
def test_progress_says_what_is_spent_of_the_budget(
    monkeypatch: pytest.MonkeyPatch, planned: int | None, planned_seconds: float | None, said: str
) -> None:
    monkeypatch.setattr("wallaroo_conformance.cli.output._PLAIN_EVERY", 0.0)
    stream = StringIO()
    with progress_shown("mine", stream) as show:
        show(Progress("searching", 25, 30.0, Budget(planned, planned_seconds), 0))
    assert f"mine: searching, {said} 0 failing" in stream.getvalue()
