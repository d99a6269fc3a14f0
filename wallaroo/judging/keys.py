"""What a partition function may return, and the dead letters when it returns something else."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import cast

from wallaroo.judging.dead_letter import DeadLetterError
from wallaroo.keys import BadKeyError, Key, identity, is_u64, respelling_hint, show_key
from wallaroo.topology import StatePartition
from wallaroo.trace import Reason


def judged_key(key: object, *, u64: bool = False) -> Hashable:
    """Return the identity of a key, by which its entity can be stored (route-2, route-5).

    Raises:
        DeadLetterError: `bad-key`: it is not a valid key.
    """
    try:
        known = identity(key)
    except BadKeyError as error:
        raise DeadLetterError(Reason.BAD_KEY, str(error)) from None
    if u64 and not is_u64(key):
        shown = show_key(cast(Key, key))  # it is a key, or `identity` would have refused it
        raise DeadLetterError(
            Reason.BAD_KEY, f"a 64-bit key is an int from 0 to 2**64 - 1: {shown}"
        )
    return known


def unknown_key(
    key: Key, partition: StatePartition, lists: Callable[[Key], bool]
) -> DeadLetterError:
    """Return the error for a key that its state partition does not list (route-3).

    Args:
        key: the key.
        partition: the state partition.
        lists: returns whether the partition lists a key.
    """
    number = len(partition.keys or ())
    return DeadLetterError(
        Reason.UNKNOWN_KEY,
        f"{show_key(key)} is not among the {number} keys of state partition "
        f"{partition.name!r}{respelling_hint(key, lists)}",
    )
