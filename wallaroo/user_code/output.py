"""What user code prints and logs, with the name of the step that did it.

Which step is running is found when something is printed or logged, from the frames of the caller.
So a call that prints nothing costs nothing.
"""

from __future__ import annotations

import inspect
import io
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from wallaroo.components import Component
from wallaroo.operations import Stateful
from wallaroo.text import escaped
from wallaroo.topology import Application, StatePartition, Step
from wallaroo.user_code.failure import own_frame

PRINTED = "wallaroo.printed"
"""The name in log records of what was printed; they are shown at every level."""

_LONGEST_LINE = 4000  # characters of a line after which it goes on in another


class Logged(NamedTuple):
    """What a line that was logged has beside its text.

    Args:
        level: a level of `logging`.
        logger: the logger's name.
        created: when, in seconds since 1970.
        exception: the traceback logged with it, or ``""``.
    """

    level: int
    logger: str
    created: float
    exception: str


class Line(NamedTuple):
    """A line that user code printed or logged.

    Args:
        step: the name of the running step; ``""`` if none was running.
        text: the line.
        logged: `None` if it was printed.
    """

    step: str
    text: str
    logged: Logged | None = None


def show(line: Line) -> None:
    """Log a line, or show it where the commands log; without a command on standard error."""
    if line.logged is not None:
        logger = logging.getLogger(line.logged.logger)
        record = _record(line.logged.logger, line.logged.level, line)
        record.created, record.exc_text = line.logged.created, line.logged.exception or None
        logger.handle(record)
    elif handlers := logging.getLogger("wallaroo").handlers:
        record = _record(PRINTED, logging.INFO, line)
        for handler in handlers:
            handler.handle(record)
    else:
        print(with_step(line.step, escaped(line.text)), file=sys.stderr, flush=True)


def with_step(step: str, text: str) -> str:
    """Return ``[step] text``."""
    return f"[{escaped(step)}] {text}" if step else text


def message_of(record: logging.LogRecord) -> str:
    """Return a record's text; user code may have logged what cannot be formatted."""
    try:
        return "".join([record.getMessage()])
    except Exception as error:  # noqa: BLE001 - user code: the arguments may raise anything
        return (
            f"(a log record of {record.pathname}, line {record.lineno}, cannot be shown: "
            f"{type(error).__name__})"
        )


class Steps:
    """Finds the step whose code is running; knows none until `know` is called."""

    def __init__(self) -> None:
        self._known: dict[CodeType, list[tuple[Any, str, str]]] = {}

    def know(self, application: Application) -> None:
        """Learn the names of an application's steps."""
        for step, component in _components(application):
            owner, codes = _code(component.call)
            for code in codes:
                self._known.setdefault(code, []).append((owner, step, component.name))

    def running(self) -> str:
        """Return the name of the step that calls this, directly or not; ``""`` if none does.

        A partition function or a builder that several steps use is called by its own name.
        """
        name = ""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code in self._known:
                name = self._name(frame) or name
            frame = frame.f_back
        return name

    def _name(self, frame: FrameType) -> str:
        code = frame.f_code
        this = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        meant = [entry for entry in self._known[code] if entry[0] is None or entry[0] is this]
        steps, names = {step for _, step, _ in meant}, {name for _, _, name in meant}
        return steps.pop() if len(steps) == 1 else names.pop() if len(names) == 1 else ""


class StepOutput(io.TextIOBase):
    """Stands in for `sys.stdout` while user code may print: shows lines with their step.

    What is printed outside a step has the name of the function, or at import of the file.

    Args:
        steps: knows which step is running.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        # A thread has a key of its own here, so no lock is needed.
        self._partial: dict[tuple[int, str], str] = {}

    @property
    def buffer(self) -> io.RawIOBase:
        """Takes bytes, as the buffer of `sys.stdout` does."""
        return BytesOutput(self)

    def write(self, text: str) -> int:
        """Show the lines that are complete."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        name = self._steps.running() or _printing_function()
        key = (threading.get_ident(), name)
        *lines, rest = (self._partial.pop(key, "") + text).split("\n")
        for line in lines:
            show(Line(name, line))
        while len(rest) > _LONGEST_LINE:
            show(Line(name, rest[:_LONGEST_LINE]))
            rest = rest[_LONGEST_LINE:]
        if rest:
            self._partial[key] = rest
        return len(text)

    def finish(self) -> None:
        """Show the last lines that have no newline."""
        while self._partial:
            (_, name), rest = self._partial.popitem()
            show(Line(name, rest))

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True


class BytesOutput(io.RawIOBase):
    """The `buffer` of a stream of text that stands in for `sys.stdout`."""

    def __init__(self, stream: io.TextIOBase) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        """Write the text that the bytes are in UTF-8."""
        given = bytes(data)
        self._stream.write(given.decode("utf-8", "backslashreplace"))
        return len(given)

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True


def _components(application: Application) -> Iterator[tuple[str, Component]]:
    builders = {partition.name: partition.builder for partition in application.partitions}
    for use in application.components():
        user = use.user
        if isinstance(user, Step):
            yield user.name, use.component
            if isinstance(user.operation, Stateful):
                yield user.name, builders[user.operation.partition]
        elif not isinstance(user, StatePartition):
            yield use.component.name, use.component


def _code(call: Callable[..., Any]) -> tuple[Any, set[CodeType]]:
    """Return the object that a call is a method of, if it is one, and the code that it runs."""
    function: Any = call.__init__ if inspect.isclass(call) else call
    owner = getattr(function, "__self__", None)
    function = getattr(function, "__func__", function)
    codes = {getattr(each, "__code__", None) for each in (function, inspect.unwrap(function))}
    return owner, {code for code in codes if isinstance(code, CodeType)}


def _printing_function() -> str:
    frame = own_frame(sys._getframe(1))
    if frame is None:
        return ""
    return frame.file.rpartition("/")[2] if frame.function == "<module>" else frame.function


def _record(logger: str, level: int, line: Line) -> logging.LogRecord:
    record = logging.LogRecord(logger, level, "", 0, line.text, None, None)
    record.step = line.step
    return record
