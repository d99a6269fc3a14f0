"""Entities in segments: what is put is found again, whatever batches it is put in."""

from hypothesis import given
from hypothesis import strategies as st
from wallaroo_spark.wire.job import Address
from wallaroo_spark.worker.segments import Entities, MemoryMap, all_entities_in

ADDRESS = Address(0, 0, 0)
_STATES = st.none() | st.binary(max_size=300)  # `None`: the entity is removed


class Counting(MemoryMap):
    """A map that knows how often it was read and written."""

    def __init__(self):
        super().__init__()
        self.reads = self.writes = 0

    def get(self, key, default=None):
        self.reads += 1
        return super().get(key, default)

    def put(self, key, value):
        self.writes += 1
        super().put(key, value)


def put_all(store, entities, segment_bytes=200):
    with_segments = Entities(store, ADDRESS, segment_bytes)
    for entity, state in entities:
        with_segments.put(entity, state)
    with_segments.flush()
    return with_segments


@given(
    st.lists(st.lists(st.tuples(st.binary(max_size=3), _STATES), max_size=30)),
    st.integers(1, 400),
)
def test_state_3_entities_are_what_was_put_last(batches, segment_bytes):
    store, expected = MemoryMap(), {}
    for batch in batches:
        found = Entities(store, ADDRESS, segment_bytes)
        for entity, state in batch:
            assert found.get(entity) == expected.get(entity)
            if state is None:
                found.remove(entity)
                expected.pop(entity, None)
            else:
                found.put(entity, state)
                expected[entity] = state
        found.flush()
        assert found.count == len(expected)
        assert {entity: state for _, entity, state in all_entities_in(store)} == expected


@given(st.dictionaries(st.binary(max_size=3), st.binary(max_size=300), min_size=1), st.binary())
def test_scale_1_what_is_filled_in_at_once_is_as_if_it_had_been_put(entities, other):
    store = MemoryMap()
    filled = Entities(store, ADDRESS, 200)
    filled.fill([*entities.items()])
    filled.flush()
    found = Entities(store, ADDRESS, 200)
    assert found.count == len(entities)
    assert {entity: found.get(entity) for entity in entities} == entities
    found.put(other, b"later")
    found.flush()
    after = {entity: state for _, entity, state in all_entities_in(store)}
    assert after == {**entities, other: b"later"}


def test_the_number_of_segments_follows_the_entities():
    store = Counting()
    put_all(store, [(b"%d" % n, b"x" * 60) for n in range(1000)], 1000)
    assert 60 < len(store) < 120  # 1,000 entities of about 80 bytes, 1,000 bytes a segment


def test_a_batch_reads_and_writes_no_more_than_it_touches():
    store = Counting()
    put_all(store, [(b"%d" % n, b"x" * 60) for n in range(10_000)], 1000)
    store.reads = store.writes = 0
    put_all(store, [(b"%d" % n, b"y" * 60) for n in range(5)], 1000)
    assert store.reads <= 6  # and the first segment, which says how many there are
    assert store.writes <= 5


def test_what_was_only_read_is_not_written():
    store = Counting()
    put_all(store, [(b"key", b"state")])
    store.writes = 0
    found = Entities(store, ADDRESS)
    assert found.get(b"key") == b"state"
    assert found.get(b"other") is None
    found.flush()
    assert store.writes == 0


def test_one_huge_entity_does_not_split_the_others():
    store = MemoryMap()
    put_all(store, [(b"huge", b"x" * 1_000_000), *[(b"%d" % n, b"x") for n in range(10)]], 1000)
    assert len(store) <= 2


def test_the_number_of_segments_follows_entities_that_go():
    store = MemoryMap()
    put_all(store, [(b"%d" % n, b"x" * 60) for n in range(1000)], 1000)
    for part in range(10):
        entities = Entities(store, ADDRESS, 1000)
        for number in range(100 * part, 100 * part + 99):
            entities.remove(b"%d" % number)
        entities.flush()
        assert entities.count == len(list(all_entities_in(store))) == 1000 - 99 * (part + 1)
    assert len(store) <= 4
    entities = Entities(store, ADDRESS, 1000)
    for part in range(10):
        assert entities.get(b"%d" % (100 * part + 99)) == b"x" * 60
        entities.remove(b"%d" % (100 * part + 99))
    entities.flush()
    assert store == {}
