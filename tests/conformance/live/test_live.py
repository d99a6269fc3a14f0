"""Live servers: the tour on both paths, and what a model must notice; mutants have their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from wallaroo_conformance.live import LIVE_LAWS, check_live
from wallaroo_conformance.live.stretches import missing
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import load_engine
from wallaroo.errors import UnsupportedTopology


@pytest.mark.parametrize("name", ["reference", "compiled"])
def test_a_live_server_keeps_the_rules(name: str) -> None:
    laws, failures = check_live(load_engine(name), "*", 0)
    assert failures == []
    assert {law.rule for law in laws} == set(LIVE_LAWS)
    assert {law.rule for law in laws if law.status == "kept"} == set(LIVE_LAWS)


def test_an_engine_that_does_not_claim_to_serve_is_not_asked() -> None:
    laws, failures = check_live(Bounded(), "frame-*", 0)
    assert failures == []
    assert {law.status for law in laws} == {"unsupported"}


def test_an_engine_that_refuses_windows_is_not_asked_for_them() -> None:
    laws, failures = check_live(WithoutWindows(), "time-*", 0)
    assert failures == []
    assert {law.status for law in laws} == {"unsupported"}


class WithoutWindows(ReferenceEngine):
    """Refuses windows."""

    def check(self, application: Any) -> None:
        if application.window_steps:
            raise UnsupportedTopology("window-1", "windows", "it has none")


class Bounded(ReferenceEngine):
    """Does not serve."""

    def capabilities(self) -> Any:
        from dataclasses import replace

        return replace(super().capabilities(), live=False)


OUTPUTS = [b"one\n", b"two\n", b"three\n"]


@pytest.mark.parametrize(
    "stretches",
    [
        [b"one\ntwo\nthree\n"],
        [b"one\ntw", b"two\nthree\n"],
        [b"one\ntwo\n", b"two\nthree\n"],
        [b"one\ntwo\n", b"one\ntwo\nthree\n"],
        [b"o", b"one\n", b"two\nthree\n"],
    ],
)
def test_sink_3_repeats_and_cut_off_outputs_are_lawful(stretches: Sequence[bytes]) -> None:
    assert missing(OUTPUTS, stretches) == ""


@pytest.mark.parametrize(
    "stretches",
    [
        [],
        [b"one\ntwo\n"],
        [b"one\n", b"three\n"],
        [b"one\ntw", b"o\nthree\n"],
        [b"one\ntwo\nthree\nfour\n"],
        [b"two\none\nthree\n"],
    ],
)
def test_sink_3_gaps_and_halves_are_not(stretches: Sequence[bytes]) -> None:
    assert missing(OUTPUTS, stretches) != ""
