"""A standalone cluster that is killed piece by piece: the part of `recovery.py` for ``--cluster``.

A master and two workers run on loopback, out of the pip package. Killed are a Python worker, an
executor, a worker with its executor, the master, and the driver, which is then started in another
folder, at another address, as on another machine that sees the same checkpoint.

With ``--supervise`` a worker runs the driver, too, and starts it again. Killed are then the
driver's JVM, the worker that runs it, and the driver's Python. With ``--elastic`` nothing is
killed: many records are sent at once, until a second executor is there, then none, until it goes.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

import psutil
from recovery_runs import Outputs, Run
from spark_cluster import HOME, ONLY_JARS, QUICK, Cluster, class_archive, java_home

SUPERVISED = ("jvm", "worker", "python")
"""What is killed of a driver in cluster mode: its JVM, the worker that runs it, its Python."""

_AWAY = 3.0  # seconds that a master or a worker is away, at most
_ENDING = 120.0  # seconds that a driver has to end
_AT_ONCE = 40_000  # records that make Spark ask for an executor
_IDLE = 5  # seconds until an executor without work goes
_MAIN = "from wallaroo.cli.main import main\n\nraise SystemExit(main())\n"


class Sender(Protocol):
    """What fills the topic."""

    paused: bool

    def at_once(self, number: int) -> None:
        """Send so many records, as fast as it can."""


class Machines:
    """The cluster, and what is killed of it.

    Args:
        directory: for its files.
        options: those of `recovery.py`.

    Attributes:
        options: those with which `wallaroo run` uses it.
    """

    def __init__(self, directory: Path, options: argparse.Namespace) -> None:
        self._how = options
        place, archive = directory / "cluster", class_archive()
        place.mkdir()
        # A master that comes back knows its workers and applications only from files.
        kept = {"recoveryMode": "FILESYSTEM", "recoveryDirectory": place / "master"}
        self._java = {**ONLY_JARS, "JAVA_HOME": str(java_home(place / "java"))}
        self._cluster = Cluster(
            place,
            self._java,
            archive,
            workers=2,
            options=[f"-Dspark.deploy.{name}={value}" for name, value in kept.items()],
            beside_driver=options.supervise,
        )
        settings = {
            "executor.memory": "512m",
            "executor.cores": "1",
            "cores.max": "2",
            "executor.extraJavaOptions": f"{QUICK} {archive}",
        }
        if options.elastic:
            settings |= {
                "dynamicAllocation.enabled": "true",
                "dynamicAllocation.minExecutors": "1",
                "dynamicAllocation.maxExecutors": "2",
                "dynamicAllocation.executorIdleTimeout": f"{_IDLE}s",
                "dynamicAllocation.shuffleTracking.enabled": "true",
                "dynamicAllocation.shuffleTracking.timeout": f"{_IDLE}s",
            }
        conf = [f"--conf=spark.{name}={value}" for name, value in settings.items()]
        self.options = ["--master", self._cluster.url, *conf]
        self._next = itertools.cycle(range(2))

    def run(self, command: list[str], log: Path) -> Run:
        """Start a run of a command."""
        if self._how.supervise:
            return SupervisedRun(command, log, self._cluster, self._java)
        return MovingRun(command, log)

    def victims(self, run: Run, sender: Sender) -> list[tuple[str, Callable[[str], bool]]]:
        """Return what is killed: names, and what kills each and has it come back."""
        if self._how.elastic:
            return [("nothing", lambda _: self._come_and_go(sender))]
        if isinstance(run, SupervisedRun):
            return [(part, run.kill) for part in SUPERVISED]
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

    def _come_and_go(self, sender: Sender) -> bool:
        """Have one executor while nothing is sent, two while much waits, then one again."""
        taken = []
        for number in (1, 2, 1):
            sender.paused = number == 1
            if number == 2:
                sender.at_once(_AT_ONCE)
            began = time.monotonic()
            while len(self._cluster.executors()) != number:
                if time.monotonic() > began + self._how.patience:
                    raise SystemExit(f"there were not {number} executors in {self._how.patience} s")
                time.sleep(0.1)
            taken.append(time.monotonic() - began)
        sender.paused = False
        print(
            f"    two executors after {taken[1]:.0f} s, then one after {taken[2]:.0f} s", flush=True
        )
        return True


class SupervisedRun(Run):
    """A run in cluster mode, as docs/cluster.md has it: a worker starts its driver, and again.

    Args:
        command: that of a run whose driver is here.
        log: as for `Run`.
        cluster: where it runs.
        java: variables with which Spark finds Java.

    Attributes:
        process: what has submitted it. It waits until the driver has ended, without an error or
            for good, unless a worker was lost: then the driver has another name from there on.
    """

    def __init__(
        self, command: list[str], log: Path, cluster: Cluster, java: Mapping[str, str]
    ) -> None:
        self._cluster = cluster
        self._environment = {**os.environ, **java, "SPARK_HOME": str(HOME)}
        self._url = cluster.url
        self._program = log.with_name("run.py")
        self._program.write_text(_MAIN)
        self._killed: psutil.Process | None = None
        super().__init__(command, log)

    def start(self) -> None:
        """Submit it."""
        at = self._command.index("run")
        arguments = [*self._command[at:]]
        master = arguments.index("--master")
        del arguments[master : master + 2]  # Spark says it
        (core,) = (HOME / "jars").glob("spark-core_*.jar")
        with self._log.open("ab") as log:
            self._begin = log.tell()
            self.process = subprocess.Popen(
                [
                    *(str(HOME / "bin" / "spark-submit"), "--master", self._url),
                    *("--deploy-mode", "cluster", "--supervise", "--driver-memory", "1g"),
                    f"--conf=spark.pyspark.python={sys.executable}",
                    "--conf=spark.standalone.submit.waitAppCompletion=true",
                    *("--class", "org.apache.spark.deploy.PythonRunner", str(core)),
                    *(str(self._program), "", *arguments),
                ],
                stderr=log,
                stdout=log,
                env=self._environment,
                start_new_session=True,
            )

    def stop(self) -> int:
        """Stop the driver in order; return 0 if it has ended, and none was started again."""
        there, python = self._cluster.driver(), self._python()
        if there is None or python is None:
            return 1
        python.terminate()
        _, alive = psutil.wait_procs([there[1], python], _ENDING)
        time.sleep(_AWAY)
        self.process.kill()
        self.process.wait()
        return 1 if alive or self._cluster.driver() else 0

    def wait_for_more(self, outputs: Outputs, patience: float) -> bool:
        """Wait for an output of another driver than the one that was killed."""
        end = time.monotonic() + patience
        while self._python() in (None, self._killed) and time.monotonic() < end:
            time.sleep(0.05)
        return super().wait_for_more(outputs, patience)

    def kill(self, target: str) -> bool:
        """Kill one of `SUPERVISED`, which comes back; or else what has submitted the driver."""
        if target not in SUPERVISED:
            self.process.kill()
            return True
        there, python = self._cluster.driver(), self._python()
        if there is None or python is None:
            return False
        self._killed = python
        number, driver = there
        if target == "worker":
            self._cluster.kill_worker(number)
            time.sleep(random.uniform(0.0, _AWAY))
            self._cluster.start_workers(number)
        else:
            (driver if target == "jvm" else python).kill()
        return True

    def _python(self) -> psutil.Process | None:
        """Return the driver's Python; its JVM has other children, too."""
        _, driver = self._cluster.driver() or (0, None)
        if driver is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in driver.children():
                    if str(self._program) in child.cmdline():
                        return child
        return None


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
