"""The directory in which an engine keeps state and input for a restart."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_INTERVAL = 0.02  # seconds; short, so that a killed engine has stored something
STORED = 10 * _INTERVAL  # seconds after which it has probably stored what came before


class Checkpoint:
    """A directory of one served application's own.

    Attributes:
        options: what the engine is served with (`wallaroo.engine.Capabilities.recovery`).
    """

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(
            prefix="wallaroo-conformance-", ignore_cleanup_errors=True
        )
        self.options: Mapping[str, Any] = {
            "checkpoint": Path(self._directory.name) / "checkpoint",
            "checkpoint_interval": _INTERVAL,
        }

    def remove(self) -> None:
        """Remove the directory, once nobody uses it."""
        self._directory.cleanup()
