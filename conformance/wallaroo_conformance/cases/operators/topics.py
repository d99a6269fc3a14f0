"""Operators of Kafka topics: what a record says, and every form of what is sent.

A record is made of a payload of three parts: the letter is its key, the number its timestamp, the
text a header, and the payload its value.
"""

from __future__ import annotations

from typing import Any, Final

import wallaroo
from wallaroo_conformance.cases.operators.common import chosen
from wallaroo_conformance.cases.operators.decoding import DECODERS
from wallaroo_conformance.cases.operators.encoding import ENCODERS
from wallaroo_conformance.cases.operators.table import Trait
from wallaroo_conformance.cases.operators.triples import EVENT_TIMES

TEXT_HEADER: Final = "text"
MAX_SENT: Final = 150
"""Bytes that an output of a case's Kafka sinks has at most."""

EVENT_TIMES.add(Trait.OF_TOPIC)(wallaroo.kafka_timestamp)


@DECODERS.add(Trait.OF_TOPIC)
@wallaroo.kafka_decoder
def whole_record(record: wallaroo.KafkaRecord) -> Any:
    """A message of three parts that tells all of a record; one without the header raises."""
    text = (dict(record.headers)["text"] or b"").decode()
    size = "!" if record.value is None else len(record.value)
    place = f"{record.topic}/{record.partition}/{record.offset}"
    return [(record.key or b"").decode(), record.timestamp, f"{text}/{size}/{place}"]


@ENCODERS.add(Trait.OF_TOPIC)
@wallaroo.encoder
def keyed(message: Any) -> Any:
    """Return a value and a key."""
    return f"{message!a}", str(message[0])


@ENCODERS.add(Trait.OF_TOPIC)
@wallaroo.encoder
def far(message: Any) -> Any:
    """Return the last partition that a topic may have, or the one behind it."""
    return f"{message!a}", None, chosen(message, (2**31 - 1, 2**31))


@ENCODERS.add(Trait.OF_TOPIC)
@wallaroo.encoder
def large(message: Any) -> Any:
    """Return bytes with a key: together as many as an output may have, or more, or less."""
    text, key = f"{message!a}".encode(), str(message[0]).encode()
    long = text.ljust(MAX_SENT)[:MAX_SENT]
    return chosen(message, ((text, key), (long, key), (long, b""), (long[1:], b"k")))


@ENCODERS.add(Trait.OF_TOPIC)
@wallaroo.encoder
def of_any_form(message: Any) -> Any:
    """Return one of the forms of an output, or what is none."""
    text, key = f"{message!a}", str(message[0])
    forms: tuple[Any, ...] = (
        *(text, text.encode(), (text, key), (None, key), (text, None), (text, key, 0), None),
        *((text, key, None), (text, None, 0), ("", ""), (None, None), text * 20, (text, key * 200)),
        wallaroo.KafkaOutput(text, headers={"unit": "C", "none": None}),
        wallaroo.KafkaOutput(None, b"key", 0, [("twice", b"1"), ("twice", "2")]),
        # What is no output.
        *(5, [text, key], (text,), (text, key, 0, 0), (text, 5), (text, key, 9), (text, key, -1)),
        *((text, key, True), (text, "\ud800"), bytearray(b"text"), wallaroo.KafkaOutput(7)),  # type: ignore[arg-type]
        *(wallaroo.KafkaOutput(text, headers={1: b""}), wallaroo.KafkaOutput(text, headers="unit")),
        wallaroo.KafkaOutput(text, headers=[("long", "k" * 200)]),
    )
    return chosen(message, forms)


@ENCODERS.add(Trait.OF_TOPIC)
@wallaroo.encoder
def headed(message: Any) -> Any:
    """Return an output with headers, in one of the forms that they have, or in none of them."""
    pair = ("text", str(message[-1]))
    forms: tuple[Any, ...] = (
        *([pair, pair], (pair,), dict([pair]), dict([pair]).items(), iter([pair, pair]), ()),
        *([[*pair]], [pair[0]], 5, None, [(*pair, 1)], [(5, b"")], b"text", {"text": 5}),
    )
    return wallaroo.KafkaOutput(f"{message!a}", headers=chosen(message, forms))
