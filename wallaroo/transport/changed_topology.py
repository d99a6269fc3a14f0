"""A checkpoint whose application has another topology today: what is kept, new and dropped.

States are kept by the name of their state partition, open windows by their step and their shape,
positions by source, numbers of outputs by sink. The rest is new, or dropped. A run goes on with
what is kept if the user has accepted that, and has named each part of which something is dropped.
"""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from wallaroo.operations import Windowed
from wallaroo.topology import Application, SinkId, Step
from wallaroo.transport.identity import (
    CheckpointError,
    Identity,
    describe_topology,
    sink_line,
    source_line,
)
from wallaroo.transport.input_log import InputLogError
from wallaroo.transport.log_directory import ends, read, runs_of
from wallaroo.transport.logged import LoggedSource
from wallaroo.transport.private import told_as
from wallaroo.transport.skipping import MESSAGES
from wallaroo.windows import Shape, shape_of, windows_of

_log = logging.getLogger("wallaroo.transport")


class Accepted(NamedTuple):
    """What the user accepts of a checkpoint that another version of the application has written.

    Args:
        topology: another topology.
        dropped: names of what may be dropped then.
        old_states: states and accumulators that the application would build otherwise.
    """

    topology: bool = False
    dropped: Collection[str] = ()
    old_states: bool = False


NOTHING_ACCEPTED = Accepted()


class Held(NamedTuple):
    """What a checkpoint holds of a part of the application that wrote it.

    Args:
        part: the part, for people; another version of the application has the same part if it has
            one that is called so.
        name: the name by which the user drops it; empty: nothing is lost without it.
        what: how much there is, for people; empty: nothing.
    """

    part: str
    name: str = ""
    what: str = ""


def held_part(name: str, shape: Shape = ()) -> str:
    """Return what a state partition is called here; with a shape, the windows of a step."""
    if not shape:
        return f"state partition {name!r}"
    return f"windows of {name!r}, {windows_of(shape).described()}"


def held_states(name: str, number: int, shape: Shape = ()) -> Held:
    """Return what is held of a state partition, or of the windows of a step.

    Args:
        name: of the state partition, or of the aggregation.
        number: of its entities, or of its open windows; where these overlap, of their panes.
        shape: of the windows.
    """
    unit = "entity" if number == 1 else "entities"
    if shape:
        unit = "panes" if shape[0] == "range" and shape[1] != shape[2] else "open"
    return Held(held_part(name, shape), name, f"{number:,} {unit}" if number else "")


def held_edges(
    identity: Identity,
    log: Path,
    position: int,
    outputs: Mapping[SinkId, int],
    positions: Mapping[str, str],
) -> Iterator[Held]:
    """Yield what is held of sources and sinks.

    Args:
        identity: says which there were.
        log: the directory of the input log.
        position: number of the first record whose effect is not in the state.
        outputs: of each sink the number of outputs before that, if it is stored.
        positions: of each source that goes on behind what it has given itself, what that is, for
            people.

    Raises:
        InputLogError: the log cannot be read.
    """
    waiting = _waiting(log, position)
    sources = {source_line(name): name for name in (*positions, *waiting)}
    sinks = {sink_line(sink): f"{count:,} outputs so far" for sink, count in outputs.items()}
    there = [line for line in identity.topology if line.startswith(("source ", "sink "))]
    for line in dict.fromkeys([*there, *sources]):
        if line.startswith("sink "):
            yield Held(line, "", sinks.get(line, ""))
            continue
        name = sources.get(line, "")
        facts = [positions[name]] if name in positions else []
        if count := waiting[name]:
            facts.append(f"{count:,} {'records wait' if count > 1 else 'record waits'}")
        yield Held(line, name, ", ".join(facts))


def positions_of(logged: Mapping[str, LoggedSource]) -> dict[str, str]:
    """Return the sources that go on from a position, for `held_edges`."""
    positions = {}
    for name, one in logged.items():
        if one.position is not None:
            positions[name] = f"the position in {one.position.topic}"
        elif one.last:
            positions[name] = "the position of a generator"
    return positions


def _waiting(directory: Path, position: int) -> Counter[str]:
    """Return the number of records that hold messages from a position on, by source."""
    waiting: Counter[str] = Counter()
    with told_as(InputLogError, f"the input log {directory} cannot be read"):
        files, _ = read(directory)
    for run in runs_of(files, position, ends(files).following):
        if run.kind in MESSAGES:
            waiting[run.source] += len(run.payloads)
    return waiting


def accept_topology(
    directory: Path,
    identity: Identity,
    application: Application,
    held: Sequence[Held],
    accepted: Accepted,
) -> None:
    """Log what is kept, new and dropped, and refuse it unless the user has accepted it.

    Args:
        directory: the checkpoint.
        identity: whose it is.
        application: what is to go on with it.
        held: what it holds.
        accepted: what the user has accepted.

    Raises:
        CheckpointError: the user has not, or nothing of the checkpoint could be read.
    """
    if identity.coded is not (application.codec is not None):
        raise CheckpointError(
            f"the checkpoint {directory} holds states that were stored "
            + ("by serialize, which this application lacks" * identity.coded)
            + ("by pickle, and this application has a serialize" * (not identity.coded))
            + ", so it cannot read them. Change that back, or begin anew with an empty directory"
        )
    new = Counter(_parts(application))
    rows: list[tuple[str, str]] = []
    lost: list[Held] = []
    for one in held:
        kept = new[one.part] > 0
        new[one.part] -= kept
        if not kept and one.name and one.what:
            lost.append(one)
        rows.append(("kept" if kept else "dropped", f"{one.part}{': ' * bool(one.what)}{one.what}"))
    theirs, ours = [
        Counter([line for line in lines if line.startswith("step ") and ", windows: " not in line])
        for lines in (identity.topology, describe_topology(application))
    ]
    rows += [("new", part) for part in new.elements()]
    rows += [("new", line) for line in (ours - theirs).elements()]
    rows += [("dropped", line) for line in (theirs - ours).elements()]
    for word in ("kept", "new", "dropped"):
        for _, text in [row for row in rows if row[0] == word]:
            _log.warning("%-8s%s", word, text)
    names = dict.fromkeys([one.name for one in lost])
    if unknown := set(accepted.dropped) - names.keys():
        raise CheckpointError(
            f"--drop-state {' '.join(map(repr, sorted(unknown)))}: nothing that would be dropped "
            f"from {directory} has this name; what would be is listed above. Nothing was changed"
        )
    if accepted.topology and set(accepted.dropped) == names.keys():
        _log.warning("goes on with %s in this topology, as it was accepted", directory)
        return
    renamed = any(
        one.part == held_part(one.name) and new[held_part(partition.name)]
        for one in lost
        for partition in application.partitions
    )
    hint = " A step with only another name keeps its state with state_name='OLD NAME'." * renamed
    options = ["--accept-topology", *[f"--drop-state {shlex.quote(name)}" for name in names]]
    raise CheckpointError(
        f"the checkpoint {directory} belongs to another topology; what this application would keep "
        "and drop of it is listed above. Nothing was processed or changed. To go on with what is "
        f"kept: {' '.join(options)}.{hint} Otherwise run what the checkpoint belongs to, or take "
        "another directory"
    )


def _parts(application: Application) -> Iterator[str]:
    """Yield what an application has of that which a checkpoint holds."""
    yield from [held_part(partition.name) for partition in application.partitions]
    for node in application.nodes:
        if isinstance(node, Step) and isinstance(node.operation, Windowed):
            yield held_part(node.name, shape_of(node.operation.windows))
    yield from map(source_line, application.sources)
    yield from map(sink_line, application.sinks)
