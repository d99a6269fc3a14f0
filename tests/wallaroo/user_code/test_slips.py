"""Slips that no rule refuses are said once, and nothing is said of what is meant."""

import logging

import pytest
from counted import Count, text
from small_steps import shown
from small_windows import Total

import wallaroo
from wallaroo import testing, times
from wallaroo.findings import FindingKind
from wallaroo.times import BadTimeError, event_time_from
from wallaroo.user_code.slips import slips_logged

TODAY = wallaroo.days(20_000)


@pytest.fixture(autouse=True)
def nothing_made_by_other_tests(monkeypatch):
    """A length that any code of the process has made with its unit is not warned of."""
    monkeypatch.setattr(times, "_with_unit", {wallaroo.microseconds(3.5)})


def application(step, **of_source):
    config = wallaroo.TCPSourceConfig("127.0.0.1", 0, text, **of_source)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", 7002, shown)
    return wallaroo.build_application("a", wallaroo.source("in", config).to(step).to_sink(sink))


def warnings_of(caplog, application, **how):
    caplog.clear()
    with caplog.at_level(logging.WARNING, "wallaroo"):
        result = testing.run(application, {"in": [b"1", b"2"]}, **how)
    return [record.getMessage() for record in caplog.records], result


@pytest.mark.parametrize("isolation", ["isolated", "trusting"])
@pytest.mark.parametrize(
    ("windows", "warned"),
    [
        (wallaroo.range_windows(10), ["pipeline 'in', step 'Total': the windows' range is 10 ns"]),
        (
            wallaroo.range_windows(wallaroo.milliseconds(10)).with_slide(5000).with_delay(5),
            ["the windows' slide is 5 µs", "the windows' delay is 5 ns"],
        ),
        (wallaroo.session_windows(30), ["the windows' gap is 30 ns"]),
        (wallaroo.count_windows(2).with_timeout(2), ["the windows' timeout is 2 ns"]),
        (wallaroo.range_windows(wallaroo.microseconds(3.5)), []),
        (wallaroo.range_windows(wallaroo.seconds(10)), []),
    ],
)
def test_a_short_length_without_a_unit_is_said_once(caplog, isolation, windows, warned):
    said, _ = warnings_of(caplog, application(windows.over(Total)), isolation=isolation)
    assert len(said) == len(warned)
    for message, part in zip(said, warned, strict=True):
        assert part in message
        assert "Write: wallaroo.seconds(" in message


def test_a_short_expiry_and_a_short_idle_time_are_said(caplog):
    @wallaroo.state_computation(name="count", state=Count, expire_after=60)
    def count(message, state):
        return message

    said, _ = warnings_of(caplog, application(count, idle_after=7))
    assert [text.partition(":")[0] for text in said] == [
        "source 'in'",
        "state partition 'count'",
    ]


@pytest.mark.parametrize(
    ("event_time", "warned"),
    [
        (lambda message: 1_772_442_000 + int(message), 1),
        (lambda message: TODAY + int(message), 0),
        (lambda message: wallaroo.seconds(1_772_442_000.5), 0),
    ],
)
def test_event_times_in_1970_are_said_once(caplog, event_time, warned):
    windows = wallaroo.range_windows(wallaroo.minutes(1)).over(Total)
    said, _ = warnings_of(caplog, application(windows, event_time=event_time))
    assert len(said) == warned
    assert all("source 'in': event_time gave 1772442001, which is before 1971" in t for t in said)


def test_what_a_run_calls_for_each_message_stays_the_users_own():
    def event_time(message):
        return TODAY

    @wallaroo.state_computation(name="count", state=Count)
    def count(message, state):
        return message

    plain = application(count, event_time=event_time)
    logged = slips_logged(plain, pairs=False)
    calls = [use.component.call for use in logged.components()]
    assert calls == [use.component.call for use in plain.components()]


def test_the_error_about_a_float_teaches_no_seconds_as_nanoseconds():
    with pytest.raises(BadTimeError, match=r"write: wallaroo\.seconds\(…\)") as error:
        event_time_from(1_772_442_000.5)
    assert "int(…)" not in str(error.value)


@pytest.mark.parametrize(
    ("decorator", "give", "slips"),
    [
        (wallaroo.state_computation, lambda text: (text, True), 1),
        (wallaroo.state_computation, lambda text: (None, False), 1),
        (wallaroo.state_computation, lambda text: (text, 1), 0),
        (wallaroo.state_computation, lambda text: [text, True], 0),
        (wallaroo.state_computation_multi, lambda text: ([text], True), 1),
        (wallaroo.state_computation_multi, lambda text: [(text, True), (text, False)], 0),
    ],
)
def test_a_pair_of_the_builders_form_is_found_and_goes_on(caplog, decorator, give, slips):
    @decorator(name="count", state=Count)
    def count(message, state):
        return give(message)

    said, isolated = warnings_of(caplog, application(count))
    assert said == []
    findings = [one for one in isolated.findings if one.kind is FindingKind.PAIR_AS_OUTPUT]
    assert len(findings) == slips
    said, trusting = warnings_of(caplog, application(count), isolation="trusting")
    assert len(said) == slips
    assert all("belongs to the builder's form" in text for text in said)
    assert trusting.output == isolated.output
    assert not trusting.dead_letters


def test_what_to_write_for_a_lambda_can_be_followed():
    with pytest.raises(wallaroo.WallarooParameterError) as error:
        application(lambda message: message)
    assert "above it" not in str(error.value).replace("no line above it", "")
    assert "below it def NAME(…)" in str(error.value)
