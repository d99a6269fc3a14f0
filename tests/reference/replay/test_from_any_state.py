"""From a state that is stored anywhere in a log, the rest does what it does in the whole run."""

from collections import deque
from contextlib import suppress
from dataclasses import replace
from itertools import chain, groupby
from random import Random
from types import SimpleNamespace

from carrying import InMemory, as_stored, state_of
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.generating import generate
from wallaroo_reference.engine import ReferenceEngine
from wallaroo_reference.lives import Kept
from wallaroo_reference.replay.feeding import Input, feed

from wallaroo.records import Consumed, Value
from wallaroo.transport.log_format import LoggedRun, in_groups
from wallaroo.transport.logged import to_log


class Recorded:
    """The records of a case as a recording has them, with the number of partitions."""

    def __init__(self, case):
        self.identity = SimpleNamespace(partitions=case.partitions or 1)
        self.following, self._runs = 0, []
        records = [to_log(one) if isinstance(one, Value) else one for one in case.records]
        for kind, source, at, payloads in chain(
            *[in_groups(some) for _, some in groupby(records, partition_of)]
        ):
            self._runs.append(LoggedRun(source, self.following, payloads, kind, at))
            self.following += len(payloads)

    def runs(self, start, until):
        parts = [run.part(start, until) for run in self._runs]
        return [part for part in parts if part.payloads]


def partition_of(record):
    return record.record.partition if isinstance(record, Consumed) else None


def results(case, given, *, at_once):
    """Return outputs of sinks and dead letters, each with a record's number, and the end."""
    machine = given.interpreter(case.application, on_error=case.on_error)
    outputs = {sink: [] for sink in machine.outputs}
    with suppress(KeyboardInterrupt):  # a case may end the run so
        for number in feed(case.application, given, machine, at_once=at_once):
            for sink, made in machine.outputs.items():
                outputs[sink] += [(number, one) for one in made]
                made.clear()
    letters = [replace(one, error="") for one in machine.dead_letters]  # it may name an address
    return outputs, letters, (state_of(machine), machine.ended)


def stored_at(case, log, cuts):
    """Yield what a run has stored at each of some places of its log, which it may not reach."""
    machine = ReferenceEngine().machine(replace(case, options={"lives": ()}))
    kept, start = Kept(machine), 0
    for cut in cuts:
        with suppress(KeyboardInterrupt):
            deque(feed(case.application, Input(log, start, cut), machine), maxlen=0)
        if machine.ended is not None:
            return
        kept.take(machine)
        yield InMemory(*as_stored(kept, machine)).state()
        start = cut


def differs(case, draw):
    """Return whether what comes of the rest of a case depends on the state being stored."""
    case = engine_case(case)
    log = Recorded(case)
    end = log.following
    outputs, letters, last = results(case, Input(log, 0, end), at_once=1)
    for state in stored_at(case, log, sorted({*draw.choices(range(end + 1), k=4), end})):
        cut = state.position
        at_once = draw.choice([1, 64])
        found = results(case, Input(log, cut, end, state), at_once=at_once)
        rest = {sink: [one for n, one in made if n > cut] for sink, made in outputs.items()}
        expected = rest, [one for one in letters if one.lineage[0] >= cut], last
        made = {sink: [one for _, one in some] for sink, some in found[0].items()}
        if (made, *found[1:]) != expected:
            return True
    return False


def test_recover_1_from_any_stored_state_on_the_rest_is_as_in_the_whole_run():
    draw = Random(1)
    assert not [case for case in generate(300, 2, simple=0.0) if differs(case, draw)]
