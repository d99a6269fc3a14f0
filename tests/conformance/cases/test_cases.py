"""Cases: as JSON and back, refused by what is wrong with them, and as readable Python."""

from __future__ import annotations

import json
import re
import sys
import types
from typing import Any

import pytest
from wallaroo_conformance.cases.building import assemble, build, engine_case
from wallaroo_conformance.cases.case import ConformanceCase, Input, SourceSpec, WindowSpec
from wallaroo_conformance.cases.composing import graph, row, step
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.operators import EVENT_TIMES, KEYS, Trait
from wallaroo_conformance.cases.readable import module_text
from wallaroo_conformance.cases.reading import BadCaseError, case_from_json

from wallaroo.engine import load_engine
from wallaroo.trace import Trace

REFERENCE = load_engine("reference")
CASES = generate(300, 7)
PLAIN = row(step("count"), inputs=(Input(payload=b"a"),)).to_json()
TIMED = graph(step("texts", window=WindowSpec()), inputs=(Input(payload=b"a 1 m"),)).to_json()


def test_a_case_survives_its_json_form() -> None:
    for case in CASES:
        text = case.canonical_json()
        assert case_from_json(json.loads(text)) == case
        assert case_from_json(json.loads(text)).canonical_json() == text


@pytest.mark.parametrize(
    ("way", "value", "message"),
    [
        (["format"], "wallaroo-case/9", "format"),
        (["age"], 1, "no case of this version: it knows no 'age'; find"),
        (["sources"], [], "no case: it has no source"),
        (["partitions"], [], "no case: 0 state partitions; there are 1 to"),
        (["sources", 0, "decoder"], "eval", "no case: no decoder is called 'eval'"),
        (["sources", 0, "event_time"], "x", "no case: no event time is called 'x'"),
        (["sources", 0, "id"], 3, "no case: a source's number is 0 to 2, and its own, not 3"),
        (["sinks", 0, "encoder"], "x", "no case: no encoder is called 'x'"),
        (["sinks", 0, "origin"], 9, "no case: a sink of node 9"),
        (["sinks", 0, "origin"], 0, "no case: in the builder's form a pipeline has its sinks at"),
        (["steps", 0, "operator"], "x", "no case: no operator is called 'x'"),
        (["steps", 0, "operator"], "by_letter", "no case: the builder's form has no 'by_letter'"),
        (["steps", 0, "operator"], "texts", "no case: step 3: an aggregation has a window"),
        (["steps", 0, "origins"], [4], "no case: step 3 takes messages from 1 of the nodes"),
        (["steps", 0, "origins"], [], "no case: step 3 takes messages from 1 of the nodes"),
        (["steps", 0, "id"], 0, "no case: a step's number is 3 or more, and its own, not 0"),
        (["steps", 0, "partition"], 1, "no case: state partition 1 of 1"),
        (["steps", 0, "route"], "x", "no case: no partition function is called 'x'"),
        (["steps", 0, "route"], None, "no case: step 3 has no partition function"),
        (["partitions", 0, "shape"], "x", "no case: no shape is called 'x'"),
        (["partitions", 0, "builder"], "x", "no case: no builder is called 'x'"),
        (["partitions", 0, "keys"], "x", "no case: no list of keys for a single partition"),
        (["partitions", 0, "expire_after"], -1, "no case: its application cannot be built"),
        (["inputs", 0, 0], 1, "no case: a record of source 1, which there is not"),
        (["inputs", 0, 1], "\u20ac", "no case: UnicodeEncodeError"),
        (["inputs", 0, 2], -1, "no case: an arrival time is an int of 0 or more, not -1"),
        (["inputs", 0, 3], "noise", "no case: no record is called 'noise'"),
        (["batches"], [0], "no case: a batch of less than 1"),
        (["number"], 0, "no case: 0 partitions"),
        (["form"], "letter", "no case: no form is called 'letter'"),
        (["form"], "pipelines", "no case: 'count' is a state computation of the builder's form"),
        (["isolation"], "x", "no case: no isolation is called 'x'"),
        (["on_error"], "x", "no case: no on_error is called 'x'"),
        (["small"], 1, "no case: small is true or false, not 1"),
    ],
)
def test_what_is_wrong_with_a_case_is_said(way: list[Any], value: Any, message: str) -> None:
    refused(PLAIN, way, value, message)


def test_windows_that_cannot_be_built_are_refused() -> None:
    refused(TIMED, ["steps", 0, "window", "size"], -1, "no case: its application cannot be built")


def refused(form: Any, way: list[Any], value: Any, message: str) -> None:
    form = json.loads(json.dumps(form))
    place = form
    for name in way[:-1]:
        place = place[name]
    place[way[-1]] = value
    with pytest.raises(BadCaseError, match=f"^{message}"):
        case_from_json(form)


def test_a_case_without_one_of_its_fields_is_refused() -> None:
    form = ConformanceCase().to_json()
    del form["small"]
    with pytest.raises(BadCaseError, match=r"^no case: 'small' is missing$"):
        case_from_json(form)


def test_cases_share_an_application_unless_a_component_keeps_something() -> None:
    one, other = row(step("count")), row(step("count"), number=3)
    assert assemble(one) is assemble(other) is not build(one)
    for decoder in ("Reused", "text"):
        kept = row(decoder=decoder)
        assert (assemble(kept) is assemble(kept)) == (decoder == "text")


def test_a_readable_case_gives_the_same_trace() -> None:
    for case in CASES[::5]:
        module = types.ModuleType("written_by_a_user")
        sys.modules[module.__name__] = module  # what it defines is pickled by reference
        exec(compile(module_text(case, "a case"), "case.py", "exec"), module.__dict__)
        assert _nameless(REFERENCE.run(module.CASE)) == _nameless(REFERENCE.run(engine_case(case)))


def _nameless(trace: Trace) -> str:
    """Return a trace without the modules that its states' classes are defined in."""
    form = json.dumps(trace.comparable(), sort_keys=True)
    return re.sub(r"(wallaroo_conformance\.cases\.operators\.\w+|written_by_a_user)\.", "", form)


def test_a_component_that_alters_is_seen_wherever_a_case_has_it() -> None:
    [key] = [name for name in KEYS if KEYS.has(name, Trait.FINDING)]
    [time] = [name for name in EVENT_TIMES if EVENT_TIMES.has(name, Trait.FINDING)]
    assert not row(step("remember", route="by_letter")).alters
    assert row(step("remember", route=key)).alters
    assert graph(step(key)).alters
    assert ConformanceCase((SourceSpec(event_time=time),)).alters


def test_the_first_marked_message_and_others_raise_what_engines_catch() -> None:
    inputs = [Input(payload=f"a 0 {text}".encode()) for text in ("u", "1u", "2u", "3u")]
    case = graph(step("texts", window=WindowSpec()), inputs=inputs)
    raised = [letter.error_type for letter in REFERENCE.run(engine_case(case)).dead_letters]
    assert raised == ["ValueError", "TypeError", "StopIteration", "KeyError"]


def test_dead_3_a_mark_with_a_q_behind_it_ends_the_run() -> None:
    inputs = [Input(payload=f"a 0 {text}".encode()) for text in ("m", "uQ", "m")]
    case = graph(step("texts", window=WindowSpec()), inputs=inputs)
    ended = REFERENCE.run(engine_case(case)).ended
    assert ended is not None
    assert (ended.kind, ended.lineage, ended.error_type) == ("exit", (1,), "SystemExit")
