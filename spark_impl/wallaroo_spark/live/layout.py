"""What the states in a checkpoint are: the file ``layout.json``, for those who look at them.

States are stored by group, and a group is a number in the application's plan. Whoever looks
at a checkpoint has no application; so each run writes down what the groups hold. A run itself only
looks there whether the application has built its states alike then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wallaroo.topology import Application
from wallaroo.transport.identity import CheckpointError
from wallaroo.transport.old_states import FreshStates, Place, window_place
from wallaroo.transport.stamps import Stamp
from wallaroo.transport.stored_state import StoredEntity
from wallaroo.windows import windows_of
from wallaroo_spark.live.stamped import read_stamped, write_stamped
from wallaroo_spark.worker.plan import Member, plan

LAYOUT = "layout.json"
"""The file's name in a checkpoint's directory."""


@dataclass(frozen=True)
class Layout:
    """What the groups of a plan hold.

    Args:
        levels: of each group, the operator that holds it (`worker.plan.StateGroup.level`).
        fused: of each group, whether one shard holds all its keys.
        members: of each group, what it holds, in the order of `worker.plan.StateGroup.members`.
        expire_after: nanoseconds after which a state partition's entities expire, of those whose
            entities do (key-4).
        fresh: what states and accumulators looked like before any message, when the run that wrote
            this began (`wallaroo.transport.old_states.FreshStates.described`).
    """

    levels: tuple[int, ...]
    fused: tuple[bool, ...]
    members: tuple[tuple[Place, ...], ...]
    expire_after: Mapping[str, int]
    fresh: Mapping[str, Any]

    @property
    def operators(self) -> int:
        """The number of stateful operators."""
        return 1 + max(self.levels, default=-1)

    @property
    def window_steps(self) -> list[tuple[int, int]]:
        """The window steps: their group, and their number among its members."""
        return [
            (group, member)
            for group, members in enumerate(self.members)
            for member, place in enumerate(members)
            if place.shape
        ]

    def expired(self, entity: StoredEntity, now: int) -> bool:
        """Whether an entity has gone by this arrival time (key-4)."""
        expire_after = self.expire_after.get(entity.partition)
        return expire_after is not None and now - (entity.visited or 0) >= expire_after

    def stores_as(self, other: Layout) -> bool:
        """Whether the same states are stored in the same way in another layout."""
        parts = [(one.levels, one.fused, one.members, [*one.expire_after]) for one in (self, other)]
        return parts[0] == parts[1]


def layout_of(application: Application) -> Layout:
    """Return the layout of an application's states."""
    groups = plan(application).groups
    return Layout(
        tuple([group.level for group in groups]),
        tuple([group.fused for group in groups]),
        tuple([tuple([_place(application, one) for one in group.members]) for group in groups]),
        {
            partition.name: partition.expire_after
            for partition in application.partitions
            if partition.expire_after is not None
        },
        FreshStates(application).described(),
    )


def _place(application: Application, member: Member) -> Place:
    return Place(member) if isinstance(member, str) else window_place(application, member)


def write_layout(path: Path, layout: Layout, stamp: Stamp) -> None:
    """Write the file.

    Raises:
        OSError: it cannot be written.
    """
    write_stamped(path, stamp, asdict(layout))


def read_layout(path: Path) -> Layout:
    """Return what a file says.

    Raises:
        CheckpointError: it is missing or damaged, or cannot be read.
    """
    try:
        _, layout = read_stamped(path)
        members = tuple([tuple(map(_read_place, some)) for some in layout["members"]])
        levels, expire_after = tuple(layout["levels"]), layout["expire_after"]
        fused = tuple(map(bool, layout["fused"]))
        numbers = {type(one) for one in (*levels, *expire_after.values())}
        if not numbers <= {int} or not len(levels) == len(fused) == len(members):
            raise TypeError("it says what no run has written")
        return Layout(levels, fused, members, expire_after, dict(layout["fresh"]))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path} is damaged ({error!r:.80}). Run the application on the checkpoint once; each "
            "run writes that file"
        ) from error


def _read_place(form: Any) -> Place:
    if type(form["name"]) is not str:
        raise TypeError("a name is not text")
    if form["shape"]:
        windows_of(form["shape"])
    return Place(form["name"], tuple(form["shape"]))
