"""Where user code failed: the user's own lines in an exception, and its causes (dead-1).

An engine looks at an exception that a call of user code has raised. Calls that succeed cost
nothing. Exceptions are the user's objects, so nothing that they define themselves is called here,
except for ``__str__``.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

_OURS = "wallaroo"  # the package whose frames are never the user's, beside the engine's
_END = 10  # frames kept from each end of a traceback
_MOST_CAUSES = 5
_LONGEST_ERROR = 2000  # characters of an error's text that are kept
_LONGEST_FILE = 500
_LONGEST_FUNCTION = 200

_STANDARD_LIBRARY = ("<frozen ", str(Path(os.__file__).parent) + os.sep)
_INSTALLED = frozenset({"site-packages", "dist-packages"})

# The attributes themselves: a subclass of `Exception` may define others of the same name.
_attributes: Mapping[str, Any] = vars(BaseException)


class UserFrame(NamedTuple):
    """A line of user code that was running.

    Args:
        file: its path, as Python knows it; ``<string>`` or the like where there is no file.
        line: its number.
        function: the function's qualified name; ``<module>`` for a module's own code.
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        inside = "" if self.function == "<module>" else f", in {self.function}"
        return f"{short_path(self.file)}, line {self.line}{inside}"


class Cause(NamedTuple):
    """An exception that another one was raised from, or while it was handled.

    Args:
        error_type: the name of its class.
        error: its text.
        where: the user's frames, as in `Failure`.
    """

    error_type: str
    error: str
    where: tuple[UserFrame, ...]


class Failure(NamedTuple):
    """What is known of an exception that user code raised, beside its class and text.

    Args:
        where: the user's frames, the line that failed last. Of a long traceback the first ten and
            the last ten.
        causes: what it was raised from, the nearest first; five at most.
    """

    where: tuple[UserFrame, ...] = ()
    causes: tuple[Cause, ...] = ()


def failure_of(error: BaseException, engine: str) -> Failure:
    """Return where user code raised `error`, and remove the tracebacks of `error` and its causes.

    User code may keep one exception and raise it many times. Its traceback would grow each time,
    and keep old messages in memory.

    Args:
        error: what a call of user code raised, and nothing handles any more.
        engine: the engine's package; its frames are left out.
    """
    where = user_frames(_traceback(error), engine)
    causes: list[Cause] = []
    chain = [error]
    while len(causes) < _MOST_CAUSES:
        cause, meant = _cause(chain[-1])
        if cause is None or any(cause is above for above in chain):
            break
        frames = user_frames(_traceback(cause), engine)
        if not frames and not meant:
            break  # the engine was handling it
        chain.append(cause)
        causes.append(Cause(type(cause).__name__, describe_error(cause), frames))
    for each in chain:
        BaseException.with_traceback(each, None)
    return Failure(where, tuple(causes))


def user_frames(traceback: TracebackType | None, engine: str = _OURS) -> tuple[UserFrame, ...]:
    """Return the frames of user code in a traceback, the line that failed last.

    They are neither the engine's nor a library's. If there are no others, a library's are
    returned: an application may itself be installed as one. Of many frames, as a `RecursionError`
    has them, the first ten and the last ten are kept.
    """
    own = (line for line in _lines(traceback, engine) if not _is_library(line[0]))
    return _bounded(own) or _bounded(_lines(traceback, engine))


def own_frame(frame: FrameType | None, engine: str = _OURS) -> UserFrame | None:
    """Return the innermost frame of user code that is running, from `frame` outwards.

    Args:
        frame: where to begin.
        engine: the engine's package; its frames are left out.
    """
    while frame is not None:
        if _package(frame) not in (_OURS, engine) and not _is_library(frame.f_code):
            return _user_frame(frame.f_code, frame.f_lineno)
        frame = frame.f_back
    return None


def describe_error(error: BaseException) -> str:
    """Return an exception's text, of bounded length; its ``__str__`` may be faulty."""
    try:
        text = str(error)
    except KeyboardInterrupt:  # Ctrl-C from the keyboard, not raised by ``__str__``
        raise
    except BaseException as inner:  # noqa: BLE001 - user code: its __str__ may raise anything
        text = f"(its text cannot be shown: {type(inner).__name__})"
    return _shortened(text, _LONGEST_ERROR)


def short_path(path: str | Path) -> str:
    """Return `path` relative to the current directory if it is inside it."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (OSError, ValueError):  # OSError: the current directory has been removed
        return str(path)


def _lines(traceback: TracebackType | None, engine: str) -> Iterator[tuple[CodeType, int | None]]:
    while traceback is not None:
        if _package(traceback.tb_frame) not in (_OURS, engine):
            yield traceback.tb_frame.f_code, traceback.tb_lineno
        traceback = traceback.tb_next


def _package(frame: FrameType) -> str:
    module = dict.get(frame.f_globals, "__name__")
    return module.partition(".")[0] if type(module) is str else ""


def _user_frame(code: CodeType, line: int | None) -> UserFrame:
    return UserFrame(
        _shortened(code.co_filename, _LONGEST_FILE),
        line or code.co_firstlineno,  # some code has no line numbers
        _shortened(code.co_qualname, _LONGEST_FUNCTION),
    )


def _bounded(lines: Iterator[tuple[CodeType, int | None]]) -> tuple[UserFrame, ...]:
    kept = [*islice(lines, _END), *deque(lines, maxlen=_END)]
    return tuple([_user_frame(*line) for line in kept])


def _traceback(error: BaseException) -> TracebackType | None:
    traceback: TracebackType | None = _attributes["__traceback__"].__get__(error)
    return traceback


def _cause(error: BaseException) -> tuple[BaseException | None, bool]:
    """Return the exception's cause, and whether it was named, as in ``raise … from cause``."""
    cause: BaseException | None = _attributes["__cause__"].__get__(error)
    if cause is not None:
        return cause, True
    if _attributes["__suppress_context__"].__get__(error):
        return None, False
    return _attributes["__context__"].__get__(error), False


def _is_library(code: CodeType) -> bool:
    file = code.co_filename
    return _is_file_of_library(file if type(file) is str else _shortened(file, _LONGEST_FILE))


@lru_cache(maxsize=4096)
def _is_file_of_library(file: str) -> bool:
    return file.startswith(_STANDARD_LIBRARY) or not _INSTALLED.isdisjoint(Path(file).parts)


def _shortened(text: str, longest: int) -> str:
    """Return `text`, of bounded length, as a plain `str`: user code may give a subclass."""
    text = "".join([text])
    return text if len(text) <= longest else text[:longest] + "…"
