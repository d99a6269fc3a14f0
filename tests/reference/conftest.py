"""Both machines of the reference, each run the same way."""

import functools

import pytest
from wallaroo_reference.engine import ReferenceEngine

from wallaroo import testing
from wallaroo.engine import ServeOptions


def _in(isolation):
    def run(application, payloads=(), **options):
        if isinstance(payloads, list):
            payloads = [("p", one) if isinstance(one, bytes) else one for one in payloads]
        return testing.run(application, payloads, isolation=isolation, **options)

    return run


@pytest.fixture(params=["isolated", "trusting"], ids=["interpreter", "compiled"])
def run(request):
    """`testing.run` on the interpreter, then on the compiled path; for rules that hold in both."""
    return _in(request.param)


@pytest.fixture(scope="session")
def isolated():
    """`testing.run` on the interpreter; for rules that cost copies."""
    return _in("isolated")


@pytest.fixture(scope="session")
def letters():
    """What engines agree on of a run's dead letters, short enough to be written down."""

    def letters(result):
        return [
            (letter.lineage, letter.step, letter.sink, letter.key, letter.reason.value)
            for letter in result.dead_letters
        ]

    return letters


@pytest.fixture(params=["isolated", "trusting"], ids=["interpreter", "compiled"])
def step(request):
    """`testing.Session` on the interpreter, then on the compiled path."""
    return functools.partial(testing.Session, isolation=request.param)


@pytest.fixture
def serve():
    """Serve an application with `ServeOptions`; what is left running is killed at a test's end."""
    handles = []

    def serve(application, **options):
        handles.append(ReferenceEngine().serve(application, ServeOptions(**options)))
        return handles[-1]

    yield serve
    for handle in handles:
        if handle.wait(0) is None:
            handle.kill()
