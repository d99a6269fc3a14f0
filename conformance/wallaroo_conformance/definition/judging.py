"""What user code gives: copies of it, and whether it is what it should be."""

from __future__ import annotations

import hashlib
import pickle
import traceback
from collections.abc import Callable, Iterable, Mapping, Set
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeAlias

from wallaroo.kafka import KafkaSinkConfig
from wallaroo.kafka_records import KafkaOutput, Produced
from wallaroo.topology import Codec
from wallaroo.trace import Reason

Copy: TypeAlias = bytes
"""A message, state or accumulator, pickled: each call of user code gets an object of its own."""

_LONGEST_KEY = 64 * 1024  # bytes of its encoding (route-2)
_TIMES = range(1 << 63)  # nanoseconds (time-2)
_U64 = range(1 << 64)
_PARTITIONS = range(1 << 31)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DeadMessageError(Exception):
    """A message cannot go on (dead-1).

    Args:
        reason: why.
        error: what happened, for people.
        error_type: the exception's class, if user code raised one.
    """

    def __init__(self, reason: Reason, error: str, error_type: str | None = None) -> None:
        super().__init__(reason, error_type, error)


class ExitError(Exception):
    """User code raised what ends the run (dead-3); the text is the exception's class."""


def called(call: Callable[..., Any], *arguments: Any, reason: Reason = Reason.RAISED) -> Any:
    """Return what a call of user code gives.

    Raises:
        DeadMessageError: it raised an `Exception`.
        ExitError: it raised anything else.
    """
    try:
        return call(*arguments)
    except Exception as error:
        text = "".join(traceback.format_exception_only(error)).strip()
        kind = None if reason is Reason.UNPORTABLE else type(error).__name__  # as dead-1 has it
        raise DeadMessageError(reason, text, kind) from error
    except BaseException as error:
        raise ExitError(type(error).__name__) from error


class Copies:
    """Copies by pickle, or by an application's own codec (key-5)."""

    def __init__(self, codec: Codec | None) -> None:
        self._serialize = codec.serialize if codec else partial(pickle.dumps, protocol=5)
        self._deserialize = codec.deserialize if codec else pickle.loads

    def of(self, value: Any) -> Copy:
        """Return a copy that can be read; raises as `called`, with the reason `unportable`."""
        copy: Copy = called(self._written, value, reason=Reason.UNPORTABLE)
        return copy

    def _written(self, value: Any) -> Copy:
        copy = self._serialize(value)
        if type(copy) is not bytes:
            raise TypeError("serialize gives bytes")
        self._deserialize(copy)
        return copy

    def read(self, copy: Copy) -> Any:
        """Return an object that nobody else has."""
        return self._deserialize(copy)


def encoded_key(key: Any, *, u64: bool = False) -> bytes:
    """Return the canonical encoding of a key: two keys are the same if their encodings are.

    Raises:
        DeadMessageError: `bad-key` (route-2, route-5).
    """
    encoding, waiting = b"", [key]
    while waiting and len(encoding) <= _LONGEST_KEY:
        item = waiting.pop(0)
        if type(item) is tuple:
            waiting[:0] = item
            encoding += b"t" + len(item).to_bytes(4, "big")
            continue
        if type(item) is str:
            kind, content = b"s", item.encode("utf-8", "surrogatepass")
        elif type(item) is bytes:
            kind, content = b"b", item
        elif type(item) is int:
            bits = (item if item >= 0 else ~item).bit_length()
            kind, content = b"i", item.to_bytes(bits // 8 + 1, "big", signed=True)
        else:
            raise DeadMessageError(Reason.BAD_KEY, f"a {type(item).__name__} is no key")
        encoding += kind + len(content).to_bytes(4, "big") + content
    if len(encoding) > _LONGEST_KEY:
        raise DeadMessageError(Reason.BAD_KEY, "the key is too long")
    if u64 and not (type(key) is int and key in _U64):
        raise DeadMessageError(Reason.BAD_KEY, "the key is no number of 64 bits")
    return encoding


def partition_of_key(encoded: bytes, partitions: int) -> int:
    """Return the partition number of an encoded key (route-4)."""
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "big") % partitions


def event_time(given: Any) -> int:
    """Return an event time in nanoseconds.

    Raises:
        DeadMessageError: `bad-time`.
    """
    time = given
    if isinstance(given, datetime) and given.utcoffset() is not None:
        time = (given - _EPOCH) // timedelta(microseconds=1) * 1000
    if type(time) is not int or time not in _TIMES:
        raise DeadMessageError(Reason.BAD_TIME, f"a {type(given).__name__} is no event time")
    return time


def pair_of(result: Any) -> tuple[Any, bool]:
    """Return a state computation's output, and whether the state has changed (state-2).

    Raises:
        DeadMessageError: `bad-result`.
    """
    if isinstance(result, tuple):
        items = [*tuple.__iter__(result)]
        if len(items) == 2 and type(items[1]) is bool:
            return items[0], items[1]
    raise DeadMessageError(Reason.BAD_RESULT, "it is no pair (output, changed)")


def items_of(result: Any) -> list[Any]:
    """Return the items of a multi computation's result; `None` stays, and counts (compute-2).

    It is part of the call: what it raises, the call has raised.

    Raises:
        DeadMessageError: `bad-result`: it is no iterable of messages in an order.
    """
    if result is None:
        return []
    if isinstance(result, (str, bytes, bytearray, Mapping, Set)):
        raise DeadMessageError(Reason.BAD_RESULT, "these are no messages in an order")
    if not isinstance(result, Iterable) and not hasattr(type(result), "__getitem__"):
        raise DeadMessageError(Reason.BAD_RESULT, "it cannot be iterated")
    items: list[Any] = called(lambda: [item for item in result])  # noqa: C416 - list() asks for a length
    return items


def bytes_of(output: Any) -> bytes:
    """Return what is written of an encoder's result (sink-1).

    Raises:
        DeadMessageError: `encode`.
    """
    if isinstance(output, str):
        try:
            return str.encode(output, "utf-8")
        except UnicodeEncodeError as error:
            raise DeadMessageError(Reason.ENCODE, "UTF-8 refuses the text") from error
    if isinstance(output, bytes):
        return bytes(memoryview(output))
    raise DeadMessageError(Reason.ENCODE, f"a {type(output).__name__} is no output")


def produced(sink: KafkaSinkConfig[Any], result: Any, time: int, number: int) -> Produced:
    """Return what is sent to Kafka of an encoder's result (kafka-13).

    Args:
        sink: the sink.
        result: what its encoder gave.
        time: the message's event time.
        number: of the record that caused it.

    Raises:
        DeadMessageError: `encode`.
    """
    output = result
    if isinstance(result, tuple):
        parts = [*tuple.__iter__(result)]
        if len(parts) not in (2, 3):
            raise DeadMessageError(Reason.ENCODE, "it is no (value, key, partition)")
        output = KafkaOutput(*parts)
    elif not isinstance(result, KafkaOutput):
        output = KafkaOutput(bytes_of(result))
    value, key, place = _sent(output.value), _sent(output.key), output.partition
    headers = []
    pairs = output.headers.items() if isinstance(output.headers, Mapping) else output.headers
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable):
        raise DeadMessageError(Reason.ENCODE, "headers are pairs")
    for header in pairs:
        if not (isinstance(header, tuple) and len(header) == 2 and isinstance(header[0], str)):
            raise DeadMessageError(Reason.ENCODE, "a header is a name and a value")
        headers.append((bytes_of(header[0]).decode(), _sent(header[1])))
    if place is None:
        if sink.partitions is not None:
            hashed = number if key is None else murmur2(key) & 0x7FFFFFFF
            place = hashed % sink.partitions
    elif type(place) is not int or place not in _PARTITIONS[: sink.partitions]:
        raise DeadMessageError(Reason.ENCODE, "there is no such partition")
    made = Produced(value, key, place, tuple(headers), time // 10**6, number)
    whole = [value, key, *[part for name, one in headers for part in (name.encode(), one)]]
    if sum(len(part or b"") for part in whole) > sink.max_message_size:
        raise DeadMessageError(Reason.ENCODE, "it is too large")
    return made


def _sent(part: Any) -> bytes | None:
    return None if part is None else bytes_of(part)


def murmur2(data: bytes) -> int:
    """Return the hash by which Kafka's producer for Java finds a partition."""
    hashed, factor, mask = 0x9747B28C ^ len(data), 0x5BD1E995, 0xFFFFFFFF
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * factor & mask
        hashed = (hashed * factor & mask) ^ ((word ^ word >> 24) * factor & mask)
    if whole < len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * factor & mask
    hashed = (hashed ^ hashed >> 13) * factor & mask
    return hashed ^ hashed >> 15
