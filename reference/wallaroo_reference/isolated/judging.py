"""What a result may be, as the interpreter decides it by itself (state-2, compute-2, sink-1).

The judged engines decide by `wallaroo.judging`. Only the words that say what is wrong with a result
come from there: a slip reads the same on every engine, and a wrong decision shows as a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from wallaroo.judging import (
    TooManyItemsError,
    bad_headers,
    bad_items,
    bad_kafka_output,
    bad_output,
    bad_pair,
    bad_partition,
    held_by,
    not_utf8,
    too_large,
)
from wallaroo.kafka import KafkaSinkConfig
from wallaroo.kafka_records import KafkaOutput, Produced, partition_of


def pair_of(result: Any) -> tuple[Any, bool]:
    """Return a state computation's ``(output, changed)``.

    Raises:
        BadResultError: it is no tuple of two, or `changed` is neither `True` nor `False` (state-2).
    """
    if isinstance(result, tuple) and tuple.__len__(result) == 2:
        output, changed = tuple.__iter__(result)  # a subclass may override __iter__
        if changed is True or changed is False:
            return output, changed
    raise bad_pair(result)


def items_of(result: Any, most: float) -> list[Any]:
    """Return the items of a multi computation's result, consumed completely (compute-2).

    Args:
        result: what the computation returned; `None` gives no items.
        most: bytes of items that an iterator may give; it need not have an end.

    Raises:
        BadResultError: it has no items, or they have no order.
        TooManyItemsError: its items take more than `most` bytes.
    """
    if result is None:
        return []
    if type(result) is list:  # it is in memory already, however long
        return result[:]
    if isinstance(result, (str, bytes, bytearray, Mapping, Set)):
        raise bad_items(result)
    try:
        iterator = iter(result)
    except TypeError:
        if isinstance(result, Iterable):
            raise  # it is iterable, and its __iter__ failed
        raise bad_items(result) from None
    items: list[Any] = []
    size = 0
    for item in iterator:
        items.append(item)
        size += held_by(item)
        if size > most:
            raise TooManyItemsError
    return items


def written_of(output: Any) -> bytes:
    """Return an encoder's result, which is not `None`, as bytes (sink-1).

    Raises:
        BadOutputError: it is neither bytes nor text, or text that UTF-8 refuses.
    """
    if isinstance(output, bytes):
        return b"".join((output,))  # the bytes it holds: a subclass may override __bytes__
    if not isinstance(output, str):
        raise bad_output(output)
    try:
        return str.encode(output)
    except UnicodeEncodeError as error:
        raise not_utf8(error) from None


def produced_of(
    sink: KafkaSinkConfig, output: Any, time: int, number: int, partitions: int | None
) -> Produced:
    """Return what is sent for an encoder's result, which is not `None`, to a Kafka sink (kafka-13).

    Args:
        sink: the sink's configuration.
        output: what the encoder returned.
        time: the message's event time, in nanoseconds.
        number: the sequence number of the record that caused it.
        partitions: how many partitions the topic has; `None`: that has not been asked.

    Raises:
        BadOutputError: it cannot be sent.
    """
    if isinstance(output, KafkaOutput):
        said = output
    elif isinstance(output, tuple):
        if tuple.__len__(output) not in {2, 3}:
            raise bad_kafka_output(f"not a tuple of {tuple.__len__(output)}")
        said = KafkaOutput(*tuple.__iter__(output))  # a subclass may override __iter__
    elif isinstance(output, (bytes, str)):
        said = KafkaOutput(output)
    else:
        raise bad_kafka_output(f"not a {type(output).__name__}")
    headers = [
        (_text_of(name), _bytes_of("header", value)) for name, value in _pairs_of(said.headers)
    ]
    value, key = _bytes_of("value", said.value), _bytes_of("key", said.key)
    partition = said.partition
    if partition is not None:
        end = 2**31 if partitions is None else partitions
        if type(partition) is not int or partition not in range(end):
            raise bad_partition(partition, partitions)
    elif partitions is not None:
        partition = partition_of(key, number, partitions)
    parts = [value, key, *[part for name, held in headers for part in (name.encode(), held)]]
    size = sum([len(part) for part in parts if part is not None])
    if size > sink.max_message_size:
        raise too_large(size, sink.max_message_size)
    return Produced(value, key, partition, tuple(headers), time // 10**6, number)


def _pairs_of(headers: Any) -> list[tuple[Any, Any]]:
    if isinstance(headers, Mapping):
        return list(headers.items())
    if isinstance(headers, (str, bytes)) or not isinstance(headers, Iterable):
        raise bad_headers()
    pairs = list(headers)
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise bad_headers()
    return pairs


def _text_of(name: Any) -> str:
    if not isinstance(name, str):
        raise bad_headers()
    return written_of(name).decode()


def _bytes_of(what: str, value: Any) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, (bytes, str)):
        raise bad_kafka_output(f"and a {what} is bytes, str or None, not a {type(value).__name__}")
    return written_of(value)
