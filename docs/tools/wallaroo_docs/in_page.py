"""Answers the requests of a page that is being read: run an example, make a project of it.

A request and its answer are JSON, since the caller is a script in a browser. It runs in CPython
too, where the tests call it for every example.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wallaroo import testing
from wallaroo.drawing.svg import svg
from wallaroo.errors import WallarooError
from wallaroo.loading import set_up
from wallaroo.readable import NOTHING
from wallaroo.testing import Result, Session
from wallaroo.topology import Application, Sink, Source, Step
from wallaroo_docs.line_input import events, payloads_of
from wallaroo_docs.line_input import play as play_event
from wallaroo_docs.performing import BadExampleError, directory, loaded, result_of_input
from wallaroo_docs.projects import project
from wallaroo_docs.show import sections, wrapped
from wallaroo_docs.stepping import MOST, Playing, TooLongError

APPLICATION = "application"
"""The name of the module that a reader's application becomes, and of its file in errors."""

Sections = dict[str, str]


def answer(request: str) -> str:
    """Answer a page's request, such as ``{"do": "run", "kind": "application", …}``."""
    asked = json.loads(request)
    return json.dumps(_DOES[asked.pop("do")](**asked))


def run(kind: str, source: str, input: str) -> Sections:
    """Run an example, as it stands in the page or as the reader has changed it.

    Args:
        kind: ``application``, ``lines``, ``prompt``, ``code`` or ``refused``
            (`wallaroo_docs.page_examples.PageExample`).
        source: Python.
        input: of ``application``, Python that calls `run` or makes a `Session`; of ``lines``, text;
            of ``prompt``, what is typed at Python's prompt.

    Returns:
        What came out, by the titles of the specification's blocks; ``error`` if something raised.
    """
    printed = io.StringIO()
    came: Sections = {}
    try:
        with contextlib.redirect_stdout(printed):
            came = _RUNS[kind](source, input)
    except BaseException as error:  # noqa: BLE001 - whatever the reader's code raises is shown
        came = {"error": _text_of(error)}
        if where := _where(error):
            came["where"] = where
    if printed.getvalue():
        came["printed"] = printed.getvalue()
    return came


def _run_application(source: str, text: str) -> Sections:
    return _sections(*_performed(source, text))


def _performed(source: str, text: str) -> tuple[Result, int | None]:
    module = loaded(APPLICATION, source).module
    return result_of_input(text, module, name="input", engine="reference", isolation="isolated")


def _run_lines(source: str, text: str) -> Sections:
    result = _played(application_of(source), text).result
    came = _sections(result, None)
    if len(result.outputs) == 1 and result.output:
        came["outputs"] = _as_printed(result.output)
    return came


def _played(application: Application, text: str) -> Session:
    session = Session(application)
    for event in events(application, text):
        play_event(session, event)
    return session


def _run_prompt(source: str, text: str) -> Sections:
    namespace = dict(vars(loaded(APPLICATION, source).module))
    for statement in ast.parse(text, "input.py").body:
        # "single": the value of an expression is printed, as at Python's prompt.
        code = compile(ast.Interactive([statement]), "input.py", "single")
        exec(code, namespace)  # noqa: S102 - the documents' own examples, or the reader's own
    return {}


def _run_code(source: str, _: str) -> Sections:
    loaded(APPLICATION, source)
    return {}


def application_of(source: str) -> Application:
    """Return the application that a module builds: by `application_setup`, or as `application`.

    Raises:
        ApplicationLoadError: executing it raised, or it does not build an application.
    """
    module = loaded(APPLICATION, source)
    built = getattr(module.module, "application", None)
    if isinstance(built, Application) and not hasattr(module.module, "application_setup"):
        return built
    return set_up(module, placeholders=True)


def _sections(result: Result, partitions: int | None) -> Sections:
    happened = {"outputs": f"{NOTHING}\n", **sections(result, partitions)}
    return {title: text for title, text in happened.items() if title != "dead-letter lines"}


def _as_printed(outputs: list[bytes]) -> str:
    """Return outputs as ``wallaroo run --stdout`` writes them."""
    whole = b"".join([each if each.endswith(b"\n") else each + b"\n" for each in outputs])
    return whole.decode("utf-8", "backslashreplace")


def _text_of(error: BaseException) -> str:
    if isinstance(error, (WallarooError, BadExampleError)):
        return wrapped(str(error).replace(f"{directory()}/", ""))
    return f"{type(error).__name__}: {error}\n"


def _where(error: BaseException) -> str:
    """Return the line of the reader's text at which an exception was raised; ``""``: in none."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [
        f"{Path(frame.filename).stem}, line {frame.lineno}\n"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).stem in (APPLICATION, "input")
    ]
    return "".join(lines[-1:])


def make_project(name: str, kind: str, source: str, input: str) -> dict[str, str]:
    """Return a project with this application, as a zip archive in base64; or ``error``."""
    try:
        if kind == "application":
            packed = project(name, source, result=_performed(source, input)[0], text=input)
        elif kind == "lines":
            application = application_of(source)
            payloads = payloads_of(events(application, input))
            result = testing.run(application, payloads)
            packed = project(name, source, result=result, payloads=repr(payloads))
        else:
            packed = project(name, source, result=None)
    except Exception as error:  # noqa: BLE001 - whatever the reader's code raises is shown
        return {"error": _where(error) + str(error)}
    return {"zip": base64.b64encode(packed).decode("ascii")}


def draw(source: str) -> dict[str, str]:
    """Return a picture of the application that is being written, or why there is none."""
    try:
        return {"svg": svg(application_of(source))}
    except BaseException as error:  # noqa: BLE001 - whatever the reader's code raises is shown
        return {"error": _text_of(error), "where": _where(error)}


def play(source: str, input: str) -> dict[str, Any]:
    """Play lines of input, and return each step of the engine, with its results.

    Returns:
        ``svg``; ``steps``, one for each `wallaroo_docs.stepping.Moment`; ``names`` of the nodes
        that their numbers mean; ``error`` if the run could not go on.
    """
    shown: dict[str, Any] = {"steps": []}
    playing: Playing | None = None
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            application = application_of(source)
            shown["svg"] = svg(application)
            shown["names"] = [_name(node) for node in application.nodes]
            playing = Playing(application)
            for event in events(application, input):
                play_event(playing, event)
    except TooLongError:
        shown["error"] = f"There are more than {MOST} steps; these are the first.\n"
    except BaseException as error:  # noqa: BLE001 - whatever the reader's code raises is shown
        shown |= {"error": _text_of(error), "where": _where(error)}
    if playing is not None:
        shown["steps"] = playing.moments()
    return shown


def _name(node: Source | Step | Sink) -> str:
    if isinstance(node, Source):
        return f"source {node.pipeline}"
    if isinstance(node, Sink):
        return "sink {}".format("[{1}] of {0}".format(*node.id) if node.id[1] else node.id[0])
    return str(node.name)


_RUNS: dict[str, Callable[[str, str], Sections]] = {
    "application": _run_application,
    "lines": _run_lines,
    "prompt": _run_prompt,
    "code": _run_code,
    "refused": _run_code,
}
_DOES: dict[str, Callable[..., Any]] = {
    "run": run,
    "project": make_project,
    "draw": draw,
    "play": play,
}
