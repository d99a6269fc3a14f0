"""A machine goes on where another stood: the other gives its cells, the changed ones at a time."""

import struct
from dataclasses import replace

import pytest
from carrying import EVERY, MACHINES, WITHOUT_CUT, carried
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.generating import generate
from wallaroo_reference.checkpoints.blobs import DamagedBlobError, decode

from wallaroo.engine import load_engine


def differs(case, modes):
    """Return whether what comes of a case depends on cuts."""
    return carried(case, modes, EVERY) != carried(case, modes[:1], WITHOUT_CUT)


def has_findings(case):
    """Whether `trusting` mode promises nothing, such as with what the case's codec refuses."""
    isolated = engine_case(replace(case, isolation="isolated"))
    return bool(load_engine("reference").run(isolated).findings)


@pytest.mark.parametrize("mode", MACHINES)
def test_cuts_do_not_show(mode):
    drawn = generate(50, 1, "tame" if mode == "trusting" else "any")
    cases = [case for case in drawn if mode == "isolated" or not has_findings(case)]
    assert len(cases) > 30
    assert not [case for case in cases if differs(case, [mode])]


def test_the_other_mode_can_go_on():
    for case in generate(20, 2, "tame"):
        if has_findings(case):
            continue
        outputs, _, ended = carried(case, ["trusting", "isolated"], EVERY)
        whole, _, wanted = carried(case, ["trusting"], WITHOUT_CUT)
        assert outputs == whole
        assert ended == wanted


def test_a_blob_in_which_a_name_is_gone_is_damaged():
    gone = 0xFFFF_FFFF  # what stands for the length of a value that is gone
    with pytest.raises(DamagedBlobError):
        decode(struct.pack(">I2I", 1, gone, gone))
