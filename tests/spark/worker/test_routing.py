"""A state partition's keys: judged, numbered, and what is remembered of them."""

import pytest
from wallaroo_spark.worker.routing import Keys

from wallaroo.components import state_builder_of
from wallaroo.judging import DeadLetterError
from wallaroo.keys import encode_key, partition_number
from wallaroo.topology import StatePartition
from wallaroo.trace import Reason


def keys(listed=None, *, u64=False, partitions=7):
    return Keys(StatePartition("p", state_builder_of(dict), listed, u64), partitions)


def test_route_2_keys_that_are_equal_for_a_dict_are_remembered_apart():
    judge = keys()
    for key in ("1", b"1", 1, (1,), 0):
        expected = encode_key(key), partition_number(key, 7)
        assert judge.judge(key) == judge.judge(key) == expected
    for key in (True, False, 1.0, None, (True,)):
        with pytest.raises(DeadLetterError) as caught:
            judge.judge(key)
        assert caught.value.reason is Reason.BAD_KEY
    assert judge.known[int][1] == judge.judge(1)
    assert bool not in judge.known


def test_route_3_an_unknown_key_is_not_remembered():
    judge = keys(("a",))
    with pytest.raises(DeadLetterError) as caught:
        judge.judge("b")
    assert caught.value.reason is Reason.UNKNOWN_KEY
    assert list(judge.known[str]) == []
    assert judge.judge("a")[0] == encode_key("a")


def test_what_is_remembered_is_bounded():
    judge = keys(partitions=1)
    for number in range((1 << 16) + 10):
        judge.judge(number)
    judge.judge("long" * 1000)
    assert len(judge.known[int]) == 10
    assert not judge.known[str]
