"""Listed keys, and pipelines that share a state partition."""

import itertools

import pytest
from builder_parts import (
    Counts,
    CountsBuilder,
    Doubling,
    SlottedBuilder,
    begun,
    count,
    refused,
    source,
)
from small_steps import first

from wallaroo import ApplicationBuilder


def keyed(keys, *, u64=False):
    method = "to_state_partition_u64" if u64 else "to_state_partition"
    return lambda: getattr(begun(), method)(count, Counts, "s", first, keys).done().build()


@pytest.mark.parametrize(
    "keys",
    ["abc", b"abc", {"a", "b"}, {"a": 1}, iter(["a"]), itertools.count(), 3, {"a": 1}.keys()],
)
def test_build_1_keys_are_a_finite_sequence(keys):
    refused(
        keyed(keys),
        "application 'app', pipeline 'p', to_state_partition(count)",
        "partition_keys is a list, tuple or range of keys",
        "Write: list(",
    )


@pytest.mark.parametrize("keys", [["a", "b", "a"], [(1, ("x",)), (1, ("x",))], [0, 1, 0]])
def test_build_1_keys_do_not_repeat(keys):
    refused(keyed(keys), "pipeline 'p', to_state_partition(count)", "step 'count it'", "repeats ")


def deep_key():
    key = ()
    for _ in range(5_000):
        key = (key,)
    return key


@pytest.mark.parametrize("key", [deep_key(), 10**5_000], ids=["deep", "long"])
def test_build_1_keys_that_cannot_be_shown_do_not_repeat_either(key):
    refused(keyed([key, key]), "pipeline 'p', to_state_partition(count)", "partition_keys repeats ")


def test_route_2_listed_keys_of_like_value_and_other_type_are_different():
    keys = ["1", b"1", 1, (1,), ("1",), (), ((),), ""]
    assert keyed(keys)().partition["s"].keys == tuple(keys)


@pytest.mark.parametrize("key", [True, None, 1.0, ["a"], (1, [2]), "x" * 65536])
def test_route_2_a_listed_key_is_a_key(key):
    refused(keyed(["a", key]), "pipeline 'p', to_state_partition(count)", "partition_keys holds")


@pytest.mark.parametrize("key", [-1, 2**64, "a", b"a", (1,), True])
def test_route_5_a_listed_64_bit_key_is_one(key):
    refused(keyed([0, key], u64=True), "to_state_partition_u64(count)", "partition_keys holds")


COUNTS_BUILDER = CountsBuilder(1)


def shared(one, other):
    """Two pipelines that say what they do of partition ``s``."""

    def build():
        builder = ApplicationBuilder("app")
        for name, say in (("p", one), ("q", other)):
            say(builder.new_pipeline(name, source())).done()
        return builder.build()

    return build


def says(state=Counts, keys=None, *, u64=False):
    method = "to_state_partition_u64" if u64 else "to_state_partition"
    return lambda builder: getattr(builder, method)(count, state, "s", first, keys)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (says(), says()),
        (says(COUNTS_BUILDER), says(COUNTS_BUILDER)),
        (says(CountsBuilder(2)), says(CountsBuilder(2))),
        (says(SlottedBuilder(2)), says(SlottedBuilder(2))),
        (says(keys=["a", "b"]), says(keys=["b", "a"])),
        (says(keys=[0, 1], u64=True), says(keys=[1, 0], u64=True)),
        (says(keys=[0, 1]), says(keys=range(2))),
        (says(keys=[]), says()),
    ],
)
def test_state_8_pipelines_that_agree_share_a_partition(one, other):
    application = shared(one, other)()
    assert [part.name for part in application.partitions] == ["s"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (says(Counts), says(Doubling)),
        (says(Counts), says(CountsBuilder())),
        (says(CountsBuilder(1)), says(CountsBuilder(2))),
        (says(SlottedBuilder(1)), says(SlottedBuilder(2))),
        (says(CountsBuilder(1)), says(SlottedBuilder(1))),
        (says(), says(keys=["a"])),
        (says(keys=["a"]), says(keys=["a", "b"])),
        (says(keys=["1"]), says(keys=[1])),
        (says(keys=[1]), says(keys=[(1,)])),
        (says(), says(u64=True)),
        (says(keys=[1]), says(keys=[1], u64=True)),
        (says(), lambda builder: builder.to_stateful(count, Counts, "s")),
    ],
)
def test_state_8_pipelines_that_disagree_do_not_build(one, other):
    for build in (shared(one, other), shared(other, one)):
        refused(
            build,
            "application 'app', pipeline 'q'",
            "state partition 's' is shared with step 'count it' of pipeline 'p'",
            "they disagree",
        )


def test_state_8_within_one_pipeline_too():
    refused(
        lambda: says(Doubling)(says(Counts)(begun())),
        "shared with step 'count it' of pipeline 'p'",
    )


def test_state_8_very_deep_keys_agree():
    shared(says(keys=[deep_key(), "a"]), says(keys=["a", deep_key()]))()


class Incomparable:
    def __eq__(self, other):
        raise ValueError("ambiguous")

    __hash__ = None


def test_state_8_builders_whose_attributes_cannot_be_compared_disagree():
    refused(
        shared(says(CountsBuilder(Incomparable())), says(CountsBuilder(Incomparable()))),
        "they disagree",
    )
