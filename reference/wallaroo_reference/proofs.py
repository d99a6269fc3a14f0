"""What a function's own instructions prove of its results, so that no call of it has to be checked.

Only what holds whatever the function is given is proven. Where an instruction is not known, or the
call is no plain Python function, nothing is, and generated code checks each result.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType, FunctionType, MethodType
from typing import Any


def always_pairs(call: Callable[..., Any]) -> bool:
    """Whether whatever a state computation returns is a pair as state-2 wants it.

    It is where each ``return`` is of the form ``return output, True`` or ``return output, False``
    and stands in no ``for``, ``with`` or ``try``, which put instructions of their own before it.
    """
    # Looked at by exact type: a proxy answers as what it stands for, and is called all the same.
    function = call.__func__ if type(call) is MethodType else call
    if type(function) is not FunctionType:
        return False
    try:
        return _code_always_pairs(function.__code__)
    except TypeError:  # constants that cannot be hashed, which some tool has put there
        return False


@lru_cache(maxsize=1024)
def _code_always_pairs(code: CodeType) -> bool:
    steps = list(dis.get_instructions(code))
    # A generator or coroutine has RETURN_GENERATOR, which returns no pair either.
    ends = [at for at, step in enumerate(steps) if "RETURN" in step.opname]
    return bool(ends) and all(_returns_pair(steps[: at + 1][-3:]) for at in ends)


def _returns_pair(steps: Sequence[dis.Instruction]) -> bool:
    """Whether the last of up to three instructions returns what those before it have made."""
    end = steps[-1]
    if end.opname == "RETURN_CONST":  # Python 3.12 and 3.13
        return _is_pair(end.argval)
    if end.opname != "RETURN_VALUE" or end.is_jump_target or len(steps) < 2:
        return False
    made = steps[-2]
    if made.opname == "LOAD_CONST":
        return _is_pair(made.argval)
    if (made.opname, made.argval) != ("BUILD_TUPLE", 2) or made.is_jump_target or len(steps) < 3:
        return False
    changed = steps[-3]
    return changed.opname == "LOAD_CONST" and type(changed.argval) is bool


def _is_pair(constant: object) -> bool:
    return type(constant) is tuple and len(constant) == 2 and type(constant[1]) is bool
