"""What becomes of a message that cannot go on, and of the run."""

import traceback

import pytest
from small_steps import computation


class Abort(BaseException):
    pass


class Interrupt(KeyboardInterrupt):  # of the very class, `testing.run` raises it again
    pass


@pytest.mark.parametrize("error", [SystemExit, Interrupt, GeneratorExit, Abort])
def test_dead_3_every_exit_ends_the_run(app, run, error):
    @computation
    def fails(message):
        if message == "x":
            raise error
        return message

    result = run(app(("to", fails)), [b"a", b"x", b"b"])
    assert (result.output, result.dead_letters) == ([b"'a';"], [])
    ended = result.trace.ended
    assert (ended.kind, ended.pipeline, ended.step) == ("exit", "p", "fails")
    assert (ended.lineage, ended.error_type) == ((1,), error.__name__)


def test_dead_1_an_exception_raised_again_and_again_does_not_grow(app, run):
    """As a failed future raises the same one for whoever asks."""
    error = ValueError("the same")

    @computation
    def ask(message):
        raise error

    result = run(app(("to", ask)), [b"a"] * 50)
    assert len(result.dead_letters) == 50
    assert len(traceback.extract_tb(error.__traceback__)) < 10
