"""The store of open windows: what is due is found by time, and what is closed leaves nothing."""

from hypothesis import given
from hypothesis import strategies as st
from wallaroo_spark.wire.job import Address
from wallaroo_spark.worker.segments import Entities, MemoryMap
from wallaroo_spark.worker.window_store import WindowStore


def opened(memory):
    entities = Entities(memory, Address(0, 0, 0), 200)
    return entities, WindowStore(entities, b"", width=10)


def test_window_3_what_is_due_is_found_in_a_later_batch_and_once():
    memory = MemoryMap()
    entities, store = opened(memory)
    for number in range(50):
        store.put(b"%d" % number, [number], due=number)
    store.flush()
    entities.flush()
    _, store = opened(memory)
    assert sorted(store.due(12)) == sorted([b"%d" % number for number in range(13)])
    assert list(store.due(12)) == []
    assert list(store.due(13)) == [b"13"]
    assert store.get(b"13") == [13]


changes = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), st.none() | st.integers(1, 60)),
    max_size=8,
)


@given(st.lists(changes, max_size=6), st.lists(st.integers(0, 60), min_size=6, max_size=6))
def test_time_1_what_is_due_next_is_that_of_all_keys(batches, until):
    memory, waits, now = MemoryMap(), {}, 0
    for batch, later in zip(batches, until, strict=False):
        entities, store = opened(memory)
        for key, after in batch:
            if after is None:
                waits.pop(key, None)
            else:
                waits[key] = now + after
            store.put(key, waits.get(key) and [waits[key]], waits.get(key))
        now += later
        for key in list(store.due(now)):
            windows = store.get(key)
            if windows[0] <= now:
                store.put(key, None, None)
            else:
                store.put(key, windows, windows[0])
        waits = {key: due for key, due in waits.items() if due > now}
        assert store.next_due(lambda windows: windows[0]) == min(waits.values(), default=None)
        store.flush()
        entities.flush()
        assert store.open == len(waits)
        assert entities.count == store.entries


def test_window_8_windows_that_wait_for_no_time_are_stored_and_counted():
    memory = MemoryMap()
    for windows, number in (([1, 2], 3), ([1], 2), (None, 1)):
        entities, store = opened(memory)
        store.put(b"a", windows, due=None)
        store.put(b"b", [3], due=None)
        store.flush()
        entities.flush()
        entities, store = opened(memory)
        assert (store.open, store.get(b"a"), store.get(b"b")) == (number, windows, [3])
        assert store.next_due(len) is None
        assert entities.count == store.entries


def test_window_10_what_is_stored_does_not_grow_with_closed_windows():
    """A window each second for each of 40 keys: closed ones leave no segment either."""
    memory, sizes = MemoryMap(), []
    for second in range(60):
        entities, store = opened(memory)
        for key in list(store.due(second)):
            store.put(key, None, due=None)
        for number in range(40):
            key = b"%d of %d" % (number, second)
            store.put(key, [second], due=second + 1 + number % 3)
        store.flush()
        entities.flush()
        sizes.append((len(memory), entities.count))
    most = max(sizes[5:25])
    assert max(sizes[25:]) <= most
    entities, store = opened(memory)
    for key in list(store.due(100)):
        store.put(key, None, due=None)
    store.flush()
    entities.flush()
    assert memory == {}
