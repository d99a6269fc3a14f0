"""From generated source to functions."""

from __future__ import annotations

from functools import lru_cache
from types import CodeType
from typing import Any

from wallaroo.topology import Application
from wallaroo_reference.compiled.codegen import Program


def link(program: Program, name: str, names: dict[str, Any]) -> None:
    """Add a program's functions to the names that they refer to.

    Args:
        program: the program.
        name: the application's, for tracebacks.
        names: see `Compiled.names`.
    """
    exec(_code(program.source, file_of(name)), names)  # noqa: S102 - our own text; users' names enter it only as identifiers and by repr


def file_of(name: str) -> str:
    """Return what tracebacks show as the file of an application's generated code."""
    return f"<compiled {name!r}>"


def compiles(application: Application) -> bool:
    """Whether the compiled path runs an application: unless it has a codec (key-5).

    With a codec, values change whenever they are copied, and few calls are saved.
    """
    return application.codec is None


def compiled_source(application: Application) -> str:
    """Return the Python source that `Compiled` runs for `application`."""
    return Program(application).source


@lru_cache(maxsize=256)  # compiling is most of a short run's cost, and many applications are alike
def _code(source: str, file: str) -> CodeType:
    return compile(source, file, "exec")
