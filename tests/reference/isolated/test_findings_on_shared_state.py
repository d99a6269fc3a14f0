"""Findings without which `trusting` mode would be promised too much; both were found by search."""

from __future__ import annotations

import sys
from typing import Any

import wallaroo
from wallaroo.engine import Case, load_engine
from wallaroo.findings import FindingKind


class Page:
    """A state."""

    def __init__(self) -> None:
        self.count = 0


class OneForAll:
    """A builder that hands out one object again and again."""

    def __init__(self) -> None:
        self.page = Page()

    def build(self) -> Page:
        """Return it."""
        return self.page


@wallaroo.decoder(header_length=4, length_fmt=">I")
def text(payload: bytes) -> str:
    return payload.decode()


@wallaroo.encoder
def line(message: Any) -> str:
    return f"{message}\n"


@wallaroo.state_computation(name="count")
def count(message: str, page: Page) -> tuple[int, bool]:
    page.count += 1
    if message == "quit":
        sys.exit(1)
    return page.count, True


def _kinds(state: Any, payload: bytes) -> list[FindingKind]:
    application = (
        wallaroo.ApplicationBuilder("counting")
        .new_pipeline("words", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
        .to_stateful(count, state, "page")
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 1, line))
        .build()
    )
    trace = load_engine("reference").run(Case(application, [("words", payload)]))
    return [finding.kind for finding in trace.findings]


def test_state_6_a_builder_that_keeps_what_it_builds_is_found() -> None:
    assert _kinds(OneForAll(), b"a") == [FindingKind.SHARED_MESSAGE]
    assert _kinds(Page, b"a") == []


def test_dead_3_state_altered_by_a_call_that_ends_the_run_is_found() -> None:
    assert _kinds(Page, b"quit") == [FindingKind.UNFLAGGED_MUTATION]
