"""Keys that stay with messages, and state computations of pipelines (key-1, key-2, key-3)."""

import pytest
from small_windows import built, events

import wallaroo

LOG = {"events": [b"ann 1", b"bob 2", b"al 3"]}


@wallaroo.state_computation(name="gather", state=list)
def gather(event, state):
    state.append(event[0])
    return "".join(state)


def test_key_1_it_finds_the_key_once(isolated):
    calls = []

    @wallaroo.key_extractor
    def counted(event):
        calls.append(event)
        return event[0]

    other = wallaroo.state_computation(name="other", state=list)(lambda event, state: None)
    keyed = events().key_by(counted)
    isolated(built(keyed.to(gather).done(), keyed.to(other).done()), LOG)
    assert len(calls) == 3


def test_key_3_a_generator_function_for_one_message_is_refused_in_the_words_of_pipelines():
    @wallaroo.state_computation(name="gather", state=list)
    def gather(event, state):
        yield event

    with pytest.raises(wallaroo.WallarooParameterError) as error:
        events().to(gather)
    assert "Write: compute_multi, or @wallaroo.state_computation_multi" in str(error.value)
    assert "CHANGED" not in str(error.value)
