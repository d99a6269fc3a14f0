"""A machine goes on where one of the other mode stood.

That cuts do not show in one mode is seen by the conformance suite (`records_a_life`).
"""

import struct
from dataclasses import replace

import pytest
from carrying import EVERY, WITHOUT_CUT, carried
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.generating import generate
from wallaroo_reference.checkpoints.blobs import DamagedBlobError, decode

from wallaroo.engine import load_engine


def promises_nothing(case):
    """Whether `trusting` mode promises nothing: a codec may change what it copies."""
    isolated = engine_case(replace(case, isolation="isolated"))
    if isolated.application.codec is not None:
        return True
    return bool(load_engine("reference").run(isolated).findings)


def test_the_other_mode_can_go_on():
    for case in generate(100, 2, "tame"):
        if promises_nothing(case):
            continue
        outputs, _, ended = carried(case, ["trusting", "isolated"], EVERY)
        whole, _, wanted = carried(case, ["trusting"], WITHOUT_CUT)
        assert outputs == whole
        assert ended == wanted


def test_a_blob_in_which_a_name_is_gone_is_damaged():
    gone = 0xFFFF_FFFF  # what stands for the length of a value that is gone
    with pytest.raises(DamagedBlobError):
        decode(struct.pack(">I2I", 1, gone, gone))
