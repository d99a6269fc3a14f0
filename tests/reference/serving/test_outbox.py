"""Outputs wait for what they were made from to be on disk; too many that wait hold all back."""

from unittest.mock import Mock

import pytest
from wallaroo_reference.serving import outbox
from wallaroo_reference.serving.outbox import Outbox


@pytest.mark.parametrize("sink_is_full", [False, True])
def test_a_sink_or_what_waits_for_the_disk_holds_processing_back(sink_is_full, monkeypatch):
    monkeypatch.setattr(outbox, "LIMIT", 100)
    edges, machine = Mock(sinks={("p", 0): Mock(full=sink_is_full)}), Mock(sequence=1)
    held = Outbox(edges, machine, Mock(durable_sequence=0), Mock())
    [sink] = held.sinks.values()
    assert sink.full is sink_is_full
    sink.write([b"x" * 100])
    assert sink.full
    held.release(1)
    assert (sink.full, held.empty) == (sink_is_full, True)
