"""The catalogue: everything a case's application can be made of, by name.

Operators are components as a user writes them, decorated functions and classes mixed, so that a
case can be shown as the Python a user could have written. A case holds their names, travels as
JSON, and pickles by reference. An operator is declared once, by the decorator of its table, with
its traits. Others choose it by its traits. In each table the plainest operator stands first,
because cases are reduced towards the first.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from wallaroo.components import Decoder, decoder_of
from wallaroo_conformance.cases.operators import topics as _topics  # noqa: F401 - it adds to tables
from wallaroo_conformance.cases.operators.aggregations import AGGREGATIONS, COMBINING
from wallaroo_conformance.cases.operators.computing import COMPUTATIONS
from wallaroo_conformance.cases.operators.computing_multi import MULTI_COMPUTATIONS
from wallaroo_conformance.cases.operators.decoding import DECODERS
from wallaroo_conformance.cases.operators.encoding import ENCODERS
from wallaroo_conformance.cases.operators.routing import (
    KEY_LISTS,
    PARTITION_FUNCTIONS,
    key_lists,
)
from wallaroo_conformance.cases.operators.stateful import STATE_COMPUTATIONS
from wallaroo_conformance.cases.operators.stateful_multi import STATE_MULTI_COMPUTATIONS
from wallaroo_conformance.cases.operators.states import BUILDERS
from wallaroo_conformance.cases.operators.table import Table, Tone, Trait
from wallaroo_conformance.cases.operators.triples import EVENT_TIMES, KEYS

STATELESS = Table(COMPUTATIONS, MULTI_COMPUTATIONS)
STATEFUL = Table(STATE_COMPUTATIONS, STATE_MULTI_COMPUTATIONS)
STEPS = Table(STATELESS, STATEFUL)
"""Computations."""
ROUTES = Table(PARTITION_FUNCTIONS, KEYS)
"""In the builder's form a key extractor can stand for a partition function."""
GRAPH = ("collect", "merge")
"""Operators that have no component."""
ALTERING = frozenset(
    [
        *Table(KEYS, AGGREGATIONS, EVENT_TIMES).having(Trait.FINDING),
        *BUILDERS.having(Trait.PICKLES_ANEW),
    ]
)
"""Operators that alter what they are only to read, and builders of what pickling alters, which no
check finds: `trusting` mode is not promised to them."""


def value_of(decoder: str, payload: bytes) -> Any:
    """Return the value that a generator gives where a payload stands in a case.

    Raises:
        ValueError: the decoder does not take the payload.
    """
    return _decoder(decoder).call(payload)


@cache
def _decoder(name: str) -> Decoder:
    return decoder_of(DECODERS[name])


__all__ = [
    "AGGREGATIONS",
    "ALTERING",
    "BUILDERS",
    "COMBINING",
    "COMPUTATIONS",
    "DECODERS",
    "ENCODERS",
    "EVENT_TIMES",
    "GRAPH",
    "KEYS",
    "KEY_LISTS",
    "MULTI_COMPUTATIONS",
    "ROUTES",
    "STATEFUL",
    "STATELESS",
    "STATE_COMPUTATIONS",
    "STATE_MULTI_COMPUTATIONS",
    "STEPS",
    "Table",
    "Tone",
    "Trait",
    "key_lists",
    "value_of",
]
