"""The examples with windows: sums that an independent count has too, and what is late."""

import random
from collections import Counter

import wallaroo
from wallaroo.testing import Session


def line(time, client="::1", code=200):
    return f'{client} - - [{time} +0000] "GET / HTTP/1.1" {code} 5\n'.encode()


def by_windows(application, run, lines):
    return run(application("log_status_windows"), {"Count Status": lines})


def by_marks(application, example, run, lines):
    marked = [one.removesuffix(b"\n") for one in example("access_log").mark(lines)]
    return run(application("log_status"), {"Count Status": marked})


def test_a_days_window_gives_what_the_marks_between_days_give(application, example, run):
    lines = list(example("access_log").generate(3_000, seed=1))
    windows = by_windows(application, run, lines)
    assert windows.output == by_marks(application, example, run, lines).output
    assert len(windows.output) == 8
    assert windows.dead_letters == []


def test_time_2_a_log_out_of_order_within_the_delay_gives_the_same(application, example, run):
    lines = list(example("access_log").generate(3_000, seed=1))
    time_of = example("log_status_windows").time_of
    late = random.Random(1)
    written = {one: time_of(one.decode("latin-1")).timestamp() for one in lines}
    shuffled = sorted(lines, key=lambda one: written[one] + late.random() * 60)
    assert shuffled != lines
    assert (
        by_windows(application, run, shuffled).output == by_windows(application, run, lines).output
    )


def test_a_line_without_a_time_is_a_dead_letter_and_moves_no_time(application, run):
    result = by_windows(application, run, [b"", b"?", line("30/Apr/2026:23:59:58")])
    assert result.output == [b"2026-04-30 200 1\n"]
    assert [(letter.reason, letter.step) for letter in result.dead_letters] == [
        ("raised", None),
        ("raised", None),
    ]


def test_time_3_on_a_quiet_night_the_day_ends_with_the_clock(application):
    session = Session(application("log_status_windows"))
    session.send("Count Status", line("30/Apr/2026:23:59:50"))
    session.advance(wallaroo.seconds(69))  # ten seconds to midnight, and a minute's delay
    assert session.output == []
    session.advance(wallaroo.seconds(1))
    assert session.output == [b"2026-04-30 200 1\n"]


def test_window_7_a_pause_of_half_an_hour_ends_a_visit(application, run):
    log = [
        line("30/Apr/2026:23:00:00", "ann"),
        line("30/Apr/2026:23:29:59", "ann"),
        line("30/Apr/2026:23:29:59", "bob"),
        line("30/Apr/2026:23:59:59", "ann"),
    ]
    result = run(application("sessions"), {"Requests": log})
    assert result.output == [
        b"ann 2026-04-30 23:00:00 to 2026-04-30 23:29:59, 2 requests\n",
        b"bob 2026-04-30 23:29:59 to 2026-04-30 23:29:59, 1 request\n",
        b"ann 2026-04-30 23:59:59 to 2026-04-30 23:59:59, 1 request\n",
    ]


def test_window_2_alerts_are_sums_over_the_windows_that_cover_a_transaction(
    application, example, run
):
    alerts = example("alerts_windowed")
    sums = Counter()
    source = alerts.Transactions(1_000)
    transaction = source.initial_value()
    while transaction is not None:
        first = (transaction.time - alerts.RANGE) // alerts.SLIDE + 1
        for number in range(first, transaction.time // alerts.SLIDE + 1):
            sums[number, transaction.user] += transaction.amount
        transaction = source.apply(transaction)
    expected = sorted((*of, total) for of, total in sums.items() if total > alerts.LIMIT)
    result = run(application("alerts_windowed"), {})
    said = [output.decode().removesuffix("\n").split(" ") for output in result.output]
    begin = alerts.BEGIN // alerts.SLIDE
    found = [
        (
            begin + (int(one[0][:2]) - 9) * 360 + int(one[0][3:5]) * 6 + int(one[0][6:]) // 10,
            one[3],
            int(one[5].replace(",", "")),
        )
        for one in said
    ]
    assert found == expected
    assert result.dead_letters == []


def test_graph_4_a_generator_goes_on_behind_any_of_its_values(example):
    source = example("alerts_windowed").Transactions(3)
    first = source.initial_value()
    second = source.apply(first)
    assert example("alerts_windowed").Transactions(3).apply(first) == second
    assert source.apply(source.apply(second)) is None
