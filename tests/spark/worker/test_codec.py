"""What Spark's workers give to an application's codec; no test here needs a JVM."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

from small_steps import Seen
from wallaroo_mutants.machinery import run_here

import wallaroo
from wallaroo.engine import Case
from wallaroo.topology import Codec

given: list[Any] = []


def serialize(value: Any) -> bytes:
    given.append(value)
    return pickle.dumps(value)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> Any:
    return ["decoded", payload.decode()]


@wallaroo.computation(name="joined")
def joined(message: Any) -> Any:
    return " ".join(message)


@wallaroo.state_computation(name="note")
def note(message: Any, state: Any) -> Any:
    state.items.append(message)
    return len(state.items), True


@wallaroo.encoder
def encode(message: Any) -> str:
    return f"{message}\n"


def test_key_5_what_a_computation_takes_in_the_same_process_is_not_given_to_it() -> None:
    given.clear()
    builder = wallaroo.ApplicationBuilder("coded")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    builder.to(joined).to_stateful(note, Seen, "seen")
    application = builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 1, encode)).build()
    application = replace(application, codec=Codec(serialize, pickle.loads))
    [trace] = run_here([Case(application, [("p", b"a"), ("p", b"b")], isolation="trusting")])
    assert [*trace.outputs["p", 0]] == [b"1\n", b"2\n"]
    assert [one for one in given if isinstance(one, str)] == ["decoded a", "decoded b"]
    assert not [one for one in given if isinstance(one, list)]
