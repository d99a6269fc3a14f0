"""Cases run on machines that take turns: each goes on where another stood."""

from wallaroo_conformance.cases.building import engine_case
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.lives import Kept

from wallaroo.records import Frame
from wallaroo.trace import sorted_entities, sorted_windows

EVERY = 3  # a machine gives up its place after so many records

MACHINES = {"isolated": Interpreter, "trusting": Compiled}


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


def as_it_is(kept, machine, application):
    """Return what a machine has kept, moved nowhere."""
    return kept


def carried(case, modes, count, moved=as_it_is):
    """Run a case on machines that take turns, and return what came of it.

    Args:
        case: the case.
        modes: those of the machines.
        count: number of records after which a machine gives up its place.
        moved: what is kept at each cut, as another checkpoint has it.
    """
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
            kept = moved(kept, machine, case.application)
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
