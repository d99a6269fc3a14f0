"""What goes over the pipe is what the schema and the documents say."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.case import ConformanceCase, WindowSpec
from wallaroo_conformance.cases.catalogue import catalogue
from wallaroo_conformance.cases.counterexamples import stored
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.graph import without_steps
from wallaroo_conformance.cases.operators import BUILDERS, STEPS
from wallaroo_conformance.cases.tour import tour
from wallaroo_conformance.cli.engines import OURS, AdapterError, adapter_command, find_adapter
from wallaroo_conformance.judge.claims import Claims
from wallaroo_conformance.judge.differences import differences
from wallaroo_conformance.judge.oracle import reference_oracle
from wallaroo_conformance.pipe.engine import Patience, PipeEngine
from wallaroo_conformance.pipe.protocol import (
    PROTOCOL,
    SCHEMA,
    ProtocolError,
    capabilities_from,
    capabilities_message,
    case_message,
    from_line,
    to_line,
)

from wallaroo.engine import Capabilities, load_engine
from wallaroo.errors import UnsupportedTopology
from wallaroo.trace import Trace

ROOT = Path(__file__).parents[3]
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
TAKEN = ("dead-letter", "drop")  # what windows.mjs knows to do with late messages
CASES = [*[example.case for example in stored()], *generate(30, 0)]


def test_the_schema_holds_for_what_is_sent() -> None:
    VALIDATOR.check_schema(VALIDATOR.schema)
    VALIDATOR.validate({"type": "hello", "protocol": PROTOCOL})
    VALIDATOR.validate({"type": "hello", "protocol": PROTOCOL, "name": "slow", "seconds": 60})
    cases = [case_message(number, case, {"segment": 2}) for number, case in enumerate(CASES)]
    VALIDATOR.validate(json.loads(to_line({"type": "job", "job": 1, "cases": cases})))
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({"type": "job", "job": "1", "cases": []})
    wrong = next(form for form in cases if form["case"]["steps"])
    del wrong["case"]["steps"][0]["origins"]
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({"type": "job", "job": 1, "cases": [wrong]})


def test_the_schema_holds_for_what_the_worker_answers() -> None:
    sent = [
        {"type": "hello", "protocol": PROTOCOL},
        {"type": "job", "job": 1, "cases": [case_message(0, case, {}) for case in CASES[::9]]},
    ]
    done = subprocess.run(
        [sys.executable, "-m", "wallaroo_conformance.worker", "reference"],
        input=b"".join(map(to_line, sent)),
        capture_output=True,
        check=True,
    )
    answers = [from_line(line) for line in done.stdout.splitlines()]
    kinds = [answer["type"] for answer in answers]
    assert kinds == ["hello", *["trace"] * len(CASES[::9]), "done"]
    for answer in answers:
        VALIDATOR.validate(answer)
        assert json.dumps(answer).isascii()


def test_capabilities_come_back() -> None:
    some = Capabilities(frozenset({"trusting"}), batches=False, order="none", stop="batch")
    back = capabilities_from(capabilities_message(some))
    assert capabilities_message(back) == capabilities_message(some)
    assert (back.live, back.refuses_in_run) == (False, True)
    assert capabilities_from({"unknown": 3}).isolation == {"isolated", "trusting"}
    for wrong in ({"order": "some"}, {"isolation": []}, {"small": 3}, {"batches": "yes"}, 3):
        with pytest.raises(ProtocolError):
            capabilities_from(wrong)


@pytest.mark.parametrize("case", CASES[::5], ids=lambda case: case.canonical_json()[:40])
def test_a_trace_comes_back(case: object) -> None:
    trace = load_engine("reference").run(engine_case(case))
    back = Trace.from_json(json.loads(json.dumps(trace.to_json())))
    assert back.comparable() == trace.comparable()
    assert [letter.order for letter in back.dead_letters] == [
        letter.order for letter in trace.dead_letters
    ]


@pytest.mark.parametrize(
    "form",
    [
        None,
        {},
        {"outputs": [{"pipeline": "first", "sink": True, "outputs": []}]},
        {"outputs": [{"pipeline": "first", "sink": 0, "outputs": ["?"]}]},
        {"outputs": [], "entities": [{"partition": "p", "key": 3, "number": 0, "state": None}]},
        {"outputs": [], "dead_letters": [{"lineage": []}]},
        {"outputs": [], "ended": {"kind": "bored"}},
    ],
)
def test_what_is_no_trace_is_refused(form: object) -> None:
    with pytest.raises(ValueError, match="not a trace"):
        Trace.from_json(form)


def test_the_catalogue_tells_every_operator() -> None:
    told = catalogue()["operators"]
    assert {*STEPS, *BUILDERS} <= {operator["name"] for operator in told}
    assert all(operator["does"] for operator in told if "vectors" in operator)
    shout = next(operator for operator in told if operator["name"] == "shout")
    assert {"message": ["str", "a"], "gives": ["str", "A"]} in shout["vectors"]
    count = next(operator for operator in told if operator["name"] == "only_short")
    assert count["step"] == "only short"
    json.dumps(told)


def test_adapters_are_found_by_name_and_run_where_their_requirements_say(tmp_path: Path) -> None:
    assert find_adapter("bytewax") == OURS / "bytewax_adapter.py"
    assert find_adapter(str(OURS / "naive.py")) == OURS / "naive.py"
    with pytest.raises(AdapterError, match=r"nobody.*beam, bytewax, flink, naive, quix"):
        find_adapter("nobody")
    assert adapter_command(OURS / "naive.py")[0] == [sys.executable, str(OURS / "naive.py")]


def test_an_installed_wheel_has_adapters_and_stored_cases(tmp_path: Path) -> None:
    def done(*words: str, directory: Path = tmp_path) -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
        return subprocess.run(
            [sys.executable, "-m", *words],
            cwd=directory,
            env=environment,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        ).stdout

    done("hatchling", "build", "-t", "wheel", "-d", str(tmp_path), directory=ROOT)
    [wheel] = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    options = ["--no-live", "--cases", "200", "--rules", "compute-1"]
    said = done("wallaroo", "conform", "--adapter", "naive", *options)
    assert "naive: kept: 1 kept" in said
    assert " stored ones before them" in said


def engine_of(command: list[str], tmp_path: Path) -> PipeEngine:
    return PipeEngine(command, tmp_path / "engine.log", patience=Patience())


def tumbling_cases() -> list[ConformanceCase]:
    """Return cases that windows.mjs takes: tumbling windows, and no state behind them."""
    tumbling = itertools.cycle(
        [WindowSpec(delay=delay, late=late) for delay in (0, 5) for late in TAKEN]
    )
    cases = []
    for case in generate(800, 1, simple=0.0):
        kept = without_steps(case, {step.id: step.origins[0] for step in case.stateful()})
        steps = [replace(step, window=step.window and next(tumbling)) for step in kept.steps]
        if any(step.window for step in steps):
            cases.append(replace(kept, steps=tuple(steps), on_error="skip", codec=False))
    return cases


def cases_of_the_tour() -> list[ConformanceCase]:
    return [*tour("any")[::12], *CASES[:40]]


NODE = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")


@pytest.mark.parametrize(
    ("command", "cases", "least"),
    [
        ([sys.executable, str(OURS / "naive.py")], cases_of_the_tour, 1),
        pytest.param(["node", str(OURS / "small.mjs")], cases_of_the_tour, 1, marks=NODE),
        pytest.param(["node", str(OURS / "windows.mjs")], tumbling_cases, 50, marks=NODE),
    ],
    ids=["naive", "JavaScript", "windows in JavaScript"],
)
def test_an_engine_written_from_the_documents_agrees(
    command: list[str], cases: Callable[[], list[ConformanceCase]], least: int, tmp_path: Path
) -> None:
    engine = engine_of(command, tmp_path)
    claims = Claims(engine.capabilities())
    meanings = reference_oracle().ask([claims.adapted(case) for case in cases()])
    given = [meaning for meaning in meanings if claims.beyond(meaning) is None]
    answers = engine.run_many([engine_case(one.case) for one in given])
    engine.close()
    agreed = 0
    for meaning, answer in zip(given, answers, strict=True):
        if isinstance(answer, UnsupportedTopology):
            continue
        assert isinstance(answer, Trace), answer
        assert not differences(*claims.comparable(meaning.trace, answer)), meaning.case
        agreed += 1
    assert agreed >= least
