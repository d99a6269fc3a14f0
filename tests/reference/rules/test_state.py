"""When an entity comes to be, and what a visit does to it."""

import pytest
from small_steps import Seen, returns, whole

import wallaroo


def test_state_1_a_state_may_be_none(app, run):
    class Nothing:
        def build(self):
            return None

    compute = wallaroo.state_computation(name="c")(lambda message, state: (repr(state), False))
    result = run(app(("to_stateful", compute, Nothing(), "s")), [b"a", b"b"])
    assert result.output == [b"'None';", b"'None';"]
    assert result.structures == {"s": {(): None}}


class Truth:
    def __bool__(self):
        return True


class Unequal:
    def __eq__(self, other):
        raise ValueError("the truth value of this is ambiguous")

    __hash__ = None


class LyingTuple(tuple):
    def __iter__(self):
        raise OSError("no")

    def __len__(self):
        return 2


@pytest.mark.parametrize(
    ("result", "hint"),
    [
        (None, "return (None, False)"),
        ("x", "return (output, True)"),
        (True, ""),
        (["x", True], "return (output, changed)"),
        ((), "0 items"),
        (("x",), "1 items"),
        (("x", True, 1), "3 items"),
        (("x", 1), "Write: bool(1)"),
        (("x", 0), "Write: bool(0)"),
        (("x", None), "changed is None"),
        (("x", "True"), "changed is a str"),
        (("x", Truth()), "changed is a Truth"),
        (("x", Unequal()), "changed is a Unequal"),
        ((True, "x"), "in the wrong order"),
        ("xy", ""),
        ({"x": 1, "y": 2}, ""),
        (iter([1, True]), ""),
    ],
)
def test_state_2_anything_else_is_a_bad_result(app, run, letters, result, hint):
    found = run(app(("to_state_partition", returns(result), Seen, "s", whole)), [b"a"])
    assert found.output == []
    assert letters(found) == [((0,), "returns", None, "a", "bad-result")]
    assert found.dead_letters[0].error_type is None
    assert hint in found.dead_letters[0].error


def test_state_2_a_tuple_that_lies_harms_nobody_else(app, run):
    lies = returns(LyingTuple(("x", True)))
    found = run(app(("to_stateful", lies, Seen, "s")), [b"a", b"b"])
    assert len(found.output) + len(found.dead_letters) == 2


class Unwilling(int):
    def __repr__(self):
        raise OverflowError

    __eq__ = __repr__
    __hash__ = int.__hash__


def test_state_2_a_number_that_cannot_be_shown_is_no_bool(app, run, letters):
    found = run(app(("to_stateful", returns(("x", Unwilling(1))), Seen, "s")), [b"a", b"b"])
    assert [letter[-1] for letter in letters(found)] == ["bad-result"] * 2


def test_state_2_a_numpy_bool_is_no_bool(app, run, letters):
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    for changed in (numpy.True_, numpy.zeros(3)):
        found = run(app(("to_stateful", returns(("x", changed)), Seen, "s")), [b"a"])
        assert [letter.reason for letter in found.dead_letters] == ["bad-result"]
