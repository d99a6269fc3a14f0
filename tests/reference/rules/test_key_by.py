"""Keys that stay with messages, and state computations of pipelines (key-1, key-2, key-3)."""

import pytest
from small_windows import built, events, sink

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


@pytest.mark.parametrize(
    ("extract", "reason", "error_type"),
    [
        (lambda event: 1 / 0, "raised", "ZeroDivisionError"),
        (lambda event: None, "bad-key", None),
        (lambda event: True, "bad-key", None),
        (lambda event: 1.0, "bad-key", None),
        (lambda event: "x" * 70_000, "bad-key", None),
    ],
)
def test_key_1_its_failures_name_the_extractor(run, extract, reason, error_type):
    def by_what(event):
        return extract(event)

    keyed = events().key_by(wallaroo.key_extractor(by_what))
    (letter,) = run(built(keyed.to_sink(sink())), {"events": [b"a 1"]}).dead_letters
    assert (letter.step, letter.key, letter.reason.value) == ("by_what", None, reason)
    assert (letter.error_type, letter.payload) == (error_type, b"a 1")


def test_key_3_a_generator_function_for_one_message_is_refused_in_the_words_of_pipelines():
    @wallaroo.state_computation(name="gather", state=list)
    def gather(event, state):
        yield event

    with pytest.raises(wallaroo.WallarooParameterError) as error:
        events().to(gather)
    assert "Write: compute_multi, or @wallaroo.state_computation_multi" in str(error.value)
    assert "CHANGED" not in str(error.value)
