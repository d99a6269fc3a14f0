"""Keys that stay with messages, and state computations of pipelines (key-1, key-2, key-3)."""

from __future__ import annotations

import pytest
from small_windows import built, events, said, sink

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


def test_key_1_any_partition_function_will_do(run):
    class ByFirst:
        def partition(self, event):
            return event[0][0]

    for extractor in (wallaroo.partition(lambda event: event[0][0]), ByFirst()):
        result = run(built(events().key_by(extractor).to(gather).done()), LOG)
        assert list(result.entities["gather"]) == ["a", "b"]


def test_key_2_what_comes_out_of_one_without_a_key_may_meet_one_that_was_collected(run):
    left, right = events(), events("right").collect()
    assert built(left.to(gather).merge(right).done())  # both sides have a key (graph-3)


def test_key_3_a_multi_one_gives_several(run):
    @wallaroo.state_computation_multi(name="each", state=list)
    def each(event, state):
        state.append(event[0])
        return (name for name in state if name != "bob")

    assert said(run(built(events().to(each).to_sink(sink())), LOG)) == ["ann", "ann", "ann", "al"]


@wallaroo.state_computation_multi(name="gather", state=list)
def gathers(event, state):
    for letter in event[0]:
        state.append(letter)
        yield "".join(state)


def test_key_3_a_generator_function_is_consumed_inside_the_call(run):
    seen = []

    @wallaroo.computation(name="next")
    def next_step(text):
        seen.append(text)
        return text

    result = run(built(events().to(gathers).to(next_step).done()), LOG)
    assert seen == ["a", "an", "ann", "annb", "annbo", "annbob", "annboba", "annbobal"]
    assert list(result.entities["gather"].values()) == [list("annbobal")]


def test_key_3_a_generator_function_for_one_message_is_refused_in_the_words_of_pipelines():
    @wallaroo.state_computation(name="gather", state=list)
    def gather(event, state):
        yield event

    with pytest.raises(wallaroo.WallarooParameterError) as error:
        events().to(gather)
    assert "Write: compute_multi, or @wallaroo.state_computation_multi" in str(error.value)
    assert "CHANGED" not in str(error.value)


def test_key_1_what_it_does_to_the_message_is_invisible(isolated):
    @wallaroo.decoder(header_length=4, length_fmt=">I")
    def as_list(payload):
        return payload.decode().split()

    popping = wallaroo.key_extractor(lambda words: words.pop())
    pipeline = events(decoder=as_list, event_time=None).key_by(popping).to_sink(sink())
    assert isolated(built(pipeline), {"events": [b"a b"]}).output == [b"['a', 'b'];"]


def test_key_3_one_that_raises_leaves_the_entity_as_it_was(isolated, letters):
    @wallaroo.state_computation(name="careful", state=list)
    def careful(event, state):
        state.append(event[0])
        if event[0] == "bob":
            raise ValueError

    result = isolated(built(events().to(careful).done()), LOG)
    assert result.entities == {"careful": {(): ["ann", "al"]}}
    assert letters(result) == [((1,), "careful", None, (), "raised")]
