"""Source patches: functions that get other code for a while, made of their own source.

A patch says which text of a function is replaced by which. The function is compiled again with the
new text and gets the new code object while the patch is in place; so decorators, default arguments
and `super()` work as before, and everybody who has imported the function runs the new code.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from types import CodeType, FunctionType
from typing import Any, Final, TypeAlias

_ANNOTATIONS = __future__.annotations.compiler_flag
_Node: TypeAlias = "ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef"


class PatchError(Exception):
    """A patch that does not fit: the source it was made for has changed."""


@dataclass(frozen=True)
class Change:
    """One text of a function that is replaced by another.

    Args:
        function: where it is, as ``module:qualified.name``.
        before: the text, without the indentation of its first line; it occurs exactly once in the
            function. Empty: `after` is put before the function's first statement.
        after: the text that replaces it, indented as `before` is.
    """

    function: str
    before: str
    after: str


@dataclass(frozen=True)
class Patch:
    """Changes that are in place together.

    Args:
        name: of what is patched, for errors.
        changes: the changes; several may be in one function.
    """

    name: str
    changes: tuple[Change, ...]

    def codes(self) -> dict[str, CodeType]:
        """Return the new code of each function that is changed.

        Raises:
            PatchError: a function or a text is gone, or the new text is no Python.
        """
        found: dict[str, CodeType] = {}
        for function in dict.fromkeys([change.function for change in self.changes]):
            changes = [change for change in self.changes if change.function == function]
            try:
                found[function] = _Source.of(function).changed(changes)
            except PatchError as error:
                raise PatchError(f"mutant {self.name!r}, {function}: {error}") from None
        return found

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the changes in place inside the block; threads see them too.

        Raises:
            PatchError: as `codes`.
        """
        codes = _codes(self)
        before = [(function, function.__code__) for function in map(_function, codes)]
        try:
            for (function, _), code in zip(before, codes.values(), strict=True):
                function.__code__ = code
            yield
        finally:
            for function, code in before:
                function.__code__ = code


NOTHING: Final = Patch("", ())


@cache
def _codes(patch: Patch) -> dict[str, CodeType]:
    return patch.codes()


@dataclass(frozen=True)
class _Source:
    """A function's source.

    Args:
        file: its module's.
        lines: of the file; those outside the function are empty, but for the heads of its classes,
            so that line numbers and the names of private attributes are as they were.
        start, end: the function's first line and the one behind its last, counted from 0.
        body: its first statement's line.
        path: its name and those of its classes, outermost first.
    """

    file: str
    lines: tuple[str, ...]
    start: int
    end: int
    body: int
    path: tuple[str, ...]

    @staticmethod
    @cache
    def of(function: str) -> _Source:
        """Return the source of ``module:qualified.name``."""
        module, _, name = function.partition(":")
        file, whole, tree = _parsed(module)
        path = tuple(name.split("."))
        node: _Node = tree
        lines = [""] * len(whole)
        for part in path:
            inside = [one for one in node.body if getattr(one, "name", None) == part]
            if not inside or not isinstance(
                inside[0], (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            ):
                raise PatchError("there is no such function")
            node = inside[0]
            if isinstance(node, ast.ClassDef):
                lines[node.lineno - 1] = " " * node.col_offset + f"class {part}:"
        if isinstance(node, (ast.Module, ast.ClassDef)):
            raise PatchError("it is no function")
        assert node.end_lineno is not None
        start, end = node.lineno - 1, node.end_lineno
        lines[start:end] = whole[start:end]
        said = ast.get_docstring(node, clean=False) is not None and len(node.body) > 1
        return _Source(file, tuple(lines), start, end, node.body[said].lineno - 1, path)

    def changed(self, changes: list[Change]) -> CodeType:
        """Return the function's code with these changes."""
        text = "\n".join(self.lines[self.start : self.end])
        for change in changes:
            text = self._replaced(text, change)
        code = self._compiled(text)
        before = self._compiled("\n".join(self.lines[self.start : self.end]))
        if code.co_freevars != before.co_freevars:
            raise PatchError(f"the new text closes over other names: {code.co_freevars}")
        return code

    def _replaced(self, text: str, change: Change) -> str:
        if not change.before:
            lines = text.split("\n")
            at = self.body - self.start
            indent = re.match(" *", lines[at])[0]  # type: ignore[index]  # it always matches
            lines.insert(at, indent + _indented(change.after, indent))
            return "\n".join(lines)
        found = []
        first = _indented(change.before, "").partition("\n")[0]
        for match in re.finditer(re.escape(first), text):
            line = text.rfind("\n", 0, match.start()) + 1
            indent = re.compile(" *").match(text, line)[0]  # type: ignore[index]  # as above
            whole = _indented(change.before, indent)
            if text.startswith(whole, match.start()):
                found.append((match.start(), whole, indent))
        if len(found) != 1:
            times = f"occurs {len(found)} times" if found else "is gone"
            raise PatchError(f"this text {times}: {change.before!r}")
        [(at, whole, indent)] = found
        return text[:at] + _indented(change.after, indent) + text[at + len(whole) :]

    def _compiled(self, text: str) -> CodeType:
        whole = "\n".join([*self.lines[: self.start], text])
        try:
            code: CodeType = compile(
                whole, self.file, "exec", flags=_ANNOTATIONS, dont_inherit=True
            )
        except SyntaxError as error:
            raise PatchError(f"the new text is no Python: {error}") from None
        for name in self.path:
            inside = [one for one in code.co_consts if isinstance(one, CodeType)]
            code = next(one for one in inside if one.co_name == name)
        return code


def _indented(text: str, indent: str) -> str:
    return dedent(text).strip("\n").replace("\n", "\n" + indent)


@cache
def _parsed(module: str) -> tuple[str, list[str], ast.Module]:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise PatchError("there is no such module")
    source = Path(spec.origin).read_text("utf-8")
    return spec.origin, source.split("\n"), ast.parse(source)


def _function(name: str) -> FunctionType:
    """Return the function of ``module:qualified.name``, without what decorators put around it."""
    module, _, path = name.partition(":")
    found: Any = import_module(module)
    for part in path.split("."):
        found = inspect.getattr_static(found, part)
    for attribute in ("fget", "func", "__func__"):  # of properties and class methods
        found = getattr(found, attribute, found)
    found = inspect.unwrap(found)
    assert isinstance(found, FunctionType), f"{name} is no function"
    return found
