"""A stored state, as it is shown."""

import pickle

from wallaroo.keys import encode_key
from wallaroo.transport.stored import stored_entities
from wallaroo.transport.stored_state import StoredEntity, StoredState


def entity(partition, key, state):
    return StoredEntity(partition, encode_key(key), None, pickle.dumps(state))


def test_entities_are_made_one_after_the_other_in_order():
    broken = StoredEntity("c", b"not a key", None, b"")
    state = StoredState(entities=[broken, entity("b", "k", 2), entity("a", "m", 1)])
    found = stored_entities(state, 2)
    assert [(one.partition, one.key) for one in (next(found), next(found))] == [
        ("a", "m"),
        ("b", "k"),
    ]


def test_what_is_not_wanted_is_not_made():
    broken = StoredEntity("c", b"not a key", None, b"")
    state = StoredState(entities=[broken, entity("b", "k", 2)])
    (found,) = stored_entities(state, 2, lambda one: one.partition == "b")
    assert found.key == "k"
