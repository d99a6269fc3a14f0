"""The catalogue: everything a case's application can be made of, by name.

Operators are components as a user writes them, decorated functions and classes mixed, so that a
case can be shown as the Python a user could have written. A case holds their names, travels as
JSON, and pickles by reference. In each table the plainest operator stands first: what a case can
be reduced to comes before what makes it special.
"""

from __future__ import annotations

from typing import Any

from wallaroo_conformance.operators.computing import COMPUTATIONS, MULTI_COMPUTATIONS
from wallaroo_conformance.operators.decoding import DECODERS
from wallaroo_conformance.operators.encoding import ENCODERS
from wallaroo_conformance.operators.routing import KEY_LISTS, ROUTES, U64_KEY_LISTS, U64_ROUTES
from wallaroo_conformance.operators.stateful import STATE_COMPUTATIONS, STATE_MULTI_COMPUTATIONS
from wallaroo_conformance.operators.states import BUILDERS

STATELESS: dict[str, Any] = COMPUTATIONS | MULTI_COMPUTATIONS
STATEFUL: dict[str, Any] = STATE_COMPUTATIONS | STATE_MULTI_COMPUTATIONS
STEPS: dict[str, Any] = STATELESS | STATEFUL

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
    "U64_ROUTES",
]
