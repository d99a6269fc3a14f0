"""`wallaroo.testing.run` and its fixture: payloads in, outputs out, no ports."""

from dataclasses import replace

import pytest

import wallaroo
from wallaroo import testing
from wallaroo.errors import EngineNotFoundError, WallarooParameterError


class Counts:
    def __init__(self):
        self.words = 0


@wallaroo.state_computation(name="count")
def count(message, state):
    state.words += 1
    return (message, state.words), True


@wallaroo.state_computation(name="forgets to say so")
def forgets(message, state):
    state.words += 1
    return message, False


@pytest.fixture(params=["reference", "compiled"])
def engine(request):
    isolation = "isolated" if request.param == "reference" else "trusting"
    return {"engine": request.param, "isolation": isolation}


def test_testing_a_result_shows_what_happened(app, engine):
    application = app(("to_stateful", count, Counts, "counts"))
    result = testing.run(application, {"p": [b"a", b"\xff", b"b"]}, **engine)
    assert repr(result) == (
        "outputs:\n"
        "  b\"('a', 1);\"\n"
        "  b\"('b', 2);\"\n"
        "dead letters:\n"
        "  (1,) decode, UnicodeDecodeError, frame b'\\xff'\n"
        "entities:\n"
        "  counts[()] = Counts(words=2)"
    )
    assert repr(testing.run(application, {"p": []}, **engine)) == "nothing came out"


class Closing:
    closed = False

    def __init__(self):
        self.words = 0

    def __setstate__(self, state):
        if Closing.closed:
            raise RuntimeError("it is closed")
        self.__dict__.update(state)


def test_testing_an_entity_that_cannot_be_read_back_says_so(app, monkeypatch):
    application = app(("to_stateful", count, Closing, "counts"))
    result = testing.run(application, {"p": [b"a"]})
    monkeypatch.setattr(Closing, "closed", True)
    assert result.output == [b"('a', 1);"]
    expected = (
        r"entity \(\) of state partition 'counts' cannot be unpickled in this process: "
        r".*it is closed\. Use result\.structures, which has its contents"
    )
    with pytest.raises(testing.EntityError, match=expected):
        _ = result.entities
    assert "0x1" in repr(result.structures)


def test_testing_an_engine_may_give_no_objects(app):
    result = testing.run(app(("to_stateful", count, Counts, "counts")), {"p": [b"a"]})
    bare = [replace(entity, load=None) for entity in result.trace.entities]
    without = replace(result, trace=replace(result.trace, entities=tuple(bare)))
    with pytest.raises(testing.EntityError, match=r"gives no objects\. Use result\.structures"):
        _ = without.entities


def test_testing_sources_one_after_the_other_or_as_received(add_pipeline, engine):
    builder = wallaroo.ApplicationBuilder("app")
    for name in "pq":
        add_pipeline(builder, ("to_stateful", count, Counts, "counts"), name=name)
    application = builder.build()
    after = testing.run(application, {"q": [b"a", b"b"], "p": [b"c"]}, **engine)
    assert after.outputs == {("p", 0): [b"('c', 3);"], ("q", 0): [b"('a', 1);", b"('b', 2);"]}
    received = testing.run(application, [("q", b"a"), ("p", b"c"), ("q", b"b")], **engine)
    assert received.outputs == {("p", 0): [b"('c', 2);"], ("q", 0): [b"('a', 1);", b"('b', 3);"]}
    with pytest.raises(ValueError, match="2 sinks: use outputs"):
        _ = after.output


def test_testing_reports_findings_at_every_call(app):
    result = testing.run(app(("to_stateful", forgets, Counts, "counts")), {"p": [b"a"]})
    assert [finding.step for finding in result.findings] == ["forgets to say so"]


@pytest.mark.parametrize(
    ("payloads", "text"),
    [
        ({"q": [b"a"]}, "application 'app' has no source 'q'; it has 'p'"),
        ([("q", b"a")], "has no source 'q'"),
        ({"p": b"a"}, "source 'p': expected a list of payloads, not one bytes"),
        ([b"a"], r"a pair \(source, payload\), or a record, not b'a'\. Write: \[\(SOURCE"),
        ([("p", b"a", 1)], r"a pair \(source, payload\), or a record, not \('p', b'a', 1\)"),
        ({"p": "a"}, "expected a list of payloads, not one str"),
        ("a", "expected payloads by source, not one str"),
        ({"p": ["a"]}, "source 'p': a payload is bytes, not str 'a'"),
        ({"p": [bytearray(b"a")]}, "a payload is bytes, not bytearray"),
        ({"p": [None]}, "a payload is bytes, not NoneType"),
        ({"p": [(-1, b"a")]}, "an arrival time is an int of nanoseconds, 0 or more, not -1"),
        ({"p": [(1.5, b"a")]}, "an arrival time is an int of nanoseconds, 0 or more, not 1.5"),
    ],
)
def test_testing_what_is_no_input_is_refused(app, payloads, text):
    with pytest.raises(WallarooParameterError, match=text):
        testing.run(app(), payloads)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"isolation": "trust"}, "isolation is 'isolated' or 'trusting', not 'trust'"),
        ({"on_error": True}, "on_error is 'skip' or 'stop', not True"),
    ],
)
def test_testing_an_unknown_mode_is_refused(app, options, text):
    with pytest.raises(WallarooParameterError, match=text):
        testing.run(app(), {"p": [b"a"]}, **options)
    with pytest.raises(WallarooParameterError, match=text):
        testing.Session(app(), **options)


def test_dead_3_ctrl_c_while_user_code_runs_reaches_the_caller(app, engine):
    def interrupted(_text):
        raise KeyboardInterrupt

    application = app(("to", wallaroo.computation(name="endless")(interrupted)))
    with pytest.raises(KeyboardInterrupt, match="in endless"):
        testing.run(application, {"p": [b"a"]}, **engine)


def test_testing_an_unknown_engine(app):
    with pytest.raises(EngineNotFoundError):
        testing.run(app(), {}, engine="nonsense")


def test_testing_its_fixtures_are_there(wallaroo_run, wallaroo_session):
    assert (wallaroo_run, wallaroo_session) == (testing.run, testing.Session)
