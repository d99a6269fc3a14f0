"""Texts that several commands show."""

import pytest

from wallaroo.text import process_end


@pytest.mark.parametrize(
    ("code", "how"),
    [(0, "with exit 0"), (7, "with exit 7"), (-9, "by SIGKILL"), (-35, "by signal 35")],
)
def test_how_a_process_ended_is_told_for_every_signal(code, how):
    assert process_end(code) == how
