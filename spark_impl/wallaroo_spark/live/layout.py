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
from wallaroo.transport.checkpoint import CheckpointError
from wallaroo.transport.old_states import FreshStates
from wallaroo.transport.stamps import Stamp
from wallaroo_spark.live.stamped import read_stamped, write_stamped
from wallaroo_spark.worker.plan import Member, plan

LAYOUT = "layout.json"
"""The file's name in a checkpoint's directory."""


@dataclass(frozen=True)
class Layout:
    """What the groups of a plan hold.

    Args:
        levels: of each group, the operator that holds it (`worker.plan.StateGroup.level`).
        members: of each group, what it holds (`worker.plan.StateGroup.members`).
        expire_after: nanoseconds after which a state partition's entities expire, of those whose
            entities do (key-4).
        fresh: what states and accumulators looked like before any message, when the run that wrote
            this began (`wallaroo.transport.old_states.FreshStates.described`).
    """

    levels: tuple[int, ...]
    members: tuple[tuple[Member, ...], ...]
    expire_after: Mapping[str, int]
    fresh: Mapping[str, Any]

    @property
    def operators(self) -> int:
        """The number of stateful operators."""
        return 1 + max(self.levels, default=-1)


def layout_of(application: Application) -> Layout:
    """Return the layout of an application's states."""
    groups = plan(application).groups
    return Layout(
        tuple([group.level for group in groups]),
        tuple([group.members for group in groups]),
        {
            partition.name: partition.expire_after
            for partition in application.partitions
            if partition.expire_after is not None
        },
        FreshStates(application).described(),
    )


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
        members = tuple(map(tuple, layout["members"]))
        levels, expire_after = tuple(layout["levels"]), layout["expire_after"]
        numbers = {type(one) for one in (*levels, *expire_after.values())}
        if not numbers <= {int} or not {type(one) for some in members for one in some} <= {
            int,
            str,
        }:
            raise TypeError("it says what no run has written")
        return Layout(levels, members, expire_after, dict(layout["fresh"]))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path} is damaged ({error!r:.80}). Run the application on the checkpoint once; each "
            "run writes that file"
        ) from error
