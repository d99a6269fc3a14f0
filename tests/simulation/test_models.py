"""The models that simulations trust: disks after a crash, a process that is dead, brokers."""

import os
import random

import pytest
from simulation.brokers import Brokers, Position, ShutOut
from simulation.disk import File, Folder
from simulation.machine import Machine, running
from simulation.plans import Life
from simulation.search import quiet
from simulation.world import Crash, World


@pytest.fixture
def machine():
    machine = Machine(World(1))
    with quiet(), running(machine):
        machine.begin(Life())
        yield machine


def remains(file):
    """Return all that a file may hold after a power failure."""
    found = set()
    for seed in range(200):
        copy = File(0o600)
        copy.data, copy._synced = bytearray(file.data), bytearray(file._synced)
        copy._pending = list(file._pending)
        copy.lose_power(random.Random(seed))
        found.add(bytes(copy.data))
    return found


def test_what_was_synced_stays_and_any_part_of_the_rest():
    file = File(0o600)
    file.write(0, b"safe")
    file.sync()
    file.write(4, b"x" * 600)
    found = remains(file)
    assert all(one.startswith(b"safe") for one in found)
    assert {b"safe", b"safe" + b"x" * 600, b"safe" + bytes(600)} <= found
    assert len(found) > 20


def test_a_sync_after_one_that_failed_writes_nothing_of_it():
    lost = 0
    for seed in range(50):
        file = File(0o600)
        file.write(0, b"data")
        file.fail_to_sync(random.Random(seed))
        assert file.data == b"data"  # as long as there is power
        file.sync()
        file.lose_power(random.Random(seed))
        lost += file.data != b"data"
    assert 0 < lost < 50


def test_a_name_is_the_folders_to_keep():
    fates = set()
    for seed in range(50):
        folder, file = Folder(0o700), File(0o600)
        folder.name("new", file)
        folder.sync()
        folder.name("named", file, "new")
        folder.lose_power(random.Random(seed))
        fates.add(tuple(folder.names))
    assert fates == {("new",), ("named",)}


def test_a_dead_process_does_nothing(machine):
    fd = os.open("/sim/file", os.O_WRONLY | os.O_CREAT)
    machine.world.crash_at = machine.world.steps + 1
    with pytest.raises(Crash):
        os.write(fd, b"x" * 1000)
    written = len(machine.disk.find("/sim/file").data)
    assert written < 1000
    with pytest.raises(Crash):
        os.write(fd, b"more")
    assert len(machine.disk.find("/sim/file").data) == written


def test_the_real_system_is_out_of_reach_of_a_simulation(machine, tmp_path):
    (tmp_path / "real").write_text("there")
    assert (tmp_path / "real").read_text() == "there"
    assert not (tmp_path / "sim").exists()
    assert machine.disk.used() == 0


def test_readers_of_committed_records_come_as_far_as_the_first_open_transaction():
    brokers = Brokers({"t": 1})
    aborted, open_now = [(name, brokers.begin(name)) for name in ("aborted", "open")]
    brokers.append(aborted, ("t", 0), b"never")
    brokers.finish(aborted, committed=False)  # its mark stands at 1
    brokers.append_committed(("t", 0), b"a")
    brokers.append(open_now, ("t", 0), b"b")
    brokers.append_committed(("t", 0), b"c")
    assert brokers.records("t", 0) == [(b"a",)]
    brokers.finish(open_now, committed=True)
    assert brokers.records("t", 0) == [(b"a",), (b"b",), (b"c",)]
    assert brokers.end("t", 0, committed_only=True) == 6


def test_a_later_producer_shuts_an_earlier_one_out_and_aborts_what_it_has_open():
    brokers = Brokers({"t": 1})
    place = ("g", "t", 0)
    earlier = "id", brokers.begin("id")
    brokers.append(earlier, ("t", 0), b"never")
    brokers.add_position(earlier, place, Position(7))
    assert brokers.position(*place) is None  # it may be committed, or not
    later = "id", brokers.begin("id")
    assert brokers.position(*place) == (-1001, "")
    with pytest.raises(ShutOut):
        brokers.finish(earlier, committed=True)
    brokers.add_position(later, place, Position(9))
    brokers.finish(later, committed=True)
    assert (brokers.position(*place), brokers.records("t", 0)) == (Position(9), [])
