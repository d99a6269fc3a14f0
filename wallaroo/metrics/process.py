"""What the process itself uses: processors, memory, and time for the garbage collection."""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any


class ProcessWatch:
    """Reads the process's figures.

    It watches the garbage collector from its making until `close`.
    """

    def __init__(self) -> None:
        self._gc_seconds = 0.0
        self._gc_runs = 0
        self._gc_began = 0.0
        self._seen = (time.monotonic(), time.process_time())
        gc.callbacks.append(self._on_collection)

    def close(self) -> None:
        """Stop watching."""
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)

    def look(self) -> dict[str, Any]:
        """Return the figures; `cpu` is a share of one core, since the last look."""
        now, used = time.monotonic(), time.process_time()
        before, used_before = self._seen
        self._seen = (now, used)
        return {
            "pid": os.getpid(),
            "cpu": (used - used_before) / (now - before) if now > before else 0.0,
            "cpu_seconds": used,
            "memory_bytes": _memory(),
            "threads": threading.active_count(),
            "gc_seconds": self._gc_seconds,
            "gc_runs": self._gc_runs,
        }

    def _on_collection(self, phase: str, _about: dict[str, int]) -> None:
        if phase == "start":
            self._gc_began = time.perf_counter()
        else:
            self._gc_seconds += time.perf_counter() - self._gc_began
            self._gc_runs += 1


def _memory() -> int:
    """Return the bytes of memory in use; where the system does not tell, the most so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")
