"""What becomes of a message that cannot go on, and of the run."""

from __future__ import annotations

import traceback

import pytest
from small_steps import Seen, computation, multi, see, whole

import wallaroo


def test_dead_1_letters_come_in_order_of_lineage_step_and_sink(app, run, letters):
    @multi
    def split(text):
        if text == "!":
            raise ValueError
        return text.split()

    @computation
    def refuse_x(text):
        if text == "x":
            raise ValueError
        return text

    @wallaroo.encoder
    def refuse_y(text):
        if text == "y":
            raise ValueError
        return text

    application = app(
        ("to", split),
        ("to", refuse_x),
        ("to_state_partition", see, Seen, "s", whole, ["a", "y"]),
        encoder=[refuse_y, refuse_y],
    )
    result = run(application, [b"x a z y", b"!", b"\xff", b"y"])
    assert letters(result) == [
        ((0, 0), "refuse_x", None, None, "raised"),
        ((0, 2), "see", None, "z", "unknown-key"),
        ((0, 3), None, 0, None, "encode"),
        ((0, 3), None, 1, None, "encode"),
        ((1,), "split", None, None, "raised"),
        ((2,), None, None, None, "decode"),
    ]
    assert [one.payload for one in result.dead_letters] == [b"x a z y"] * 4 + [b"!", b"\xff"]
    assert [one.order for one in result.dead_letters] == sorted(
        one.order for one in result.dead_letters
    )


class Silent(Exception):
    def __str__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "error",
    [
        Silent(),
        Exception(),
        StopIteration("x"),
        RecursionError(),
        MemoryError(),
        AssertionError(),
        OSError(2, "x"),
        ExceptionGroup("several", [ValueError()]),
        StopAsyncIteration(),
        EOFError(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("where", ["decode", "compute", "multi", "stateful", "encode"])
def test_dead_3_every_exception_counts(app, run, error, where):
    def fails(*arguments):
        raise error

    steps = {
        "compute": ("to", wallaroo.computation(name="f")(fails)),
        "multi": ("to", wallaroo.computation_multi(name="f")(fails)),
        "stateful": ("to_stateful", wallaroo.state_computation(name="f")(fails), Seen, "s"),
    }
    special = {
        "decode": {"decoder": wallaroo.decoder(header_length=4, length_fmt=">I")(fails)},
        "encode": {"encoder": wallaroo.encoder(fails)},
    }
    application = app(*[steps[where]] if where in steps else [], **special.get(where, {}))
    result = run(application, [b"a", b"b"])
    reason = where if where in special else "raised"
    assert [(one.reason, one.error_type) for one in result.dead_letters] == [
        (reason, type(error).__name__)
    ] * 2
    assert result.trace.ended is None


class Abort(BaseException):
    pass


class Interrupt(KeyboardInterrupt):  # of the very class, `testing.run` raises it again
    pass


@pytest.mark.parametrize("error", [SystemExit, Interrupt, GeneratorExit, Abort])
@pytest.mark.parametrize(
    "where", ["decode", "compute", "multi", "consume", "partition", "build", "stateful", "encode"]
)
def test_dead_3_an_exit_ends_the_run(app, run, error, where):
    def fails(*arguments):
        if arguments and arguments[0] in ("x", b"x"):
            raise error
        return {"multi": [*arguments], "stateful": (arguments[0], True)}.get(where, arguments[0])

    def consumed(text):
        yield text
        fails(text)

    class Builder:
        built = 0

        def build(self):
            Builder.built += 1
            if Builder.built > 1:
                raise error
            return Seen()

    partition = ("to_state_partition", see, Seen, "s", whole)
    steps = {
        "compute": ("to", wallaroo.computation(name="f")(fails)),
        "multi": ("to", wallaroo.computation_multi(name="f")(fails)),
        "consume": ("to", wallaroo.computation_multi(name="f")(consumed)),
        "stateful": ("to_stateful", wallaroo.state_computation(name="f")(fails), Seen, "s"),
        "partition": (*partition[:4], wallaroo.partition(fails)),
        "build": ("to_state_partition", see, Builder(), "s", whole),
    }
    special = {
        "decode": {"decoder": wallaroo.decoder(header_length=4, length_fmt=">I")(fails)},
        "encode": {"encoder": wallaroo.encoder(fails)},
    }
    application = app(*[steps[where]] if where in steps else [], **special.get(where, {}))
    result = run(application, [b"a", b"x", b"b"])
    assert len(result.output) == 1  # what was before
    assert result.dead_letters == []
    ended = result.trace.ended
    step = {"partition": "see", "build": "see", "decode": None, "encode": None}.get(where, "f")
    assert (ended.kind, ended.pipeline, ended.step) == ("exit", "p", step)
    assert (ended.lineage, ended.error_type) == ((1,), error.__name__)


@pytest.mark.parametrize("sink", [0, 1, 2])
def test_dead_4_sinks_get_exactly_what_precedes_it(app, run, sink):
    encoders = [
        wallaroo.encoder(lambda m, n=n: 5 if n == sink and m == "x" else m) for n in range(3)
    ]
    result = run(app(encoder=encoders), [b"a", b"x", b"b"], on_error="stop")
    assert result.outputs == {("p", n): [b"a", b"x"] if n < sink else [b"a"] for n in range(3)}
    assert result.trace.ended.step is None


def test_dead_1_an_exception_raised_again_and_again_does_not_grow(app, run):
    """As a failed future raises the same one for whoever asks."""
    error = ValueError("the same")

    @computation
    def ask(message):
        raise error

    result = run(app(("to", ask)), [b"a"] * 50)
    assert len(result.dead_letters) == 50
    assert len(traceback.extract_tb(error.__traceback__)) < 10
