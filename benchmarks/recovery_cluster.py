"""A standalone cluster that is killed piece by piece: the part of `recovery.py` for ``--cluster``.

A master and two workers run on loopback, out of the pip package. Killed are a Python worker, an
executor, a worker with its executor, the master, and the driver, which is then started in another
folder, at another address, as on another machine that sees the same checkpoint.
"""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

import psutil
from recovery_runs import Run
from spark_cluster import ONLY_JARS, QUICK, Cluster, class_archive, java_home

_AWAY = 3.0  # seconds that a master or a worker is away, at most


class Machines:
    """The cluster, and what is killed of it.

    Args:
        directory: for its files.

    Attributes:
        options: those with which `wallaroo run` uses it.
    """

    def __init__(self, directory: Path) -> None:
        place, archive = directory / "cluster", class_archive()
        place.mkdir()
        # A master that comes back knows its workers and applications only from files.
        kept = {"recoveryMode": "FILESYSTEM", "recoveryDirectory": place / "master"}
        self._cluster = Cluster(
            place,
            {**ONLY_JARS, "JAVA_HOME": str(java_home(place / "java"))},
            archive,
            workers=2,
            options=[f"-Dspark.deploy.{name}={value}" for name, value in kept.items()],
        )
        executors = {"memory": "512m", "extraJavaOptions": f"{QUICK} {archive}"}
        settings = [f"--conf=spark.executor.{name}={value}" for name, value in executors.items()]
        self.options = ["--master", self._cluster.url, *settings]
        self._next = itertools.cycle(range(2))

    def victims(self, run: Run) -> list[tuple[str, Callable[[str], bool]]]:
        """Return what is killed: names, and what kills each and has it come back."""
        return [
            ("executor", self._kill_executor),
            ("cluster worker", self._kill_worker),
            ("driver", run.kill_and_start),
            ("master", self._kill_master),
            ("python worker", self._kill_python),
        ]

    def close(self) -> None:
        """End it."""
        self._cluster.close()

    def _kill_executor(self, _: str) -> bool:
        return _kill(self._cluster.executors())

    def _kill_python(self, _: str) -> bool:
        daemons = [child for one in self._cluster.executors() for child in one.children()]
        return _kill([worker for daemon in daemons for worker in daemon.children()])

    def _kill_worker(self, _: str) -> bool:
        number = next(self._next)
        self._cluster.kill_worker(number)
        time.sleep(random.uniform(0.0, _AWAY))
        self._cluster.start_workers(number)
        return True

    def _kill_master(self, _: str) -> bool:
        self._cluster.kill_master()
        time.sleep(random.uniform(0.0, _AWAY))
        self._cluster.start_master()
        return True


class MovingRun(Run):
    """A run of which each start is in a folder of its own, with a copy of the application there.

    The driver is at another address each time.
    """

    _number = 1

    def start(self) -> None:
        """Start a run, elsewhere."""
        self._number += 1
        folder = Path(tempfile.mkdtemp(prefix="elsewhere-", dir=self._log.parent))
        at = self._command.index("run") + 1
        application = shutil.copy(self._command[at], folder)
        address = f"127.0.0.{self._number}"
        with self._log.open("ab") as log:
            self._begin = log.tell()
            self.process = subprocess.Popen(
                [
                    *self._command[:at],
                    application,
                    f"--conf=spark.driver.host={address}",
                    f"--conf=spark.driver.bindAddress={address}",
                    *self._command[at + 1 :],
                ],
                cwd=folder,
                stderr=log,
                stdout=log,
                start_new_session=True,
            )


def _kill(processes: list[psutil.Process]) -> bool:
    """Kill the first of them; return whether there is one."""
    for process in processes[:1]:
        process.kill()
    return bool(processes)
