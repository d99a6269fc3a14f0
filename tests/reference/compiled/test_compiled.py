"""The compiled path gives what the interpreter gives, for every application without findings."""

import ast
import gc
import weakref
from dataclasses import replace

import pytest
from small_steps import Seen, first, stateful
from small_steps import computation as stateless
from small_steps import multi as stateless_multi
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.generating import generate
from wallaroo_reference.compiled import machine as compiled
from wallaroo_reference.compiled.codegen import compiled_source
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.engine import ReferenceEngine
from wallaroo_reference.isolated.interpreter import Interpreter

import wallaroo

ENGINE = ReferenceEngine()


def test_compiled_the_source_is_python_and_the_same_each_time():
    for case in map(engine_case, generate(50, 6)):
        source = compiled_source(case.application)
        ast.parse(source)
        assert compiled_source(case.application) == source
        assert source.replace("\n", "").isprintable() or source.isascii()


@stateless
def same(text):
    return text


@stateless
def refuse(text):
    if "r" in text:
        raise LookupError(text)
    return text


@stateful
def look(text, state):
    if "r" in text:
        raise ValueError(text)
    return [text, True] if "b" in text else (text, False)


@wallaroo.encoder
def plain(text):
    return text + ";"


@wallaroo.encoder
def picky(text):
    if "e" in text:
        raise KeyError(text)
    return {"n": None, "b": text.encode()}.get(text[:1], text)


def test_compiled_says_what_may_be_half_changed(app):
    @wallaroo.state_computation(name="halfway")
    def halfway(text, state):
        state.items.append(text)
        raise ValueError("midway")

    machine = Compiled(app(("to_state_partition", halfway, Seen, "s", first)))
    machine.feed("p", [b"a"])
    (letter,) = machine.dead_letters
    assert letter.error == "midway [trusting: the entity of 'a' may be half changed]"
    assert letter.step == "halfway"
    assert machine.findings == ()


@wallaroo.computation_multi(name="deeper")
def deeper(text):
    if text.endswith("r" * 5) or not text:
        raise ValueError(text)
    return [text + "r", text + "s"] if len(text) < 7 else [None, text + "s"]


@pytest.mark.parametrize("steps", [5, 6, 7, 8, 13, 14])
def test_compute_2_loops_go_on_in_further_functions_where_python_has_no_more_blocks(app, steps):
    """A lineage has an index for each loop, in whichever function that is."""
    ways = [("to", deeper)] * steps
    application = app(*ways, ("to_stateful", look, Seen, "seen"), encoder=[plain, picky, plain])
    assert ("go_on" in compiled_source(application)) is (steps > 5)
    machines = Interpreter(application), Compiled(application)
    for machine in machines:
        machine.feed("p", [b"", b"a", b"\xff", b"brrr", b"ne"])
    one, other = machines
    assert other.outputs == one.outputs
    assert [replace(letter, error="") for letter in other.dead_letters] == [
        replace(letter, error="") for letter in one.dead_letters
    ]
    assert {1, 3, steps + 1} <= {len(letter.lineage) for letter in one.dead_letters}


@wallaroo.computation_multi(name="once")
def once(text):
    return [text]


@wallaroo.encoder
def never(text):
    raise ValueError(text)


@pytest.mark.parametrize("steps", [6, 7, 14])
def test_dead_4_a_stop_in_a_further_function_ends_the_run(app, steps):
    ways = [("to", once)] * steps
    application = app(*ways, ("to", same), encoder=never)
    assert "go_on" in compiled_source(application)
    machines = [machine(application, on_error="stop") for machine in (Interpreter, Compiled)]
    for machine in machines:
        machine.feed("p", [b"a", b"b"])
    one, other = machines
    assert one.ended is not None
    assert other.ended == one.ended
    assert other.dead_letters == one.dead_letters


class Traceless(Exception):
    """An exception that hides where it was raised."""

    __traceback__ = None


@stateless
def hide(text):
    raise Traceless(text)


def test_dead_1_an_exception_that_hides_its_traceback_is_a_dead_letter_of_its_step(app):
    machine = Compiled(app(("to", same), ("to", hide)))
    machine.feed("p", [b"a"])
    (letter,) = machine.dead_letters
    assert (letter.step, letter.position, letter.error_type) == ("hide", 1, "Traceless")


class Nameless(Exception):
    """An exception that raises when it is asked what it is."""

    __class__ = property(lambda self: 1 / 0)


@stateless_multi
def letters(text):
    return list(text)


@stateless
def stumble(text):
    if text == "x":
        raise Nameless(text)
    return text


def test_dead_2_an_exception_that_cannot_be_asked_what_it_is_harms_no_other(app):
    application = app(("to", letters), ("to", stumble))
    machines = Interpreter(application), Compiled(application)
    for machine in machines:
        machine.feed("p", [b"axb", b"c"])
    one, other = machines
    assert other.outputs == one.outputs == {("p", 0): [b"'a';", b"'b';", b"'c';"]}
    assert other.dead_letters == one.dead_letters
    assert [letter.step for letter in other.dead_letters] == ["stumble"]


def test_what_is_wrong_with_the_machine_itself_is_no_dead_letter(app, monkeypatch):
    def broken(error, reason):
        raise NotImplementedError

    monkeypatch.setattr(compiled, "dead_letter_from", broken)
    machine = Compiled(app(("to", letters), ("to", stumble)))
    with pytest.raises(NotImplementedError):
        machine.feed("p", [b"axb"])
    assert machine.dead_letters == []


class Lines(str):
    """A name that says more of itself than there is."""

    def __str__(self):
        return self

    def __repr__(self):
        return "\n# ".join(["line"] * 20)


def test_dead_1_names_do_not_shift_the_lines_that_tell_where_it_was(add_pipeline):
    builder = wallaroo.ApplicationBuilder("lines")
    steps = [("to", same), ("to", refuse), ("to", same)]
    machine = Compiled(add_pipeline(builder, *steps, name=Lines("p")).build())
    machine.feed("p", [b"r"])
    assert [letter.step for letter in machine.dead_letters] == ["refuse"]


class Text(str):
    """Text that can be referred to weakly."""


@pytest.mark.parametrize("on_error", ["skip", "stop"])
def test_what_failed_is_let_go(app, on_error):
    """Without waiting for the garbage collector."""
    met = []

    @stateless_multi
    def remembered(text):
        items = [Text(letter) for letter in text]
        met.extend(map(weakref.ref, items))
        return items

    machine = Compiled(app(("to", remembered), ("to", refuse)), on_error=on_error)
    gc.disable()
    try:
        machine.feed("p", [b"arb"])
        assert [ref() for ref in met] == [None] * 3
    finally:
        gc.enable()
    assert len(machine.dead_letters) == 1
