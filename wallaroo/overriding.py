"""`override` for every Python that we claim: `typing` has it from 3.12 on.

A method that keeps the promise of the class or protocol it comes from is marked with it, and needs
no docstring: the promise has one.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["override"]

if TYPE_CHECKING:
    from typing_extensions import override
elif sys.version_info >= (3, 12):
    from typing import override
else:
    from collections.abc import Callable
    from typing import TypeVar

    Method = TypeVar("Method", bound=Callable[..., object])

    def override(method: Method) -> Method:
        """Return the method as it is; type checkers compare it with the one it stands for."""
        return method
