"""Cases are cut anywhere: at each cut the state goes to Spark's form, and back (scale-1).

All but Spark itself is what `wallaroo checkpoint --to` runs: what Spark would store is kept here.
"""

import itertools
from dataclasses import replace
from functools import partial
from random import Random

import pytest
from carrying import Compared, InMemory, as_stored
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.generating import generate
from wallaroo_mutants.patching import Change, Patch
from wallaroo_reference import engine
from wallaroo_reference.checkpoints.head import places_in
from wallaroo_reference.checkpoints.stored import _head_and_blobs, _read
from wallaroo_reference.engine import ReferenceEngine
from wallaroo_reference.lives import Kept
from wallaroo_spark.live import new_part
from wallaroo_spark.live.layout import LAYOUT, layout_of, read_layout
from wallaroo_spark.live.stored import StoredOnSpark
from wallaroo_spark.worker.segments import all_entities_in

from wallaroo.keys import encoded_partition_number
from wallaroo.transport.identity import Identity
from wallaroo.transport.stamps import UNSTAMPED


class Moves:
    """Moves states to Spark's form and back, in a folder, at each cut of the reference's cases.

    Args:
        folder: a new one.
        monkeypatch: with which Spark is left out.

    Attributes:
        application: whose states they are.
    """

    def __init__(self, folder, monkeypatch):
        self._folders = (folder / str(number) for number in itertools.count())
        self.draw = Random(1)
        self.segments, self.position = {}, 0
        monkeypatch.setattr(new_part, "session", lambda: self)
        monkeypatch.setattr(new_part, "store_segments", self._store)
        monkeypatch.setattr(engine, "Kept", partial(Moved, self))
        self.spark = self.directory = None  # of a session
        self.application = None

    def moved(self, kept, machine):
        """Return what a machine has kept after it was a checkpoint of Spark's."""
        application, partitions = self.application, self.draw.randint(1, 4)
        identity = Identity("spark", application.name, [], partitions, UNSTAMPED)
        before = InMemory(*as_stored(kept, machine)).state()
        directory = self._folder()
        new_part.write_parts(directory, before, layout_of(application), identity)
        assert before.position == self.position
        state = Held(directory, self.segments)._read(self.position)
        assert len(state.entities) == len(before.entities)
        assert state.parts == before.parts
        self._all_are_where_spark_looks(directory, partitions)
        return _kept(InMemory(*_head_and_blobs(state)), machine)

    def _store(self, spark, directory, segments, *, position, **_):
        self.segments, self.position = segments, position

    def _folder(self):
        folder = next(self._folders)
        folder.mkdir()
        return folder

    def _all_are_where_spark_looks(self, directory, partitions):
        """Make sure that each entity is in the shard of its key's partition number."""
        layout = read_layout(directory / LAYOUT)
        for segments in self.segments.values():
            for address, name, _ in all_entities_in(segments):
                members = layout.members[address.group]
                if len(members) > 1 or members[0].shape:
                    continue
                divided_by = 1 if layout.fused[address.group] else partitions
                assert address.number == encoded_partition_number(name, divided_by)


class Moved(Compared):
    """What is kept of a machine; each time it is moved before another machine gets it."""

    def __init__(self, moves, machine):
        super().__init__(machine)
        self._moves = moves

    def put(self, machine):
        moved = self._moves.moved(self, machine)
        self.cells, self.moment = moved.cells, moved.moment
        super().put(machine)


def _kept(checkpoint, machine):
    """Return what a machine would find in a checkpoint."""
    head, found = _read(checkpoint)
    kept, cells = Kept(machine), list(machine.cells())
    kept.moment = head.moment
    for some, place in zip(found, places_in(machine, head.cells), strict=True):
        kept.cells[cells.index(place)] = some
    return kept


class Held(StoredOnSpark):
    """What Spark would have stored."""

    def __init__(self, directory, segments):
        super().__init__(directory)
        self._segments = segments

    def _layout(self):
        return read_layout(self._directory / LAYOUT)

    def _stored(self):
        for segments in self._segments.values():
            yield from all_entities_in(segments)


def differs(case, moves):
    """Return whether what comes of a case depends on cuts; where they are is drawn."""
    whole = engine_case(case)
    count = moves.draw.randint(1, max(1, len(whole.records) - 1))
    cut = replace(whole, options={"lives": [count]})
    moves.application = whole.application
    one, other = map(ReferenceEngine().run, (whole, cut))
    return one.comparable() != other.comparable()


@pytest.fixture
def moves(tmp_path, monkeypatch):
    return Moves(tmp_path, monkeypatch)


def test_scale_1_a_case_that_is_cut_anywhere_gives_what_the_whole_gives(moves):
    assert not [case for case in generate(50, 1) if differs(case, moves)]


FAULTS = {
    "an entity left behind": (
        "new_part:_Part.put_entities",
        "in state.entities:",
        "in state.entities[1:]:",
    ),
    "an entity moved twice": (
        "new_part:_Part.put_entities",
        "self._held_at(Address(0, group, number)).fill(some)",
        "self._held_at(Address(0, group, number)).fill(some)\n"
        "self._held_at(Address(0, group, number + 1)).fill(some)",
    ),
    "a pane lost": (
        "stored:_form",
        "for number, part in windows.parts.items()",
        "for number, part in [*windows.parts.items()][1:]",
    ),
    "a position one late": (
        "new_part:write_part",
        "position=state.position",
        "position=state.position + 1",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name, moves):
    where, before, after = FAULTS[name]
    fault = Patch(name, (Change(f"wallaroo_spark.live.{where}", before, after),))
    with fault.in_place(), pytest.raises(AssertionError):
        assert not [case for case in generate(25, 1, simple=0.0) if differs(case, moves)]
