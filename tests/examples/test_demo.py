"""The demo's main act: it verifies itself, says so, and leaves nothing running."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
from receiving import eventually
from running import ran

ROOT = Path(__file__).parents[2]
DEMO = [sys.executable, "-m", "demo", "--acts", "1"]


def test_the_main_act_holds_every_byte_against_its_own_count(tmp_path):
    done = ran([*DEMO, "--words", "20000", "--out", str(tmp_path)], cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20,000 words of made-up text" in done.stdout
    assert re.search(r"Split and Count: [\d,]+ in, 20,000 out", done.stderr)
    assert re.search(
        r"all [\d,]+ bytes that came out are those of an independent count", done.stdout
    )
    assert "flowchart LR" in done.stdout
    assert (tmp_path / "word_count.svg").read_text().startswith("<svg")


def test_ctrl_c_stops_it_and_its_children(tmp_path):
    with subprocess.Popen(
        [*DEMO, "--words", "1000000", "--out", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "WALLAROO_DEMO_TEST": str(tmp_path)},
    ) as process:
        for line in process.stdout:
            if "$ wallaroo run" in line:
                break
        eventually(lambda: children(tmp_path))
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
        assert process.returncode == 130
        assert output.endswith("\nstopped\n")
        assert "Traceback" not in errors
    assert children(tmp_path) == []


def children(marker):
    """Return the processes `wallaroo run` that carry our mark, not the demo itself."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):  # None where it is not ours
        command, environment = process.info["cmdline"] or [], process.info["environ"] or {}
        if "run" in command and environment.get("WALLAROO_DEMO_TEST") == str(marker):
            found.append(process.pid)
    return found
