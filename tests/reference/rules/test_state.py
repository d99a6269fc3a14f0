"""When an entity comes to be, and what a visit does to it."""

from __future__ import annotations

import collections

import pytest
from small_steps import Seen, first, returns, see, stateful, stateful_multi, whole

import wallaroo


class CountingBuilder:
    def __init__(self, fail=()):
        self.fail = fail

    built = 0

    def build(self):
        type(self).built += 1
        if type(self).built in self.fail:
            raise KeyError("not now")
        return Seen()


def test_state_1_an_entity_is_built_once_when_its_first_message_comes(app, run):
    CountingBuilder.built = 0
    application = app(("to_state_partition", see, CountingBuilder(), "s", first, ["a", "b", "c"]))
    assert CountingBuilder.built == 0
    result = run(application, [b"a", b"a", b"b", b"a"])
    assert CountingBuilder.built == 2
    assert list(result.structures["s"]) == ["a", "b"]


@pytest.mark.parametrize(
    "compute",
    [
        returns((None, False)),
        wallaroo.state_computation(name="raises")(lambda message, state: 1 / 0),
        returns("nonsense"),
    ],
)
def test_state_1_it_exists_whatever_its_first_message_does(app, isolated, compute):
    result = isolated(app(("to_stateful", compute, Seen, "s")), [b"a"])
    ((key, state),) = result.structures["s"].items()
    assert key == ()
    assert state[3] == ["dict", [[["str", "items"], ["list", []]]]]


def test_state_1_an_entity_that_is_built_exists_though_its_message_dies(app, run):
    raises = wallaroo.state_computation(name="raises")(lambda message, state: 1 / 0)
    result = run(app(("to_state_partition", raises, Seen, "s", whole)), [b"a", b"b"])
    assert list(result.structures["s"]) == ["a", "b"]


def test_state_1_a_builder_that_raises_tries_again_with_the_next_message(app, run, letters):
    CountingBuilder.built = 0
    application = app(("to_state_partition", see, CountingBuilder(fail=(1, 2)), "s", whole))
    result = run(application, [b"a", b"a", b"a", b"a"])
    assert letters(result) == [
        ((0,), "see", None, "a", "raised"),
        ((1,), "see", None, "a", "raised"),
    ]
    assert result.dead_letters[0].error_type == "KeyError"
    assert result.output == [b"'a';", b"'aa';"]


def test_state_1_a_builder_that_only_raises_leaves_no_entity(app, run):
    class Never:
        def build(self):
            raise ValueError

    assert run(app(("to_stateful", see, Never(), "s")), [b"a"]).structures == {"s": {}}


def test_state_1_a_state_may_be_none(app, run):
    class Nothing:
        def build(self):
            return None

    compute = wallaroo.state_computation(name="c")(lambda message, state: (repr(state), False))
    result = run(app(("to_stateful", compute, Nothing(), "s")), [b"a", b"b"])
    assert result.output == [b"'None';", b"'None';"]
    assert result.structures == {"s": {(): None}}


class Pair(tuple):
    pass


Named = collections.namedtuple("Named", "output changed")


@pytest.mark.parametrize("result", [("x", True), Named("x", True), Pair(("x", False))])
def test_state_2_a_pair(app, run, result):
    found = run(app(("to_stateful", returns(result), Seen, "s")), [b"a"])
    assert found.dead_letters == []
    assert found.output == [b"'x';"]


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


def test_state_2_a_number_that_cannot_be_shown_is_none(app, run, letters):
    found = run(app(("to_stateful", returns(("x", Unwilling(1))), Seen, "s")), [b"a", b"b"])
    assert [letter[-1] for letter in letters(found)] == ["bad-result"] * 2


def test_state_2_a_numpy_bool_is_none(app, run, letters):
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    for changed in (numpy.True_, numpy.zeros(3)):
        found = run(app(("to_stateful", returns(("x", changed)), Seen, "s")), [b"a"])
        assert [letter.reason for letter in found.dead_letters] == ["bad-result"]


def test_state_3_changed_is_kept(app, run):
    assert run(app(("to_stateful", see, Seen, "s")), [b"a", b"b"]).output == [b"'a';", b"'ab';"]


def test_state_5_none_sends_nothing_and_the_state_is_kept(app, run):
    @stateful
    def every_second(message, state):
        state.items.append(message)
        return ("".join(state.items) if len(state.items) % 2 == 0 else None), True

    @stateful_multi
    def nothing(message, state):
        state.items.append(message)
        return None, True

    result = run(app(("to_stateful", every_second, Seen, "s")), [b"a", b"b", b"c", b"d"])
    assert result.output == [b"'ab';", b"'abcd';"]
    result = run(app(("to_stateful", nothing, Seen, "s")), [b"a", b"b"])
    assert result.output == []
    assert "'b'" in repr(result.structures["s"])


def test_state_7_raising_is_a_dead_letter(app, run, letters):
    @stateful
    def refuse_b(message, state):
        if message == "b":
            raise LookupError("no b")
        state.items.append(message)
        return "".join(state.items), True

    result = run(app(("to_stateful", refuse_b, Seen, "s")), [b"a", b"b", b"c"])
    assert result.output == [b"'a';", b"'ac';"]
    assert letters(result) == [((1,), "refuse_b", None, (), "raised")]
    assert result.dead_letters[0].error_type == "LookupError"


def test_state_8_pipelines_share_entities(add_pipeline, run):
    builder = wallaroo.ApplicationBuilder("app")
    for name in "pq":
        add_pipeline(builder, ("to_state_partition", see, Seen, "s", first), name=name)
    result = run(builder.build(), [b"a1", ("q", b"a2"), ("q", b"b"), b"a3"])
    assert result.outputs == {
        ("p", 0): [b"'a1';", b"'a1a2a3';"],
        ("q", 0): [b"'a1a2';", b"'b';"],
    }


def test_state_9_partitions_of_other_names_share_nothing(app, run):
    result = run(
        app(
            ("to_state_partition", see, Seen, "s", first),
            ("to_state_partition", see, Seen, "t", first),
        ),
        [b"a", b"ab"],
    )
    assert result.output == [b"'a';", b"'aaab';"]
    assert set(result.structures) == {"s", "t"}
