"""Live servers: what an engine is asked, and how a sink's outputs are compared."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Any

import pytest
from wallaroo_conformance.live import LIVE_LAWS, check_live
from wallaroo_conformance.live.peers import SinkPeer, missing
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import load_engine
from wallaroo.errors import UnsupportedTopology


def test_a_live_server_keeps_the_rules() -> None:
    """The other machine behind the same server: mutants without a fault (test_mutants.py)."""
    laws, failures = check_live(load_engine("compiled"), "*", 0)
    assert failures == []
    assert {law.rule for law in laws if law.status == "kept"} == set(LIVE_LAWS)


class Bounded(ReferenceEngine):
    """Does not serve."""

    def capabilities(self) -> Any:
        return replace(super().capabilities(), live=False)


class WithoutWindows(ReferenceEngine):
    """Refuses windows."""

    def check(self, application: Any) -> None:
        if application.window_steps:
            raise UnsupportedTopology("window-1", "windows", "it has none")


@pytest.mark.parametrize(("engine", "rules"), [(Bounded, "frame-*"), (WithoutWindows, "time-*")])
def test_what_an_engine_does_not_claim_or_refuses_is_unsupported(engine: Any, rules: str) -> None:
    laws, failures = check_live(engine(), rules, 0)
    assert failures == []
    assert {law.status for law in laws} == {"unsupported"}


@pytest.mark.parametrize(
    ("brought", "kept"),
    [
        ([b"one\ntwo\nthree\n"], True),
        ([b"one\ntw", b"two\nthree\n"], True),
        ([b"one\ntwo\n", b"two\nthree\n"], True),
        ([b"one\ntwo\n", b"one\ntwo\nthree\n"], True),
        ([b"o", b"one\n", b"two\nthree\n"], True),
        ([], False),
        ([b"one\ntwo\n"], False),
        ([b"one\n", b"three\n"], False),
        ([b"one\ntw", b"o\nthree\n"], False),
        ([b"one\ntwo\nthree\nfour\n"], False),
        ([b"two\none\nthree\n"], False),
    ],
)
def test_sink_3_outputs_may_come_again_and_be_cut_off_but_none_is_missing(
    brought: list[bytes], kept: bool
) -> None:
    assert (missing([b"one\n", b"two\n", b"three\n"], brought) == "") == kept


def test_a_sink_that_goes_away_keeps_no_connection_that_has_just_come() -> None:
    # One that it kept would take outputs: the engine would be blamed for having none that wait.
    for _ in range(200):
        peer = SinkPeer()
        with socket.create_connection(peer.address):
            peer.go_away()
            assert peer.connections == 0
        peer.close()
