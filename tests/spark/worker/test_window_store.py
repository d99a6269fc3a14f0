"""The store of open windows: what is due is found by time, and what is closed leaves nothing."""

from __future__ import annotations

from wallaroo_spark.wire.shards import Address
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


def test_a_key_that_waits_for_a_later_time_is_found_at_the_noted_one():
    _, store = opened(MemoryMap())
    store.put(b"a", 1, due=5)
    store.put(b"a", 2, due=25)
    assert list(store.due(5)) == [b"a"]
    store.put(b"a", 2, due=25)
    assert list(store.due(24)) == []
    assert list(store.due(25)) == [b"a"]


def test_window_8_a_window_opened_after_the_last_was_filled_is_found_too():
    _, store = opened(MemoryMap())
    store.put(b"a", 1, due=5)
    store.put(b"a", None, due=None)
    assert list(store.due(5)) == []
    store.put(b"a", 2, due=25)
    assert list(store.due(25)) == [b"a"]


def test_window_10_closed_windows_leave_nothing():
    memory = MemoryMap()
    entities, store = opened(memory)
    for number in range(50):
        store.put(b"%d" % number, [number], due=number)
    store.flush()
    entities.flush()
    entities, store = opened(memory)
    for key in list(store.due(100)):
        store.put(key, None, due=None)
    store.flush()
    entities.flush()
    assert entities.count == 0
