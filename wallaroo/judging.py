"""What user code gives, judged; what cannot go on raises `DeadLetterError`.

Whoever catches the error makes the dead letter. All engines that conformance judges decide by this:
the compiled path and Spark's workers. What a result may be the interpreter decides by itself; it
has the words from here, and the check of keys, which are the language's own
([why](../docs/decisions/two-interpreters.md)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from itertools import islice
from typing import Any, cast

from wallaroo.kafka import KafkaSinkConfig
from wallaroo.kafka_records import (
    PARTITION_END,
    Header,
    KafkaOutput,
    Produced,
    partition_of,
    size_of,
)
from wallaroo.keys import BadKeyError, Key, identity, is_u64, respelling_hint, show_key
from wallaroo.times import MILLISECOND
from wallaroo.topology import StatePartition
from wallaroo.trace import Reason
from wallaroo.user_code.failure import Failure, describe_error, failure_of

_PORTION = 64  # items of an iterator between two measurements
_ITEM_COST = 48  # bytes to keep an item, at least

_PAIR = "a state computation returns a pair, (output, changed), with changed True or False"


class DeadLetterError(Exception):
    """A message cannot go on (dead-1), or the whole run cannot (dead-3).

    Args:
        reason: why the message cannot go on; `None` if user code raised `SystemExit` or
            `KeyboardInterrupt`: that ends the run and makes no dead letter.
        error: what happened, for people.
        error_type: the exception's class name, if user code raised one.
        failure: where user code raised it.
    """

    def __init__(
        self,
        reason: Reason | None,
        error: str,
        error_type: str | None = None,
        failure: Failure = Failure(),  # noqa: B008 - it cannot be changed
    ) -> None:
        super().__init__(error)
        self.reason = reason
        self.error = error
        self.error_type = error_type
        self.failure = failure


def raised_by_user_code(error: BaseException, reason: Reason, engine: str) -> DeadLetterError:
    """Return the error for a message whose user code raised `error`; removes its traceback.

    Args:
        error: what user code raised.
        reason: of the dead letter; an exception that ends the run has none (dead-3).
        engine: the engine's package, whose frames are not the user's.
    """
    if not isinstance(error, Exception):
        return DeadLetterError(None, describe_error(error), type(error).__name__)
    return DeadLetterError(
        reason, describe_error(error), type(error).__name__, failure_of(error, engine)
    )


# -- keys -----------------------------------------------------------------------------------------


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


# -- results --------------------------------------------------------------------------------------


class BadResultError(DeadLetterError):
    """A result of the wrong shape; its text says what is wrong and what to write."""

    def __init__(self, error: str) -> None:
        super().__init__(Reason.BAD_RESULT, error)


class TooManyItemsError(DeadLetterError):
    """An iterator gives more items than the engine can hold; that ends the run."""

    def __init__(self) -> None:
        super().__init__(None, "an iterator gives too many items", type(self).__name__)


class BadOutputError(DeadLetterError):
    """An encoder's result that cannot be written (sink-1)."""

    def __init__(self, error: str) -> None:
        super().__init__(Reason.ENCODE, error)


def pair_of(result: Any) -> tuple[Any, bool]:
    """Return a state computation's ``(output, changed)``.

    Raises:
        BadResultError: it is not a `tuple` of length 2, or ``type(changed) is not bool`` (state-2).
    """
    if type(result) is tuple and len(result) == 2 and type(result[1]) is bool:
        return result
    if isinstance(result, tuple) and tuple.__len__(result) == 2:
        output, changed = tuple.__iter__(result)  # a subclass may override __iter__
        if type(changed) is bool:
            return output, changed
    raise bad_pair(result)


def bad_pair(result: Any) -> BadResultError:
    """Return what is wrong with a state computation's result, and what to write (state-2)."""
    if isinstance(result, tuple) and tuple.__len__(result) == 2:
        output, changed = tuple.__iter__(result)
        if type(output) is bool:
            hint = " The two are in the wrong order"
        elif type(changed) is int and changed in (0, 1):
            hint = f" Write: bool({changed!r})"
        else:
            hint = ""
        return BadResultError(f"{_PAIR}; here changed is {_kind(changed)}.{hint}")
    if result is None:
        hint = "Write: return (None, False), or (None, True) if the state is to be kept"
    elif isinstance(result, list) and len(result) == 2:
        hint = "Write parentheses: return (output, changed)"
    elif isinstance(result, tuple):
        hint = f"It has {tuple.__len__(result)} items"
    else:
        hint = "Write: return (output, True)"
    return BadResultError(f"{_PAIR}, not {_kind(result)}. {hint}")


def items_of(result: Any, most: float = math.inf) -> list[Any]:
    """Return the items of a multi computation's result, consumed completely (compute-2).

    `None` gives no items. Items that are `None` stay in the list, so that indices count them. An
    exception raised by the iteration is not caught.

    Args:
        result: what the computation returned.
        most: bytes of items that an iterator may give; it need not have an end.

    Raises:
        BadResultError: it is a str, bytes, mapping or set, or cannot be iterated.
        TooManyItemsError: its items take more than `most` bytes.
    """
    if type(result) is list:
        return result[:]
    if result is None:
        return []
    if isinstance(result, (str, bytes, bytearray, Mapping, Set)):
        raise bad_items(result)
    try:
        iterator = iter(result)
    except TypeError:
        if isinstance(result, Iterable):
            raise  # it is iterable, and its __iter__ failed
        raise bad_items(result) from None
    return _consumed(iterator, most)


def bad_items(result: Any) -> BadResultError:
    """Return what is wrong with a multi computation's result, and what to write (compute-2)."""
    if isinstance(result, (Mapping, Set)):
        return BadResultError(
            f"a multi computation returns messages in an order; {_kind(result)} has none. "
            "Write: return sorted(result), or a list of what is meant"
        )
    return BadResultError(
        f"a multi computation returns an iterable of messages, not {_kind(result)}. "
        "For a single message write: return [message]"
    )


def _consumed(iterator: Iterator[Any], most: float) -> list[Any]:
    """Return what an iterator gives; its length hint, which may be wrong, is not asked for.

    To measure each item would take as long as to make it. So one item of each portion is measured,
    and all items only if the portions seem to take too much.
    """
    items: list[Any] = []
    size = 0
    while len(portion := list(islice(iterator, _PORTION))) == _PORTION:
        another = len(items) // _PORTION % _PORTION  # large items may come at regular distances
        items += portion
        size += _PORTION * held_by(portion[another])
        if size > most and (size := sum(map(held_by, items))) > most:
            raise TooManyItemsError
    items += portion
    return items


def held_by(item: Any) -> int:
    """Return roughly how many bytes an item takes, without calling code of its class."""
    kind = type(item)
    if kind is str or kind is bytes or kind is bytearray:
        return _ITEM_COST + len(item)
    if kind is list or kind is tuple or kind is dict:
        return _ITEM_COST * (1 + len(item))
    return _ITEM_COST


def written_of(output: Any) -> bytes:
    """Return an encoder's result, which is not `None`, as bytes (sink-1).

    Raises:
        BadOutputError: it is neither bytes nor text, or text that UTF-8 refuses.
    """
    if isinstance(output, str):
        try:
            return str.encode(output)
        except UnicodeEncodeError as error:
            raise not_utf8(error) from None
    if isinstance(output, bytes):
        return b"".join((output,))  # the bytes it holds: a subclass may override __bytes__
    raise bad_output(output)


def bad_output(output: Any) -> BadOutputError:
    """Return what is wrong with an encoder's result."""
    return BadOutputError(f"an encoder returns bytes, str or None, not {_kind(output)}")


def not_utf8(error: UnicodeEncodeError) -> BadOutputError:
    """Return why an encoder's text cannot be written."""
    return BadOutputError(f"UTF-8 refuses the encoder's text: {error}")


# -- outputs for Kafka -----------------------------------------------------------------------------


def producing(sink: KafkaSinkConfig) -> Callable[[Any, int, int, int | None], Produced]:
    """Return what judges the results of a Kafka sink's encoder (kafka-13).

    It takes a result that is not `None`, the message's event time in nanoseconds, the sequence
    number of the record that caused it, and how many partitions the topic has (`None`: that has
    not been asked); it raises `BadOutputError`.
    """
    most = sink.max_message_size
    new: Callable[[type[Produced], tuple[Any, ...]], Produced] = tuple.__new__

    def produced(result: Any, time: int, number: int, partitions: int | None) -> Produced:
        if type(result) is tuple and len(result) == 2:  # the usual one
            value, key = result
            if type(value) is str and type(key) is str:
                try:  # noqa: SIM105 - a context manager takes as long as all the rest
                    value, key = value.encode(), key.encode()
                except UnicodeEncodeError:  # which is told below
                    pass
            if type(value) is bytes is type(key) and len(value) + len(key) <= most:
                place = None if partitions is None else partition_of(key, number, partitions)
                return new(Produced, (value, key, place, (), time // MILLISECOND, number))
        key = partition = None
        headers: tuple[Header, ...] = ()
        if isinstance(result, tuple):
            value, key, partition = _parts(result)
        elif isinstance(result, KafkaOutput):
            value, key, partition = result.value, result.key, result.partition
            headers = _headers(result.headers)
        elif result is not None and not isinstance(result, (bytes, str)):
            raise bad_kafka_output(f"not {_kind(result)}")
        else:
            value = result
        value, key = _sent("value", value), _sent("key", key)
        if partition is None:
            if partitions is not None:
                partition = partition_of(key, number, partitions)
        elif type(partition) is not int or not 0 <= partition < (partitions or PARTITION_END):
            raise bad_partition(partition, partitions)
        made = Produced(value, key, partition, headers, time // MILLISECOND, number)
        if (size := size_of([made])) > most:
            raise too_large(size, most)
        return made

    return produced


def _parts(result: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    items = tuple(tuple.__iter__(result))  # a subclass may override __iter__
    if len(items) not in (2, 3):
        raise bad_kafka_output(f"not a tuple of {len(items)}")
    return (*items, None)[:3]


def _headers(given: Any) -> tuple[Header, ...]:
    pairs = given.items() if isinstance(given, Mapping) else given
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable):
        raise bad_headers()
    headers = []
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise bad_headers()
        name = _sent("name of a header", pair[0])
        headers.append((name.decode(), _sent("header", pair[1])))
    return tuple(headers)


def _sent(what: str, value: Any) -> Any:
    if type(value) is bytes or value is None:
        return value
    if not isinstance(value, (bytes, str)):
        raise bad_kafka_output(f"and a {what} is bytes, str or None, not {_kind(value)}")
    return written_of(value)


def bad_kafka_output(wrong: str) -> BadOutputError:
    """Return what is wrong with an encoder's result for a Kafka sink."""
    return BadOutputError(
        "for Kafka an encoder returns a value, (value, key), (value, key, partition) or "
        f"wallaroo.KafkaOutput, {wrong}"
    )


def bad_headers() -> BadOutputError:
    """Return what is wrong with an output's headers."""
    return BadOutputError(
        "headers are pairs (name, value), the name str, the value bytes, str or None"
    )


def bad_partition(partition: object, partitions: int | None) -> BadOutputError:
    """Return what is wrong with the partition that an encoder gave."""
    if type(partition) is not int:
        return BadOutputError(f"the number of a partition is an int, not {_kind(partition)}")
    there = "there is none below 0 or above 2**31 - 1"
    if partitions is not None:
        there = f"the topic has {partitions}, counted from 0"
    return BadOutputError(f"there is no partition {partition!r:.40}: {there}")


def too_large(size: int, most: int) -> BadOutputError:
    """Return why an output cannot be sent."""
    return BadOutputError(
        f"an output of {size} bytes is above the sink's limit of {most} (max_message_size)"
    )


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
