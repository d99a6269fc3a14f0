"""Stamps, as a checkpoint's files have them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from wallaroo.transport.stamps import born, from_bytes, from_json

words = st.one_of(st.none(), st.booleans(), st.integers(0, 9), st.text(max_size=2))


@given(st.one_of(words, st.lists(words, max_size=4), st.dictionaries(st.text(), words, max_size=4)))
def test_what_json_holds_is_a_stamp_or_is_refused(form):
    try:
        stamp = from_json(form)
    except ValueError:
        return
    assert [*stamp] == form
    assert str(stamp)


def test_a_stamp_is_read_as_it_was_written():
    stamp = born().next_run()
    assert from_bytes(stamp.to_bytes()) == stamp
    assert from_json(json.loads(json.dumps(stamp))) == stamp
