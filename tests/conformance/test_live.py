"""Live servers: the tour on both paths, what a model must notice, and mutants of the edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from wallaroo_conformance.live import LIVE_LAWS, check_live
from wallaroo_conformance.live.scenario import missing
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Handle, ServeOptions, load_engine
from wallaroo.frames import FrameParser
from wallaroo.topology import Application


@pytest.mark.parametrize("name", ["reference", "compiled"])
def test_a_live_server_keeps_the_rules(name: str) -> None:
    laws, failures = check_live(load_engine(name), "*", 0)
    assert failures == []
    assert {law.rule for law in laws} == set(LIVE_LAWS)
    beyond = {"recover-1", "recover-2"}
    assert {law.rule for law in laws if law.status == "kept"} == set(LIVE_LAWS) - beyond


def test_an_engine_that_does_not_claim_to_serve_is_not_asked() -> None:
    laws, failures = check_live(Bounded(), "frame-*", 0)
    assert failures == []
    assert {law.status for law in laws} == {"unsupported"}


class Bounded(ReferenceEngine):
    """Does not serve."""

    def capabilities(self) -> Any:
        from dataclasses import replace

        return replace(super().capabilities(), live=False)


class Mangling(ReferenceEngine):
    """Serves with a fault in the parser of frames."""

    def __init__(self, feed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._feed = feed
        self._monkeypatch = monkeypatch

    def serve(self, application: Application, options: ServeOptions) -> Handle:
        original = FrameParser.feed
        fault = self._feed
        self._monkeypatch.setattr(
            FrameParser, "feed", lambda parser, data: fault(original, parser, data)
        )
        try:
            return super().serve(application, options)
        finally:
            pass  # the server reads in a thread: the fault stays until the test ends


def _loses_empty(original: Any, parser: FrameParser, data: bytes) -> list[bytes]:
    return [payload for payload in original(parser, data) if payload]


def _one_a_read(original: Any, parser: FrameParser, data: bytes) -> list[bytes]:
    payloads: list[bytes] = original(parser, data)
    return payloads[:1]


@pytest.mark.parametrize("fault", [_loses_empty, _one_a_read], ids=lambda fault: fault.__name__)
def test_frame_1_a_parser_that_loses_frames_is_found(
    fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wallaroo_conformance.live._PATIENCE", 1.0)
    _, failures = check_live(Mangling(fault, monkeypatch), "*", 0)
    assert [failure.rule for failure in failures] == ["frame-5"]
    assert "frames received" in failures[0].text


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
