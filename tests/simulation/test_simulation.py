"""A short simulation with the same seeds each time, and the planted faults that are found soonest.

`python -m simulation` runs on for as long as it is told; CONTRIBUTING.md says how.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from simulation.planted import named
from simulation.search import SUBJECTS, failure, quiet, search, shrunk

SOON = 60  # runs
BY_DAY = 20  # runs; a fault that needs more is looked for at night
AT_NIGHT = pytest.mark.nightly(f"it needs more than {BY_DAY} runs")
HELPERS = Path(__file__).parents[1] / "helpers"


@pytest.fixture
def simulated():
    with quiet():
        yield


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        *[("log", 150), ("recording", 100), ("server", 100)],
        *[("cases", 80), ("topics", 50), ("spark", 30)],
    ],
)
def test_no_crash_breaks_a_promise(name, runs, simulated):
    found, _, crashes = search(SUBJECTS[name], range(runs), seconds=float("inf"))
    assert found is None
    assert crashes > runs


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(one, id=f"{one.subject}: {one.what}", marks=[AT_NIGHT] * (one.runs > BY_DAY))
        for one in named("")
        if one.runs <= SOON
    ],
)
def test_a_planted_fault_is_found(planted, simulated):
    with planted.plant():
        found, _, _ = search(SUBJECTS[planted.subject], range(4 * SOON), seconds=float("inf"))
    assert found is not None


def test_a_seed_is_the_same_run_in_every_process():
    script = """
import simulation.search as search
subject = search.SUBJECTS["cases"]
with search.quiet():
    for seed in range(8):
        run = subject.kind(subject.drawn(seed))
        run.run()
        print(seed, run.world.trace, run.world.now)
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": str(HELPERS), "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in "12"
    }
    assert len(outputs) == 1


def test_what_a_failure_does_not_need_is_left_out(simulated):
    subject = SUBJECTS["cases"]
    (planted,) = [one for one in named("") if one.what == "the position is one record early"]
    with planted.plant():
        found, _, _ = search(subject, range(SOON), seconds=float("inf"))
        less = shrunk(subject, found, seconds=float("inf"))
        assert len(repr(less.plan)) < len(repr(found.plan))
        assert not less.plan.lives  # what the last process has stored shows it
        again, _ = failure(subject, less.plan)
    assert again == less
    assert failure(subject, less.plan)[0] is None
