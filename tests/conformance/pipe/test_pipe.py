"""Engines in processes of their own: what they do wrong is blamed on one case, and told apart."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from receiving import eventually
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.case import ConformanceCase, Input
from wallaroo_conformance.cases.counterexamples import stored
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.judge.differences import Crash, CrashError, NoMoreAnswersError
from wallaroo_conformance.pipe.engine import EngineCommandError, Patience, PipeEngine
from wallaroo_conformance.search.budget import Budget

from wallaroo.engine import load_engine
from wallaroo.errors import UnsupportedTopology
from wallaroo.trace import Trace

FAULTY = [sys.executable, str(Path(__file__).with_name("faulty_engine.py"))]
WORKER = [sys.executable, "-m", "wallaroo_conformance.worker"]
PATIENCE = Patience(case=1.0, more=0.0)
HELLO = '{"type": "hello", "protocol": "wallaroo-engine/1", "name": "slow", "seconds": "long"}'

Start = Callable[..., PipeEngine]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    engines: list[PipeEngine] = []

    def started(*command: str, patience: Patience = PATIENCE) -> PipeEngine:
        engines.append(PipeEngine(command, tmp_path / "engine.log", patience=patience))
        return engines[-1]

    yield started
    for engine in engines:
        engine.close()


def cases(*payloads: str) -> list[Any]:
    return [
        engine_case(ConformanceCase(inputs=(Input(0, payload.encode()),))) for payload in payloads
    ]


def outputs(answer: object) -> object:
    return answer.outputs["first", 0] if isinstance(answer, Trace) else answer


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ("die", r"^died: it ended with exit 7$"),
        ("hang", r"^hang: no answer within 3\.0 s$"),
        ("slow", r"^slow: it answered after \d+\.\d s; a case has 1 s$"),
        ("garbage", r"^garbage: a line that is not JSON .*Traceback"),
        ("nothing", r"^garbage: a job is done with 1 cases unanswered$"),
        ("stranger", r"^garbage: an answer that nobody asked for"),
        ("no trace", r"^garbage: not a trace"),
        ("crash", r"^ValueError: no$"),
    ],
)
def test_what_goes_wrong_is_told_apart_and_blamed_on_its_case(
    start: Start, payload: str, said: str
) -> None:
    answers = start(*FAULTY).run_many(cases("a", payload, "b", "c"))
    wrong = answers.pop(1)
    assert [outputs(one) for one in answers] == [(b"a\n",), (b"b\n",), (b"c\n",)]
    assert isinstance(wrong, CrashError)
    assert re.search(said, str(wrong)), wrong


@pytest.mark.parametrize("order", ["--at-the-end", "--backwards"])
def test_jobs_begin_small_again_until_one_case_is_to_blame(start: Start, order: str) -> None:
    given = [f"{number}" for number in range(11)]
    given[7] = "die"
    answers = start(*FAULTY, order, patience=Patience()).run_many(cases(*given))
    wrong = answers.pop(7)
    assert isinstance(wrong, CrashError)
    del given[7]
    assert [outputs(one) for one in answers] == [(f"{text}\n".encode(),) for text in given]


def test_no_case_is_blamed_for_a_process_that_has_ended_before_it(start: Start) -> None:
    others = psutil.Process().children()  # a broker of other tests, for example
    engine = start(*FAULTY, "--once")
    for payload in ("a", "b"):
        [answer] = engine.run_many(cases(payload))
        assert outputs(answer) == (f"{payload}\n".encode(),)
        ended = [one for one in psutil.Process().children() if one not in others]
        psutil.wait_procs(ended, timeout=60)


def test_faults_count_over_all_jobs(start: Start) -> None:
    engine = start(*FAULTY)
    answers = [answer for _ in range(15) for answer in engine.run_many(cases("die", "die"))]
    assert [type(answer) for answer in answers] == [CrashError] * 30
    with pytest.raises(NoMoreAnswersError, match=r"faulty failed too often, .* ended with exit 7"):
        engine.run_many(cases("a"))


def test_an_engine_that_hangs_on_every_case_is_soon_given_up(start: Start) -> None:
    engine = start(*FAULTY, "--hangs", patience=Patience(case=0.1, more=0.0))
    report = check_engine(engine, Check(counterexamples=None))
    assert report.supported == 6
    [failure] = report.failures
    assert isinstance(failure.actual, Crash)
    assert failure.actual.error == "hang: no answer within 0.3 s"
    assert "failed too often" in report.problems[0]
    assert report.cases <= 12


def test_build_2_a_refusal_is_no_crash(start: Start) -> None:
    engine = start(*FAULTY)
    [answer] = engine.run_many(cases("refuse"))
    assert isinstance(answer, UnsupportedTopology)
    assert (answer.rule, answer.step, answer.reason) == ("state-1", "count", "no state")
    with pytest.raises(UnsupportedTopology, match="no state"):
        engine.run(cases("refuse")[0])


def test_a_hello_says_what_it_claims(start: Start) -> None:
    engine = start(*FAULTY)
    can = engine.capabilities()
    assert (engine.name, engine.version, can.stop, can.order) == ("faulty", "3", "none", "total")
    assert can.isolation == {"isolated"}
    assert can.refuses_in_run
    assert not can.live


def script(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["/nowhere/engine"], "cannot be started"),
        (script("raise SystemExit('out of order')"), "with exit 1.*out of order"),
        (script("print('hi', flush=True); input()"), "not JSON"),
        (script('print(\'{"type": "hello"}\', flush=True); input()'), "not a hello"),
        (script(f"print('{HELLO}', flush=True); input()"), "asks for 'long' seconds a case"),
    ],
    ids=["absent", "ends", "talks", "another protocol", "no time"],
)
def test_a_command_that_is_no_engine(start: Start, command: list[str], said: str) -> None:
    with pytest.raises(EngineCommandError, match=said):
        start(*command)


def test_a_hello_may_ask_for_more_time(start: Start) -> None:
    none = Patience(case=0.0, more=0.0)
    [answer] = start(*FAULTY, "--patient", patience=none).run_many(cases("a"))
    assert outputs(answer) == (b"a\n",)


def test_what_it_started_ends_with_it(start: Start) -> None:
    engine = start(*FAULTY, "--child")
    engine.run_many(cases("die"))  # by then it has told its child
    first = int(engine.log.read_text().split()[1])
    engine.close()
    eventually(lambda: not _is_running(first))


def _is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != "zombie"
    except psutil.NoSuchProcess:
        return False


def test_a_check_survives_a_faulty_engine_and_stores_how_to_replay(
    start: Start, tmp_path: Path
) -> None:
    engine = start(*FAULTY)
    check = Check(Budget(40), counterexamples=None, fail_fast=True)
    report = check_engine(engine, check)
    assert report.failures
    assert not report.problems
    assert report.versions["faulty"] == "3"
    assert report.option == f"--engine-command {shlex.quote(shlex.join(FAULTY))}"


def test_the_reference_means_the_same_through_the_pipe(start: Start) -> None:
    given = [example.case for example in stored()]
    engine, reference = start(*WORKER, "reference", patience=Patience()), load_engine("reference")
    built = [engine_case(case) for case in given]
    for case, answer in zip(built, engine.run_many(built), strict=True):
        assert isinstance(answer, Trace)
        assert answer.comparable() == reference.run(case).comparable()


def test_what_user_code_prints_does_not_get_into_the_protocol(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "printing.py"
    script.write_text(
        "import os, sys\n"
        "from wallaroo.engine import load_engine\n"
        "from wallaroo_conformance.worker import serve\n"
        "class Printing(type(load_engine('reference'))):\n"
        "    def run(self, case):\n"
        "        print('to whom it may concern')\n"
        "        os.write(1, b'and past Python\\n')\n"
        "        assert sys.stdin.read() == ''\n"
        "        return super().run(case)\n"
        "serve(Printing())\n"
    )
    engine = start(sys.executable, str(script))
    [answer] = engine.run_many(cases("a"))
    assert outputs(answer) == (b"a\n",)
    engine.close()
    assert engine.log.read_text().splitlines() == ["to whom it may concern", "and past Python"]


def test_a_job_is_run_at_once_by_an_engine_that_can_and_a_crash_is_one_cases(
    start: Start, tmp_path: Path
) -> None:
    script = tmp_path / "together.py"
    script.write_text(
        "from wallaroo.engine import load_engine\n"
        "from wallaroo.errors import UnsupportedTopology\n"
        "from wallaroo_conformance.worker import serve\n"
        "class Together(type(load_engine('reference'))):\n"
        "    seconds = 60\n"
        "    def run_many(self, cases):\n"
        "        payloads = [record.payload for case in cases for record in case.records]\n"
        "        print(*payloads)\n"
        "        if b'bad' in payloads:\n"
        "            raise ValueError('a job fails as a whole')\n"
        "        answers = [super(Together, self).run(case) for case in cases]\n"
        "        refusal = UnsupportedTopology('state-1', 'count', 'no state')\n"
        "        return [refusal if p == b'no' else a for p, a in zip(payloads, answers)]\n"
        "    def run(self, case):\n"
        "        return self.run_many([case])[0]\n"
        "serve(Together())\n"
    )
    engine = start(sys.executable, str(script), patience=Patience())
    answers = engine.run_many(cases("a", "no", "bad", "c"))
    assert [outputs(one) for one in (answers[0], answers[3])] == [(b"a\n",), (b"c\n",)]
    assert isinstance(answers[1], UnsupportedTopology)
    assert "a job fails as a whole" in str(answers[2])
    engine.close()
    jobs = ["b'a' b'no' b'bad' b'c'", "b'a' b'no'", "b'bad' b'c'", "b'bad'", "b'c'"]
    assert engine.log.read_text().splitlines() == jobs
