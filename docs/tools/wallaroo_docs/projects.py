"""An example as a project of the reader's own: the two files that ``wallaroo new`` writes."""

from __future__ import annotations

import ast
import io
import zipfile
from string import Template

from wallaroo.testing import Result

_SETUP = """

def application_setup(args):
    return application
"""
_LINES_TEST = Template('''\
"""Tests of $name: lines in, outputs out, no ports."""

from pathlib import Path

from wallaroo import testing
from wallaroo.loading import load_application

APPLICATION = Path(__file__).with_name("$name.py")


def test_what_comes_out():
    application = load_application(APPLICATION, placeholders=True)
    result = testing.run(application, $payloads)
    assert result.outputs == $outputs
    assert [letter.reason for letter in result.dead_letters] == $reasons
''')
_PYTHON_TEST = Template('''\
"""Tests of $name: payloads in, outputs out, no ports."""

from $name import *
from wallaroo.testing import ${names}Session, run


def test_what_comes_out():
$input
    assert result.outputs == $outputs
    assert [letter.reason for letter in result.dead_letters] == $reasons
''')
_CODE_TEST = Template('''\
"""Tests of $name."""

import $name


def test_it_can_be_imported():
    assert $name
''')


def project(
    name: str, source: str, *, result: Result | None, text: str = "", payloads: str = ""
) -> bytes:
    """Return a zip archive with a module and its test.

    Args:
        name: the module's.
        source: its text.
        result: what the run gave, which the test expects; `None`: there was none.
        text: the input as Python.
        payloads: or the payloads of each source, as Python.
    """
    said = {"name": name}
    if result is not None:
        said["outputs"] = repr(result.outputs)
        said["names"] = "Produced, " * ("Produced(" in said["outputs"])  # of a Kafka sink
        said["reasons"] = repr([letter.reason.value for letter in result.dead_letters])
    if result is None:
        test = _CODE_TEST.substitute(said)
    elif payloads:
        test = _LINES_TEST.substitute(said, payloads=payloads)
    else:
        test = _PYTHON_TEST.substitute(said, input=_indented(_named(text)))
    if "def application_setup" not in source and "application = " in source:
        source += _SETUP
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/{name}.py", source)
        archive.writestr(f"{name}/test_{name}.py", test)
    return packed.getvalue()


def _named(text: str) -> str:
    """Return an input so that what it gives has the name `result`."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Expr) and _called(node.value) == "run":
            lines = text.splitlines(keepends=True)
            lines[node.lineno - 1] = f"result = {lines[node.lineno - 1]}"
            return "".join(lines)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            made = node.targets[0].id
            if _called(node.value) == "run":
                return f"{text}result = {made}\n"
            if _called(node.value) == "Session":
                return f"{text}result = {made}.result\n"
    raise ValueError("the input neither calls run nor makes a Session, at its beginning of a line")


def _called(node: ast.expr) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _indented(text: str) -> str:
    return "".join([f"    {line}" if line.strip() else line for line in text.splitlines(True)])
