"""What a checkpoint holds is collected while the machine goes on."""

import pytest
from counting import application
from wallaroo_reference.checkpoints.collecting import LAST, Collector
from wallaroo_reference.compiled.machine import Compiled


def test_a_checkpoint_comes_to_its_end_though_all_cells_go_on_changing():
    machine = Compiled(application(), keeps=True)
    payloads = [b"key %d" % one for one in range(2 * LAST)]
    machine.feed("p", payloads)
    collector = Collector(machine.cells())
    collector.begin()
    for _ in range(300):
        if collector.go_on(0):
            break
        machine.feed("p", payloads)
    else:
        pytest.fail("each cell was packed several times, and more are to come")
    assert {len(packed) for packed in collector.finish(0)} == {len(payloads)}
