"""The user's own frames of an exception, whatever the exception is."""

import itertools
import json
import types

import pytest

from wallaroo.user_code.failure import UserFrame, describe_error, failure_of, user_frames


def raised(function, *given):
    try:
        function(*given)
    except Exception as error:  # noqa: BLE001 - what the caller wants
        return error
    raise AssertionError("it did not raise")


def compiled(code, name, function, **names):
    exec(compile(code, name, "exec"), names)
    return names[function]


def test_frames_of_the_engine_are_left_out():
    call = compiled("def call(f):\n    f()\n", "engine.py", "call", __name__="an_engine.calls")
    error = raised(call, lambda: 1 / 0)
    assert [frame.function for frame in user_frames(error.__traceback__, "an_engine")] == [
        "raised",
        "test_frames_of_the_engine_are_left_out.<locals>.<lambda>",
    ]


def test_a_library_is_shown_only_if_there_is_nothing_else():
    error = raised(json.loads, "{")
    assert user_frames(error.__traceback__)[-1].function == "raised"
    library = user_frames(error.__traceback__.tb_next)
    assert library[-1].file == json.decoder.__file__


def test_causes_are_bounded_and_may_go_in_a_circle():
    one, other = ValueError("one"), KeyError("other")
    one.__cause__, other.__cause__ = other, one
    assert [cause.error_type for cause in failure_of(one, "engine").causes] == ["KeyError"]
    errors = [ValueError(n) for n in range(100)]
    for error, cause in itertools.pairwise(errors):
        error.__cause__ = cause
    assert [cause.error for cause in failure_of(errors[0], "engine").causes] == list("12345")


def test_from_none_hides_what_was_handled():
    def hide():
        try:
            int("a")
        except ValueError:
            raise KeyError from None

    assert failure_of(raised(hide), "engine").causes == ()


class Text(str):
    def __len__(self):
        return 0

    def __getitem__(self, index):
        raise ZeroDivisionError


@pytest.mark.parametrize("name", [Text("x" * 3000), "x" * 3000])
def test_names_are_plain_and_bounded(name):
    function = types.FunctionType(
        compile("1 / 0", "file", "exec").replace(co_filename=name, co_qualname=name), {}
    )
    frame = failure_of(raised(function), "engine").where[-1]
    assert type(frame.file) is type(frame.function) is str
    assert (len(frame.file), len(frame.function)) == (501, 201)


def test_a_frame_is_shown_in_short(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert str(UserFrame(str(tmp_path / "app.py"), 3, "f")) == "app.py, line 3, in f"
    assert str(UserFrame("/elsewhere/app.py", 3, "<module>")) == "/elsewhere/app.py, line 3"
    assert str(UserFrame("<string>", 3, "f")) == "<string>, line 3, in f"


def with_text(text):
    """An exception whose `__str__` is `text()`."""
    return type("Odd", (Exception,), {"__str__": lambda self: text()})()


def raising(kind):
    def text():
        raise kind

    return text


class Measureless(str):
    def __len__(self):
        raise OverflowError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("why"), "why"),
        (with_text(raising(ZeroDivisionError)), "(its text cannot be shown: ZeroDivisionError)"),
        (with_text(raising(SystemExit)), "(its text cannot be shown: SystemExit)"),
        (with_text(lambda: "x" * 1_000_000), "x" * 2000 + "…"),
        (with_text(lambda: Measureless("odd")), "odd"),
    ],
)
def test_dead_1_an_errors_text_is_had_whatever_its_str_does(error, text):
    assert describe_error(error) == text
    assert type(describe_error(error)) is str


def test_describe_error_leaves_ctrl_c_to_who_pressed_it():
    with pytest.raises(KeyboardInterrupt):
        describe_error(with_text(raising(KeyboardInterrupt)))
