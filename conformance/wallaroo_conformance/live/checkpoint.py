"""The directory in which an engine that claims to recover keeps what must outlive it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wallaroo.engine import Engine

_INTERVAL = 0.02  # seconds, so that what is killed has stored something


class Checkpoint:
    """A directory of one served application's own.

    Args:
        engine: who serves; one that does not claim to recover gets no directory.

    Attributes:
        options: what the engine is served with (`wallaroo.engine.Capabilities.recovery`).
    """

    def __init__(self, engine: Engine) -> None:
        self.options: Mapping[str, Any] = {}
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        if engine.capabilities().recovery:
            self._directory = tempfile.TemporaryDirectory(
                prefix="wallaroo-conformance-", ignore_cleanup_errors=True
            )
            self.options = {
                "checkpoint": Path(self._directory.name) / "checkpoint",
                "checkpoint_interval": _INTERVAL,
            }

    def remove(self) -> None:
        """Remove the directory, once nobody uses it."""
        if self._directory is not None:
            self._directory.cleanup()
