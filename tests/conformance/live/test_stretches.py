"""Which rule is broken where outputs did not come as they must after a kill."""

from __future__ import annotations

import pytest
from wallaroo_conformance.live.stretches import missing, recovery_rule

BEFORE, AFTER = (b"a=1\n", b"b=1\n"), (b"a=2\n",)


@pytest.mark.parametrize(
    ("stretches", "rule"),
    [
        ([b"a=1\nb=1\n", b"a=1\n"], "recover-1"),  # a message before the kill is forgotten
        ([b"a=1\nb=1\n", b"b=2\na=2\n"], "recover-1"),  # one counts twice, and says so itself
        ([b"a=1\n", b"b=2\na=2\n"], "recover-1"),
        ([b"a=1\n", b"a=2\n"], "recover-2"),  # the output of `b` is lost on its way
        ([b"a=1\nb=1\n", b"b=1\na=1\na=2\n"], "recover-2"),  # repeated out of order
        ([b"a=1\nb=1\na", b"=2\n"], "recover-1"),  # no output begins so
    ],
)
def test_what_came_after_a_kill_tells_lost_state_from_lost_outputs(stretches, rule):
    assert missing(BEFORE + AFTER, stretches)
    assert recovery_rule(BEFORE, AFTER, stretches) == rule
