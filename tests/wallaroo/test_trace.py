"""What a run did, as values that compare and as canonical JSON."""

import json
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from letters import dead_letter

from wallaroo.findings import Finding, FindingKind
from wallaroo.keys import encode_key
from wallaroo.trace import Ended, Entity, Reason, Trace, sorted_entities
from wallaroo.user_code.failure import Cause, UserFrame

letter = partial(dead_letter, key=("a", 1), error="why\ud800\n")
FINDING = Finding(FindingKind.IMMUTABLE_STATE, "p", "count", "a", (0,), "text")
TRACE = Trace(
    outputs={("q", 0): (b"", b"b"), ("p", 1): (), ("p", 0): (b"\xff",)},
    dead_letters=(letter(),),
    entities=(Entity("part", b"k", 3, ["int", "0x1"]),),
    ended=Ended("on-error", "p", "count", (3, 1), None),
    findings=(FINDING,),
)


def test_dead_1_engines_agree_on_all_but_the_error():
    elsewhere = (UserFrame("app.py", 3, "count"),)
    odd = letter(error="other words", where=elsewhere, causes=(Cause("E", "e", elsewhere),))
    other = Trace(TRACE.outputs, (odd,), TRACE.entities, TRACE.ended)
    assert TRACE.comparable() == other.comparable()
    for changed in (
        letter(error_type="KeyError"),
        letter(lineage=(3, 0)),
        letter(step=None),
        letter(key=None),
        letter(payload=b""),
        letter(reason=Reason.BAD_KEY),
        letter(sink=0),
    ):
        other = Trace(TRACE.outputs, (changed,), TRACE.entities, TRACE.ended)
        assert TRACE.comparable() != other.comparable()


def test_isolation_findings_are_not_compared():
    other = Trace(TRACE.outputs, TRACE.dead_letters, TRACE.entities, TRACE.ended)
    assert other == TRACE
    assert other.comparable() == TRACE.comparable()
    assert other.to_json() != TRACE.to_json()


def test_trace_canonical_json_is_the_same_for_equal_traces():
    text = TRACE.canonical_json()
    assert text.isascii()
    assert json.loads(text) == TRACE.to_json()
    backwards = dict(reversed(TRACE.outputs.items()))
    other = Trace(backwards, TRACE.dead_letters, TRACE.entities, TRACE.ended, TRACE.findings)
    assert other.canonical_json() == text
    assert [(one["pipeline"], one["sink"]) for one in TRACE.to_json()["outputs"]] == [
        ("p", 0),
        ("p", 1),
        ("q", 0),
    ]


@given(st.lists(st.one_of(st.text(), st.binary(), st.integers(), st.tuples(st.integers()))))
def test_trace_entities_are_sorted_by_partition_and_encoded_key(keys):
    entities = [Entity(name, key, 0, None) for key in keys for name in "ba"]
    found = sorted_entities(entities)
    assert [entity.partition for entity in found] == ["a"] * len(keys) + ["b"] * len(keys)
    encoded = [encode_key(entity.key) for entity in found]
    assert encoded[: len(keys)] == sorted(encoded[: len(keys)])
    assert sorted_entities(entities[::-1])[0:1] == found[0:1]
