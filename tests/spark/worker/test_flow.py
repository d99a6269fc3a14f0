"""What a task calls; no test here needs a JVM."""

from __future__ import annotations

import pytest
from small_steps import encode
from wallaroo_mutants.machinery import run_here

import wallaroo
from wallaroo.engine import Case

called: list[bytes] = []


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> bytes:
    called.append(payload)
    if payload == b"bad":
        raise ValueError(payload)
    if payload == b"exit":
        raise SystemExit(1)
    return payload


@pytest.mark.parametrize(("ending", "kind"), [(b"bad", "on-error"), (b"exit", "exit")])
def test_dead_4_a_task_calls_nothing_after_the_call_at_which_the_run_ended(ending, kind):
    called.clear()
    builder = wallaroo.ApplicationBuilder("app")
    for name in ("p", "q"):
        builder.new_pipeline(name, wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 1, encode))
    # Of two tasks, one gets what comes from `p`, the other what comes from `q`.
    log = [("p", b"1"), ("q", b"2"), ("p", ending), ("q", b"4"), ("p", b"5"), ("q", b"6")]
    [trace] = run_here([Case(builder.build(), log, on_error="stop")])
    assert trace.ended is not None
    assert (trace.ended.kind, trace.ended.lineage) == (kind, (2,))
    assert [*trace.outputs["p", 0]] == [b"1"]
    assert b"5" not in called
