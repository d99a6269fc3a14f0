"""The catalogue: everything a case's application can be made of, by name.

Operators are components as a user writes them, decorated functions and classes mixed, so that a
case can be shown as the Python a user could have written. A case holds their names, travels as
JSON, and pickles by reference. An operator is declared once, by the decorator of its table, with
its traits: nothing else knows it by name. In each table the plainest operator stands first, because
cases are reduced towards the first.
"""

from __future__ import annotations

from wallaroo_conformance.cases.operators.computing import COMPUTATIONS
from wallaroo_conformance.cases.operators.computing_multi import MULTI_COMPUTATIONS
from wallaroo_conformance.cases.operators.decoding import DECODERS
from wallaroo_conformance.cases.operators.encoding import ENCODERS
from wallaroo_conformance.cases.operators.pairs import ODD_PAIRS
from wallaroo_conformance.cases.operators.routing import KEY_LISTS, ROUTES, U64_KEY_LISTS
from wallaroo_conformance.cases.operators.stateful import PLAIN_PAIRS
from wallaroo_conformance.cases.operators.stateful_multi import STATE_MULTI_COMPUTATIONS
from wallaroo_conformance.cases.operators.states import BUILDERS
from wallaroo_conformance.cases.operators.table import Table, Tone, Trait

STATE_COMPUTATIONS = Table(PLAIN_PAIRS, ODD_PAIRS)
STATELESS = Table(COMPUTATIONS, MULTI_COMPUTATIONS)
STATEFUL = Table(STATE_COMPUTATIONS, STATE_MULTI_COMPUTATIONS)
STEPS = Table(STATELESS, STATEFUL)

__all__ = [
    "BUILDERS",
    "COMPUTATIONS",
    "DECODERS",
    "ENCODERS",
    "KEY_LISTS",
    "MULTI_COMPUTATIONS",
    "ROUTES",
    "STATEFUL",
    "STATELESS",
    "STATE_COMPUTATIONS",
    "STATE_MULTI_COMPUTATIONS",
    "STEPS",
    "U64_KEY_LISTS",
    "Table",
    "Tone",
    "Trait",
]
