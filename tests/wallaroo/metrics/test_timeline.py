"""Lines are as long as fifteen minutes and no longer, and stand beside one another."""

from wallaroo.metrics.sketches import LENGTH, Timelines


def test_old_values_go():
    lines = Timelines()
    for second in range(LENGTH + 5):
        lines.add(second, {"a": second})
    form = lines.to_json()
    assert form["times"] == list(range(5, LENGTH + 5))
    assert form["values"]["a"] == form["times"]


def test_a_line_that_begins_later_has_no_values_before():
    lines = Timelines()
    lines.add(1, {"a": 1})
    lines.add(2, {"a": 2, "b": 5})
    lines.add(3, {"b": 6})
    assert lines.to_json()["values"] == {"a": [1, 2, None], "b": [None, 5, 6]}


def test_there_are_no_more_lines_than_wanted():
    lines = Timelines(most=2)
    lines.add(1, {str(number): number for number in range(10)})
    assert sorted(lines.last()["values"]) == ["0", "1"]
