"""A machine goes on where one of the other mode stood.

That cuts do not show in one mode is seen by the conformance suite (`lives`).
"""

import struct
from dataclasses import replace
from itertools import cycle

import pytest
from carrying import Compared
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.generating import generate
from wallaroo_reference import engine
from wallaroo_reference.checkpoints.blobs import DamagedBlobError, decode
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import load_engine


class TakingTurns(ReferenceEngine):
    """Each machine of a run is of another mode than the one before it."""

    def __init__(self):
        self._modes = cycle(["trusting", "isolated"])

    def machine(self, case):
        return super().machine(replace(case, isolation=next(self._modes)))


def promises_nothing(case):
    """Whether `trusting` mode promises nothing: a codec may change what it copies."""
    isolated = engine_case(replace(case, isolation="isolated"))
    if isolated.application.codec is not None:
        return True
    return bool(load_engine("reference").run(isolated).findings)


def test_the_other_mode_can_go_on(monkeypatch):
    monkeypatch.setattr(engine, "Kept", Compared)
    for case in generate(100, 2, "tame"):
        if promises_nothing(case):
            continue
        carried = TakingTurns().run(engine_case(case, options={"lives": [3]}))
        whole = ReferenceEngine().run(engine_case(case))
        assert carried.comparable() == whole.comparable()


def test_a_blob_in_which_a_name_is_gone_is_damaged():
    gone = 0xFFFF_FFFF  # what stands for the length of a value that is gone
    with pytest.raises(DamagedBlobError):
        decode(struct.pack(">I2I", 1, gone, gone))
