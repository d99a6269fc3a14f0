"""Cases: as JSON and back, as an application built in two ways, and as readable Python."""

from __future__ import annotations

import json
import re
import sys
import types
from typing import Any

import pytest
from wallaroo_conformance.cases.building import assemble, build
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.either import engine_case
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.readable import readable
from wallaroo_conformance.cases.reading import BadCaseError, case_from_json

from wallaroo.engine import load_engine
from wallaroo.trace import Trace

REFERENCE = load_engine("reference")
CASES = generate(150, 7)


def test_a_case_survives_its_json_form() -> None:
    for case in CASES:
        text = case.canonical_json()
        assert case_from_json(json.loads(text)) == case
        assert case_from_json(json.loads(text)).canonical_json() == text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "wallaroo-case/9"}, "format"),
        ({"cuts": [], "age": 1}, "^no case of this version: it knows no 'age' and no 'cuts'; find"),
        ({"pipelines": []}, "0 pipelines"),
        ({"pipelines": [{"decoder": "eval", "steps": [], "sinks": []}]}, "no decoder is called"),
        ({"inputs": [[4, "a", 0]]}, "a frame for pipeline 4"),
        ({"batches": [0]}, "less than 1"),
        ({"number": 0}, "0 partitions"),
        ({"inputs": [[0, "\u20ac", 0]]}, "no case"),
    ],
)
def test_what_is_no_case_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadCaseError, match=says):
        case_from_json({**ConformanceCase().to_json(), **change})


def test_a_case_without_one_of_its_fields_is_refused() -> None:
    form = ConformanceCase().to_json()
    del form["small"]
    with pytest.raises(BadCaseError, match=r"^no case: 'small' is missing$"):
        case_from_json(form)


def test_built_and_assembled_applications_are_the_same() -> None:
    for case in CASES:
        one, other = build(case), assemble(case)
        assert [type(node) for node in one.nodes] == [type(node) for node in other.nodes]
        assert one.consumers == other.consumers
        assert [part.name for part in one.partitions] == [part.name for part in other.partitions]
        assert [part.keys for part in one.partitions] == [part.keys for part in other.partitions]
        traces = [REFERENCE.run(engine_case(case, application)) for application in (one, other)]
        assert traces[0].comparable() == traces[1].comparable()


def test_a_readable_case_gives_the_same_trace() -> None:
    for case in CASES:
        module = types.ModuleType("written_by_a_user")
        sys.modules[module.__name__] = module  # what it defines is pickled by reference
        exec(compile(readable(case, "a case"), "case.py", "exec"), module.__dict__)
        assert _nameless(REFERENCE.run(module.CASE)) == _nameless(REFERENCE.run(engine_case(case)))


def _nameless(trace: Trace) -> str:
    """Return a trace without the modules that its states' classes are defined in."""
    form = json.dumps(trace.comparable(), sort_keys=True)
    return re.sub(r"(wallaroo_conformance\.cases\.operators\.\w+|written_by_a_user)\.", "", form)
