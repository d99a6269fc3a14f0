"""The rules that cost copies: state-2, -4, -6, -7, route-1, and what is unportable."""

import pytest
from small_steps import Seen

import wallaroo
from wallaroo.engine import Case, load_engine


class Message:
    """A message that can be altered."""

    def __init__(self, text):
        self.text = text
        self.notes = []

    def __repr__(self):
        return f"{self.text}{''.join(self.notes)}"


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return Message(payload.decode())


def test_state_4_an_unchanged_state_is_not_even_replaced(app, isolated):
    @wallaroo.state_computation(name="rebinds")
    def rebinds(message, state):
        state.__dict__.clear()
        state.__class__ = Message
        return None, False

    found = isolated(app(("to_stateful", rebinds, Seen, "s")), [b"a"])
    ((_, state),) = found.structures["s"].items()
    assert state[0].endswith("Seen")
    assert state[3] == ["dict", [[["str", "items"], ["list", []]]]]


# -- unportable ----------------------------------------------------------------------------------


class Twice:
    """Comes back from a pickle twice, and never again."""

    left = 2

    def __init__(self, text):
        self.text = text

    def __setstate__(self, state):
        type(self).left -= 1
        if type(self).left < 0:
            raise ValueError("no more")
        self.__dict__.update(state)


@pytest.mark.parametrize(
    "steps",
    [
        [("to", wallaroo.computation(name="c")(lambda message: message.text))],
        [("to_stateful", wallaroo.state_computation(name="c")(lambda m, s: (1, True)), Seen, "s")],
        [],
    ],
)
@pytest.mark.parametrize("left", range(4))
def test_dead_2_what_fails_to_come_back_later_harms_no_other(app, isolated, steps, left):
    """The copies a rule costs may fail at any of them; never is it more than a dead letter."""

    @wallaroo.decoder(header_length=4, length_fmt=">I")
    def decode_twice(payload):
        Twice.left = left if payload == b"x" else 100
        return Twice(payload.decode())

    @wallaroo.encoder
    def encode(message):
        return str(getattr(message, "text", message))

    found = isolated(app(*steps, decoder=decode_twice, encoder=[encode] * 4), [b"a", b"x", b"b"])
    for outputs in found.outputs.values():
        assert len(outputs) in (2, 3)
    assert {letter.reason for letter in found.dead_letters} <= {"unportable"}
    assert {letter.lineage for letter in found.dead_letters} <= {(1,)}


class ExitsWhenPickled:
    def __reduce__(self):
        raise SystemExit(3)


@wallaroo.computation(name="make")
def make_what_exits(_text):
    return ExitsWhenPickled()


def test_dead_3_an_exit_inside_pickling_ends_the_run_and_names_the_step(app):
    application = app(("to", make_what_exits))
    trace = load_engine("reference").run(Case(application, [("p", b"a"), ("p", b"b")]))
    assert trace.ended is not None
    assert (trace.ended.kind, trace.ended.step) == ("exit", "make")
    assert (trace.ended.lineage, trace.ended.error_type) == ((0,), "SystemExit")
    assert trace.dead_letters == ()
