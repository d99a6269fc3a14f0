"""The examples, loaded as `wallaroo run` loads them, and run without a network."""

from pathlib import Path

import pytest

from wallaroo import testing
from wallaroo.engine import load_engine
from wallaroo.errors import UnsupportedTopology
from wallaroo.loading import load_application, load_module

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example():
    """An example's module, by name."""
    return lambda name: load_module(EXAMPLES / f"{name}.py").module


@pytest.fixture
def application():
    """An example's application, by name, given its own arguments."""
    return lambda name, *args: load_application(EXAMPLES / f"{name}.py", args, placeholders=True)


@pytest.fixture(params=["reference", "compiled"])
def run(request):
    """`testing.run` on each engine of the reference, the first of which reports findings."""
    isolation = "isolated" if request.param == "reference" else "trusting"

    def run(application, payloads):
        try:
            load_engine(request.param).check(application)
        except UnsupportedTopology as refused:
            pytest.skip(f"refused: {refused}")
        result = testing.run(application, payloads, engine=request.param, isolation=isolation)
        assert not result.findings
        return result

    return run
