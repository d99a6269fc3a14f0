"""Under `spark-submit`, which brings a JVM of its own."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from wallaroo.frames import frames

EXAMPLES = Path(__file__).parents[2] / "examples"
MAIN = "from wallaroo.cli.main import main\n\nraise SystemExit(main())\n"


@pytest.mark.nightly("two JVMs of its own; all else is as under `wallaroo run`")
def test_spark_submit_runs_an_application(java_home, class_archive, only_jars, tmp_path):
    (tmp_path / "run.py").write_text(MAIN)
    environment = {**os.environ, **only_jars, "JAVA_HOME": str(java_home)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    with socket.create_server(("127.0.0.1", 0)) as sink:
        command = [shutil.which("spark-submit", path=environment["PATH"]), "--master", "local[1]"]
        quick = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {class_archive}"
        command += ["--driver-java-options", quick]
        command += [str(tmp_path / "run.py"), "run", str(EXAMPLES / "word_count.py")]
        command += ["--engine", "spark", "--partitions", "1"]
        command += ["--progress", "none", "--stop-timeout", "120"]
        command += ["--in", "127.0.0.1:0", "--out", f"127.0.0.1:{sink.getsockname()[1]}"]
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            line = next(line for line in process.stdout if " listening on " in line)
            with socket.create_connection(("127.0.0.1", int(line.rpartition(":")[2]))) as source:
                source.sendall(frames([b"the cat", b"the dog"]))
            connection, _ = sink.accept()
            with connection, connection.makefile("rb") as received:
                counts = [received.readline() for _ in range(4)]
            driver_of(process.pid, tmp_path / "run.py").send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert counts == [b"the => 1\n", b"cat => 1\n", b"the => 2\n", b"dog => 1\n"], said
    assert process.returncode == 0


def driver_of(pid, program):
    """Return the Python process that runs a program, below `pid`; Spark's helpers come and go."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # or a zombie
            if str(program) in child.cmdline() and "java" not in child.name():
                found.append(child)
    (driver,) = found
    return driver
