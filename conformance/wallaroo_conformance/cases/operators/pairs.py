"""State computations that return something odd in one way only, and pairs in all others.

An engine that looks at a function's code to find out what it returns must get all of them right.
"""

from __future__ import annotations

from typing import Any

import wallaroo
from wallaroo_conformance.cases.operators.table import Table

ODD_PAIRS = Table()


@ODD_PAIRS.add()
@wallaroo.state_computation(name="number for flag")
def number_for_flag(message: Any, state: Any) -> Any:
    """Say 1 for True on a message with a y."""
    if "y" in str(message):
        return str(message), 1
    state.pages += 1
    return state.pages, True


@ODD_PAIRS.add()
@wallaroo.state_computation(name="constant number for flag")
def constant_number_for_flag(message: Any, state: Any) -> Any:
    """Say 0 for False on a message with a y."""
    if "y" in str(message):
        return None, 0
    state.pages += 1
    return state.pages, True


@ODD_PAIRS.add()
@wallaroo.state_computation(name="flag of a condition")
def flag_of_a_condition(message: Any, state: Any) -> Any:
    """Say whatever is false on a message of ys alone."""
    rest = str(message).strip("y")
    state.pages += bool(rest)
    return state.pages, rest and True


@ODD_PAIRS.add()
@wallaroo.state_computation(name="pair of a condition")
def pair_of_a_condition(message: Any, state: Any) -> Any:
    """Return text instead of a pair on a message with a y."""
    marked = "y" in str(message) and str(message)
    state.pages += not marked
    return marked or (state.pages, True)


@ODD_PAIRS.add()
@wallaroo.state_computation(name="flag behind a flag")
def flag_behind_a_flag(message: Any, state: Any) -> Any:
    """Return three on a message with a y."""
    if "y" in str(message):
        return str(message), True, True
    state.pages += 1
    return state.pages, True


@ODD_PAIRS.add()
@wallaroo.state_computation(name="listed pair")
def listed_pair(message: Any, state: Any) -> Any:
    """Return a list for a pair on a message with a y."""
    if "y" in str(message):
        return [str(message), True]
    state.pages += 1
    return state.pages, True
