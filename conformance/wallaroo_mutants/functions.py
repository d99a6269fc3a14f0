"""Functions that stand in for the interpreter's: what is a key, a pair, a result."""

# ruff: noqa: D103 - `catalogue` says what each does

from __future__ import annotations

import pickle
import unicodedata
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

from wallaroo_reference.isolated.copies import PROTOCOL, Frozen, _is_flat, _Plain, freeze
from wallaroo_reference.places import FrozenEntity, Store

from wallaroo.judging import DeadLetterError, items_of, pair_of, written_of
from wallaroo.keys import identity
from wallaroo.trace import Reason


def same_when_text_is(key: Any) -> Hashable:
    identity(key)
    return str(key)


def same_when_normalised(key: Any) -> Hashable:
    return identity(unicodedata.normalize("NFC", key) if type(key) is str else key)


def ascii_only(key: Any) -> Hashable:
    return identity(key.encode("ascii", "ignore").decode() if type(key) is str else key)


def any_hashable(key: Any) -> Hashable:
    """Accept as a key whatever Python can hash."""
    return identity(int(key) if isinstance(key, int) else key)


def hash_number(key: Any, partitions: int) -> int:
    return hash(key) % partitions if partitions > 1 else 0


def truncated(store: Store[FrozenEntity], key: Any) -> Hashable:
    """Truncate a number to 64 bits."""
    if store.partition.u64 and type(key) is int:
        key &= (1 << 64) - 1
    return _judge(store, key)


def signed(store: Store[FrozenEntity], key: Any) -> Hashable:
    """Accept numbers of up to 63 bits only."""
    if store.partition.u64 and type(key) is int and key >= 1 << 63:
        raise DeadLetterError(Reason.BAD_KEY, "int too large to convert to a signed 64-bit integer")
    return _judge(store, key)


def never_zero(store: Store[FrozenEntity], key: Any) -> Hashable:
    """Take 0 for no key where numbers are meant."""
    if store.partition.u64 and type(key) is int and not key:
        raise DeadLetterError(Reason.BAD_KEY, "no key")
    return _judge(store, key)


def never_empty(store: Store[FrozenEntity], key: Any) -> Hashable:
    """Take empty text and bytes for no key."""
    if type(key) in (str, bytes) and not key:
        raise DeadLetterError(Reason.BAD_KEY, "no key")
    return _judge(store, key)


def written_text(output: Any) -> bytes:
    """Take text alone for an output."""
    if isinstance(output, bytes):
        raise DeadLetterError(Reason.ENCODE, "expected text")
    return written_of(output)


def thawed_without_dicts(frozen: _Plain) -> Any:
    value: Any = object.__new__(frozen.kind)
    for name, item in frozen.attributes.items():
        value.__dict__[name] = item.copy() if type(item) is list else item
    return value


def flat_if_a_dict(value: Any) -> bool:
    return type(value) is dict or _is_flat(value)


def pickled_only(value: Any) -> Any:
    """Pickle a value, and find out where it is needed whether it can be unpickled."""
    try:
        return freeze(value)
    except DeadLetterError:
        with suppress(Exception):
            return Frozen(pickle.dumps(value, PROTOCOL), None)
        raise


def forgiving_pair(result: Any) -> tuple[Any, bool]:
    """Unpack whatever can be unpacked, and accept any value as the flag."""
    try:
        output, changed = result
    except (TypeError, ValueError):
        return pair_of(result)
    return output, bool(changed)


def forgiving_items(result: Any, most: float) -> list[Any]:
    """Accept whatever can be iterated."""
    if isinstance(result, (str, bytes, bytearray, dict, set, frozenset)):
        return list(result)
    return items_of(result, most)


def items_of_whole_portions(result: Any, most: float) -> list[Any]:
    """Lose the portion that is not full, of an iterator that is longer than one."""
    items = items_of(result, most)
    if isinstance(result, (list, tuple)) or len(items) <= 64:
        return items
    return items[: len(items) // 64 * 64]


def replacing_written(output: Any) -> bytes:
    """Replace what UTF-8 refuses, and write results of any type."""
    if isinstance(output, bytes):
        return bytes(output)
    return str(output).encode("utf-8", "replace")


def exit_is_letter(error: BaseException, reason: Reason) -> DeadLetterError:
    """Treat `SystemExit` like any other exception of user code."""
    return DeadLetterError(reason, str(error), type(error).__name__)


_judge = Store.judge
