"""A dead letter says where user code failed: file, line and function of the user's own frames."""

import gc
import weakref

import failing_app
import pytest

import wallaroo
from wallaroo.loading import load_application
from wallaroo.user_code.failure import Cause, UserFrame


@pytest.fixture(scope="module")
def failing():
    return load_application(failing_app.__file__)


@pytest.mark.parametrize(("message", "function"), failing_app.FAILURES.items())
def test_dead_1_says_where_each_component_failed(run, failing, message, function):
    (letter,) = run(failing, [b"good", message]).dead_letters
    assert letter.where[-1] == UserFrame(
        failing_app.__file__, failing_app.line(message.decode()), function
    )
    assert {frame.file for frame in letter.where} == {failing_app.__file__}
    assert letter.to_json()["where"][-1] == letter.where[-1]._asdict()


def test_dead_1_says_where_a_builder_failed(run, failing):
    (letter,) = run(failing, [("builder", b"a")]).dead_letters
    line = failing_app.line("builder")
    assert letter.where == (UserFrame(failing_app.__file__, line, "Broken.__init__"),)
    assert letter.causes == ()


def test_dead_1_says_where_pickling_failed(isolated, failing):
    (letter,) = isolated(failing, [b"unpicklable"]).dead_letters
    line = failing_app.line("unpicklable")
    assert letter.reason == "unportable"
    assert letter.where == (UserFrame(failing_app.__file__, line, "Odd.__getstate__"),)


def test_dead_1_says_the_way_to_the_line(run, failing):
    (letter,) = run(failing, [b"kept"]).dead_letters
    assert [frame.function for frame in letter.where] == ["Checks.compute", "check"]


@pytest.mark.parametrize("message", [b"cause", b"context"])
def test_dead_1_says_what_the_exception_was_raised_from(run, failing, message):
    (letter,) = run(failing, [message]).dead_letters
    file, line = failing_app.__file__, failing_app.line(f"the {message.decode()}'s line")
    text = f"invalid literal for int() with base 10: '{message.decode()}'"
    assert letter.causes == (Cause("ValueError", text, (UserFrame(file, line, "check"),)),)
    assert letter.to_json()["causes"] == [
        {
            "error_type": "ValueError",
            "error": text,
            "where": [{"file": file, "line": line, "function": "check"}],
        }
    ]


def test_dead_1_many_frames_are_cut(run, failing):
    (letter,) = run(failing, [b"recursion"]).dead_letters
    assert letter.error_type == "RecursionError"
    assert len(letter.where) == 20
    assert letter.where[0].function == "Checks.compute"
    assert letter.where[-1].function == "check"


def test_dead_1_what_is_wrong_with_a_result_is_no_line(run, app):
    @wallaroo.computation_multi(name="text")
    def text(message):
        return message

    (letter,) = run(app(("to", text)), [b"a"]).dead_letters
    assert (letter.reason, letter.where, letter.causes) == ("bad-result", (), ())


@pytest.mark.parametrize("name", ["<string>", "<stdin>", "<ipython-input-1-0123456789ab>"])
def test_dead_1_code_without_a_file_has_its_line(run, app, name):
    names = {"wallaroo": wallaroo}
    code = """
@wallaroo.computation(name="fails")
def fails(message):
    raise ValueError(message)
"""
    exec(compile(code, name, "exec"), names)
    (letter,) = run(app(("to", names["fails"])), [b"a"]).dead_letters
    assert letter.where == (UserFrame(name, 4, "fails"),)


class Message:
    """A message that can be seen to be gone."""


def test_dead_1_a_kept_exception_keeps_no_message(run, app):
    kept = []
    messages = []

    @wallaroo.computation(name="make")
    def make(text):
        message = Message()
        messages.append(weakref.ref(message))
        try:
            raise KeyError(text)
        except KeyError as cause:
            kept.append(cause)
            error = ValueError(text)
            kept.append(error)
            raise error from cause

    result = run(app(("to", make)), [b"a"])
    assert [one.error_type for one in result.dead_letters[0].causes] == ["KeyError"]
    assert [error.__traceback__ for error in kept] == [None, None]
    gc.collect()
    assert [message() for message in messages] == [None]
