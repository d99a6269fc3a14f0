"""Source patches: functions that get other code for a while, made of their own source.

A patch says which text of a function is replaced by which. Its module is compiled again with the
new text, and the function gets the new code object while the patch is in place. So decorators,
default arguments and `super()` work as before, and everybody who has imported the function runs the
new code.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple


class PatchError(Exception):
    """A patch that does not fit: the source it was made for has changed."""


class Change(NamedTuple):
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


class Patch(NamedTuple):
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
        return _codes(self)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the changes in place inside the block; threads see them too.

        Raises:
            PatchError: as `codes`.
        """
        codes = self.codes()
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
    codes: dict[str, CodeType] = {}
    for name in dict.fromkeys([change.function for change in patch.changes]):
        try:
            changes = [change for change in patch.changes if change.function == name]
            codes[name] = _compiled(name, *changes)
            if codes[name].co_freevars != _compiled(name).co_freevars:
                raise PatchError("the new text needs another `super()` than the function has")
        except PatchError as error:
            raise PatchError(f"mutant {patch.name!r}, {name}: {error}") from None
    return codes


def _compiled(function: str, *changes: Change) -> CodeType:
    """Return a function's code, compiled with its module in which it is changed."""
    module, _, path = function.partition(":")
    file, lines, tree = _parsed(module)
    node = tree
    for part in path.split("."):
        inside = [each for each in node.body if getattr(each, "name", None) == part]
        if not inside:
            raise PatchError("there is no such function")
        node = inside[0]
    has_docstring = ast.get_docstring(node) is not None and len(node.body) > 1
    body = node.body[has_docstring].lineno - node.lineno  # the line of its first statement
    text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
    for change in changes:
        text = _changed(text, change, body)
    whole = "\n".join([*lines[: node.lineno - 1], text, *lines[node.end_lineno :]])
    try:
        code: Any = compile(whole, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise PatchError(f"the new text is no Python: {error}") from None
    for name in path.split("."):
        [code] = [each for each in code.co_consts if getattr(each, "co_name", None) == name]
    made: CodeType = code
    return made


@cache
def _parsed(module: str) -> tuple[str, list[str], Any]:
    """Return a module's file, its lines and its syntax tree."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise PatchError("there is no such module")
    source = Path(spec.origin).read_text("utf-8")
    return spec.origin, source.split("\n"), ast.parse(source)


def _changed(text: str, change: Change, body: int) -> str:
    """Return a function's text with a change; `body` is the line of its first statement."""
    if not change.before:
        lines = text.split("\n")
        indent = _indent_of(lines[body])
        lines.insert(body, indent + _indented(change.after, indent))
        return "\n".join(lines)
    places = []
    for match in re.finditer(re.escape(_indented(change.before).partition("\n")[0]), text):
        indent = _indent_of(text[text.rfind("\n", 0, match.start()) + 1 :])
        whole = _indented(change.before, indent)
        if text.startswith(whole, match.start()):
            places.append((match.start(), match.start() + len(whole), indent))
    if len(places) != 1:
        times = f"occurs {len(places)} times" if places else "is gone"
        raise PatchError(f"this text {times}: {change.before!r}")
    [(start, end, indent)] = places
    return text[:start] + _indented(change.after, indent) + text[end:]


def _indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" "))]


def _indented(text: str, indent: str = "") -> str:
    return re.sub(r"\n(?!\n)", f"\n{indent}", dedent(text).strip("\n"))  # blank lines stay blank


def _function(name: str) -> FunctionType:
    """Return the function of ``module:qualified.name``, without what decorators put around it."""
    module, _, path = name.partition(":")
    named: Any = import_module(module)
    for part in path.split("."):
        named = inspect.getattr_static(named, part)
    for attribute in ("fget", "func", "__func__"):  # of properties and class methods
        named = getattr(named, attribute, named)
    function: FunctionType = inspect.unwrap(named)
    return function
