"""A machine goes on where another stood: the other gives its cells, the changed ones at a time."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.generating import generate
from wallaroo_reference.checkpoints.blobs import DamagedBlobError, decode
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.isolated.interpreter import Interpreter

from wallaroo.engine import load_engine
from wallaroo.records import Frame
from wallaroo.trace import sorted_entities, sorted_windows

EVERY = 3  # a machine gives up its place after so many records

MACHINES = {"isolated": Interpreter, "trusting": Compiled}


class Kept:
    """What a checkpoint keeps, as a dictionary for each of a machine's cells."""

    def __init__(self, machine):
        self.cells = [{} for _ in machine.cells()]

    def take(self, machine):
        """Take what has changed, and where the machine stands."""
        for kept, cells in zip(self.cells, machine.cells(), strict=True):
            for known in cells.changed:
                name, value = cells.named(known), cells.packed(known)
                if value is None:
                    kept.pop(name, None)
                else:
                    kept[name] = value
            cells.changed.clear()
        self.moment = machine.moment()

    def put(self, machine):
        """Put it into a fresh machine, which then stands where the other stood."""
        for kept, cells in zip(self.cells, machine.cells(), strict=True):
            cells.unpack([*kept.items()])
        machine.go_on_from(self.moment)


def take(machine, record):
    if isinstance(record, Frame):
        machine.feed(record.source, [record.payload], record.at)
    else:
        machine.take(record)


def state(machine):
    return (
        machine.sequence,
        sorted_entities(machine.entities()),
        [window.to_json() for window in sorted_windows(machine.windows())],
        machine.due(),
    )


def carried(case, modes, count):
    """Run a case on machines that take turns, and return what came of it."""
    case = engine_case(case)
    machines = [MACHINES[mode] for mode in modes]
    made = {
        "partitions": case.partitions or 1,
        "on_error": case.on_error,
        "keeps": True,
    }
    machine = machines[0](case.application, **made)
    outputs = {sink: [] for sink in case.application.sinks}
    letters = []
    kept = Kept(machine)
    for number, record in enumerate(case.records):
        if number and not number % count and machine.ended is None:
            kept.take(machine)
            before = state(machine)
            machine = machines[number // count % len(machines)](case.application, **made)
            kept.put(machine)
            assert state(machine) == before
        take(machine, record)
        for sink, some in machine.outputs.items():
            outputs[sink] += some
            some.clear()
        letters += machine.dead_letters
        machine.dead_letters.clear()
    return (
        outputs,
        [(letter.order, letter.reason, letter.key, letter.payload) for letter in letters],
        state(machine),
    )


WITHOUT_CUT = 1 << 30


def differs(case, modes):
    """Return whether what comes of a case depends on cuts."""
    return carried(case, modes, EVERY) != carried(case, modes[:1], WITHOUT_CUT)


def has_findings(case):
    """Whether `trusting` mode promises nothing, such as with what the case's codec refuses."""
    isolated = engine_case(replace(case, isolation="isolated"))
    return bool(load_engine("reference").run(isolated).findings)


@pytest.mark.parametrize("mode", MACHINES)
@pytest.mark.parametrize("timed", [False, True], ids=["plain", "timed"])
def test_cuts_do_not_show(timed, mode):
    drawn = generate(25, 1, "tame" if mode == "trusting" else "any", timed=timed)
    cases = [case for case in drawn if mode == "isolated" or not has_findings(case)]
    assert len(cases) > 15
    assert not [case for case in cases if differs(case, [mode])]


def test_the_other_mode_can_go_on():
    for case in generate(20, 2, "tame", timed=True):
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
