"""Checkpoints of every format that was ever written are read; `format_N/` holds one of each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from wallaroo_reference.checkpoints.head import FORMAT
from wallaroo_reference.checkpoints.recovery import Recovery
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.isolated.interpreter import Interpreter

import wallaroo
from wallaroo.transport.stored import look_at_log

HERE = Path(__file__).parent
FORMATS = sorted(HERE.glob("format_*"))


@wallaroo.decoder(header_length=4, length_fmt=">I")
def text(payload):
    return payload.decode()


@wallaroo.state_computation(name="number")
def number(message, state):
    state[message] = state.get(message, 0) + 1
    return None, True


@wallaroo.partition
def first(message):
    return message[:1]


class Letters:
    def initial_accumulator(self):
        return []

    def update(self, message, accumulator):
        accumulator.append(message)

    def output(self, key, accumulator):
        return str(accumulator)


def application():
    """Return the application whose checkpoint is kept: entities, and open windows."""
    made = wallaroo.ApplicationBuilder("kept")
    made.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
    made.to_state_partition(number, dict, "counts", first).done()
    made.new_pipeline("q", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
    windows = wallaroo.range_windows(wallaroo.seconds(10)).over(Letters())
    return made.to_window(windows, first, "letters").done().build()


def test_the_format_that_is_written_is_kept_too():
    assert HERE / f"format_{FORMAT}" in FORMATS


@pytest.mark.parametrize("machine", [Compiled, Interpreter])
@pytest.mark.parametrize("kept", FORMATS, ids=lambda path: path.name)
def test_a_format_is_read(tmp_path, kept, machine):
    shutil.copytree(kept, tmp_path / "c")
    app = application()
    recovery = Recovery(tmp_path / "c", app, partitions=None, log_bytes=1 << 20)
    restored = machine(app, keeps=True)
    recovery.restore(restored)
    entities = {entity.key: entity.load() for entity in restored.entities()}
    assert entities == {"a": {"ab": 2}, "b": {"b": 1}}
    windows = {(one.key, one.start): one.value for one in restored.windows()}
    assert windows == {("x", 0): ["x1", "x2"], ("y", 0): ["y1"]}
    assert restored.sequence == recovery.position == 6
    assert list(recovery.later()) == [("p", [b"behind"], 7)]
    recovery.close()
    assert look_at_log(tmp_path / "c" / "input").following == 7
