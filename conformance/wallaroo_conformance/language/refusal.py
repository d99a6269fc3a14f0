"""A mistake that the language must refuse, and what its error must say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wallaroo.errors import WallarooParameterError


@dataclass(frozen=True)
class Refusal:
    """A mistake, and the words its error must contain.

    Args:
        name: the mistake.
        build: makes it.
        words: application, pipeline, step, and the line to write instead.
    """

    name: str
    build: Callable[[], Any]
    words: tuple[str, ...]

    def problem(self) -> str | None:
        """Return what is wrong with how the mistake is refused, or `None`."""
        try:
            self.build()
        except WallarooParameterError as error:
            missing = [word for word in self.words if word not in str(error)]
            return f"the error does not say {missing}: {error}" if missing else None
        except Exception as error:  # noqa: BLE001 - anything else is not what was promised
            return f"{type(error).__name__} instead of WallarooParameterError: {error}"
        return "it is not refused"
