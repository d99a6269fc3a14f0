"""The run that is killed and started again, and its processes (`recovery.py`)."""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

import psutil

TARGETS = {"reference": ("driver",), "spark": ("driver", "jvm", "worker", "all")}
_PAUSE = {"reference": 0.4, "spark": 2.0}  # seconds from an output to a kill, at most


class Outputs(Protocol):
    """What has come out so far."""

    @property
    def count(self) -> int:
        """How many outputs."""


class Run:
    """The current run and its processes; `start` starts the next one.

    Args:
        command: starts it.
        log: the file for what runs say.

    Attributes:
        process: the process.
        ended: what runs said that ended without having been killed.
    """

    def __init__(self, command: list[str], log: Path) -> None:
        self.ended: list[str] = []
        self._command = command
        self._log = log
        self.start()

    def start(self) -> None:
        """Start a run."""
        with self._log.open("ab") as log:
            self._begin = log.tell()
            self.process = subprocess.Popen(  # Ctrl-C is for the benchmark alone
                self._command, stderr=log, stdout=log, start_new_session=True
            )

    def stop(self) -> int:
        """Stop it in order; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()

    def wait_for_more(self, outputs: Outputs, patience: float) -> bool:
        """Wait for an output; a run that ends by itself is started again, as a service would be.

        Returns:
            Whether there was one.
        """
        before = outputs.count
        end = time.monotonic() + patience
        while outputs.count == before:
            if time.monotonic() > end:
                print(f"    no output in {patience:.0f} s; the log is {self._log}", flush=True)
                return False
            if self.process.poll() is not None:
                self._note_end()
                self.start()
            time.sleep(0.05)
        return True

    def kill(self, target: str) -> bool:
        """Kill one of its processes; return whether it was running."""
        jvm, workers = self._jvm(), self._workers()
        victims: dict[str, list[int | None]] = {
            "driver": [self.process.pid],
            "jvm": [jvm],
            "worker": [*workers[-1:]],
            "all": [self.process.pid, jvm, *workers],
        }
        pids = [pid for pid in victims[target] if pid is not None]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return bool(pids)

    def kill_and_start(self, target: str) -> bool:
        """Kill one of its processes, and start a run if that has ended this one."""
        killed = self.kill(target)
        if killed and target != "worker":
            self.process.wait()
            self.start()
        return killed

    def _note_end(self) -> None:
        """Keep a run's exit code, and its last line."""
        with self._log.open("rb") as log:
            log.seek(self._begin)
            lines = log.read().decode(errors="replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
        self.ended.append(f"exit {self.process.returncode}: {said}")
        print(f"    the run ended by itself, {self.ended[-1]}", flush=True)

    def _jvm(self) -> int | None:
        return next(iter(_children(self.process.pid)), None)

    def _workers(self) -> list[int]:
        """Return the Python workers, which are the daemon's children."""
        jvm = self._jvm()
        return [] if jvm is None else [w for d in _children(jvm) for w in _children(d)]


def kill_again(
    run: Run,
    victims: Iterable[tuple[str, Callable[[str], bool]]],
    outputs: Outputs,
    options: argparse.Namespace,
    so_far: Callable[[], str],
) -> tuple[Counter[str], bool]:
    """Kill one after the other at random moments, and wait each time for an output.

    Ctrl-C, SIGTERM and ``--minutes`` end it.

    Args:
        run: what is killed, or goes on.
        victims: names, each with what kills it and has it come back, and returns whether it was
            there.
        outputs: what has come out.
        options: those of `recovery.py`.
        so_far: what to add to a kill's line.

    Returns:
        How often each was killed, and whether outputs came after the last one.
    """
    draw = random.Random(options.seed)
    stopping = threading.Event()
    for stop in (signal.SIGINT, signal.SIGTERM):  # a shell's background job has no SIGINT
        signal.signal(stop, lambda *_: stopping.set())
    end = time.monotonic() + 60 * options.minutes
    killed: Counter[str] = Counter()
    if not run.wait_for_more(outputs, options.patience):
        return killed, False
    for name, kill in victims:
        stopping.wait(draw.uniform(0.0, _PAUSE[options.engine]))
        if time.monotonic() > end:
            stopping.set()
        while not stopping.is_set() and not kill(name):
            stopping.wait(0.05)  # it is not there yet
        if stopping.is_set():
            print("no more kills", flush=True)
            break
        killed[name] += 1
        since = time.monotonic()
        went_on = run.wait_for_more(outputs, options.patience)
        print(
            f"{killed.total():3} {name} killed; outputs again after "
            f"{time.monotonic() - since:.1f} s; {so_far()}; runs ended by themselves: "
            f"{len(run.ended)}",
            flush=True,
        )
        if not went_on:
            return killed, False
    return killed, True


def _children(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.NoSuchProcess:
        return []
