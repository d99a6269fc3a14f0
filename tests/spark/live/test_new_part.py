"""What is put into a new part is there afterwards, where Spark looks for it (scale-1)."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from wallaroo_spark.live import new_part
from wallaroo_spark.live.layout import Layout
from wallaroo_spark.wire.job import Address, shard_of
from wallaroo_spark.worker.replay import CLOCK, Clock, clock_in
from wallaroo_spark.worker.segments import Entities, MemoryMap, all_entities_in
from wallaroo_spark.worker.stored import Stored, unpacked
from wallaroo_spark.worker.window_store import KEY, WindowStore, windows_in

from wallaroo.keys import encoded_partition_number
from wallaroo.times import SourceMoment
from wallaroo.transport.old_states import Place
from wallaroo.transport.stored_state import StoredEntity, StoredState, StoredWindows
from wallaroo.windowing.kinds import Ranges, kind_of
from wallaroo.windowing.watermarks import NEVER
from wallaroo.windows import windows_of

RANGES = Place("ranges", ("range", 10, 5, 1))
SESSIONS = Place("sessions", ("sessions", 5, 1))
COUNTS = Place("counts", ("count", 3, None))
TIMED = Place("timed", ("count", 3, 20))
NAMES = ["a", "b", "c"]
STEPS = [RANGES, RANGES, SESSIONS, COUNTS, TIMED]
PLACES = [*map(Place, NAMES), *STEPS]

some_bytes = st.binary(max_size=3)
times = st.integers(0, 100)
watermarks = st.just(NEVER) | st.integers(-50, 0)
sessions = st.lists(st.tuples(st.integers(0, 4), some_bytes), min_size=1, max_size=3).map(
    lambda drawn: [(10 * at, 10 * at + more, part) for at, (more, part) in enumerate(drawn)]
)
forms = {
    RANGES: st.dictionaries(st.integers(0, 9), some_bytes, min_size=1, max_size=4),
    SESSIONS: sessions,
    COUNTS: st.tuples(st.integers(1, 2), times, times, times, times, some_bytes),
    TIMED: st.tuples(st.integers(1, 2), times, times, times, times, some_bytes),
}


@st.composite
def layouts(draw):
    """Draw how some of the places are divided among groups; the others are not kept."""
    places = draw(st.permutations(PLACES))[: draw(st.integers(4, len(PLACES)))]
    members = []
    while places:
        size = draw(st.integers(1, len(places)))
        members.append(tuple(places[:size]))
        places = places[size:]
    of_groups = {"min_size": len(members), "max_size": len(members)}
    return Layout(
        tuple(draw(st.lists(st.integers(0, 2), **of_groups))),
        tuple(draw(st.lists(st.booleans(), **of_groups))),
        tuple(members),
        draw(st.dictionaries(st.sampled_from(NAMES), st.just(7))),
        {},
    )


@st.composite
def states(draw):
    """Draw a state, which may have nothing of some places."""
    entities = st.tuples(st.sampled_from([*NAMES, "gone"]), some_bytes)
    held = draw(st.dictionaries(entities, st.tuples(st.none() | times, some_bytes), max_size=6))
    steps = draw(st.permutations(STEPS))[: draw(st.integers(2, len(STEPS)))]
    windows = [
        StoredWindows(number, key, form)
        for number, step in enumerate(steps)
        for key, form in draw(st.dictionaries(some_bytes, forms[step], max_size=3)).items()
    ]
    return StoredState(
        position=9,
        now=draw(times),
        first=draw(st.none() | times),
        sources={"s": SourceMoment(draw(st.none() | times), draw(st.none() | times), ended=False)},
        steps=steps,
        watermarks=[draw(watermarks) for _ in steps],
        entities=[StoredEntity(*where, *what) for where, what in held.items()],
        windows=windows,
    )


@dataclass
class Value:
    """A value in a part: which member's it is, and where it stands."""

    address: Address
    member: int
    place: Place
    name: bytes
    blob: bytes
    segments: MemoryMap


def written(state, layout, partitions, *, coded=False):
    """Yield the values of a new part; each is in the shard and at the level of its address."""
    stored = {}

    def store_segments(spark, directory, segments, *, position, **_):
        assert position == state.position
        stored.update(segments)

    nothing = SimpleNamespace(spark=None, directory=None)
    with patch.multiple(new_part, session=lambda: nothing, store_segments=store_segments):
        new_part.write_part(Path("unused"), state, layout, partitions, coded=coded)
    for (shard, level), segments in stored.items():
        for address, name, blob in all_entities_in(segments):
            assert (shard, level) == (shard_of(address, partitions), layout.levels[address.group])
            members, member = layout.members[address.group], 0
            if len(members) > 1:
                member, name = int.from_bytes(name[:2], "big"), name[2:]
            yield Value(address, member, members[member], name, blob, segments)


def number_of(key, layout, group, partitions):
    """Return the number of the address that holds a key."""
    return encoded_partition_number(key, 1 if layout.fused[group] else partitions)


def steps_in(state, layout):
    """Return the number of the state's step that each group and member is to hold; if any."""
    free = list(enumerate(state.steps))
    found = {}
    for group, members in enumerate(layout.members):
        for member, place in enumerate(members):
            step = next((number for number, one in free if one == place), None)
            if step is not None:
                free.remove((step, place))
                found[group, member] = step
    return found


@given(states(), layouts(), st.integers(1, 3), st.booleans())
def test_key_4_each_entity_that_has_a_place_is_there_once_with_its_last_visit(
    state, layout, partitions, coded
):
    found = []
    for value in written(state, layout, partitions, coded=coded):
        if not value.place.shape:
            address = value.address
            assert address.number == number_of(value.name, layout, address.group, partitions)
            found.append((value.place, value.name, unpacked(value.blob)))
    expected = []
    for name, key, at, data in state.entities:
        if Place(name) in chain(*layout.members):
            visited = state.now if at is None else at
            kept = Stored(data, visited if name in layout.expire_after else 0, coded)
            expected.append((Place(name), key, kept))
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@given(states(), layouts(), st.integers(1, 3))
def test_window_11_the_windows_of_each_key_are_there_once(state, layout, partitions):
    steps, found = steps_in(state, layout), []
    for value in written(state, layout, partitions):
        windows = windows_in(value.name, value.blob) if value.place.shape else None
        if windows is not None:
            group, key = value.address.group, value.name[len(KEY) :]
            assert value.address.number == number_of(key, layout, group, partitions)
            found.append((steps[group, value.member], key, form_of(windows, value.place)))
    expected = [tuple(one) for one in state.windows if one.step in steps.values()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def form_of(windows, place):
    """Return windows as `StoredWindows` has them."""
    kind = kind_of(windows_of(place.shape))
    if isinstance(kind, Ranges):
        return {number: part for number, (part,) in windows.parts.items()}
    return kind.form(windows, lambda part: part[0])


@given(states(), layouts(), st.integers(1, 3))
def test_time_1_what_is_due_next_is_known_and_how_many_windows_are_open(state, layout, partitions):
    held = {}
    for value in written(state, layout, partitions):
        if value.place.shape and (windows := windows_in(value.name, value.blob)) is not None:
            there = held.setdefault((value.address, value.member), (value, []))
            there[1].append(windows)
    for (address, member), (value, there) in held.items():
        several = len(layout.members[address.group]) > 1
        prefix = member.to_bytes(2, "big") if several else b""
        kind = kind_of(windows_of(value.place.shape))
        store = WindowStore(Entities(value.segments, address), prefix, kind.width, kind.number)
        due = [at for at in map(kind.due, there) if at is not None]
        assert store.next_due(kind.due) == min(due, default=None)
        assert store.open == sum(map(kind.number, there))


@given(states(), layouts(), st.integers(1, 3))
def test_time_3_each_partition_of_a_group_with_windows_knows_the_time(state, layout, partitions):
    found = [
        (value.address.group, value.address.number, value.member, clock_in(value.blob))
        for value in written(state, layout, partitions)
        if value.place.shape and value.name == CLOCK
    ]
    steps, expected = steps_in(state, layout), []
    for group, members in enumerate(layout.members):
        held = [member for member, place in enumerate(members) if place.shape]
        numbers = [steps.get((group, member)) for member in held]
        reached = [NEVER if number is None else state.watermarks[number] for number in numbers]
        clock = Clock(state.now, state.first, state.sources, reached)
        if held and state.first is not None:
            divided = 1 if layout.fused[group] else partitions
            expected += [(group, number, held[0], clock) for number in range(divided)]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
