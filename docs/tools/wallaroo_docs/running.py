"""Running an example of the specification on an engine, and what each of its results then says."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from wallaroo import testing
from wallaroo.engine import Isolation
from wallaroo.errors import WallarooParameterError
from wallaroo.loading import load_file
from wallaroo.parts import second_part_of
from wallaroo.testing import Result
from wallaroo.trace import NOT_COMPARED
from wallaroo_docs.blocks import RESULTS, Block, SpecExample
from wallaroo_docs.promises import NotPromisedError, isolation_of
from wallaroo_docs.sessions import serve
from wallaroo_docs.show import shown, wrapped

THE_REFERENCE = "reference"
"""The engine whose results stand in the documents."""


class BadExampleError(Exception):
    """The example itself is not as it should be."""


VISITS_A_PARTITION_TWICE = "order-1.2"
"""The only example of the rules' first part that an engine may refuse; its text says so."""


def may_be_refused(example: SpecExample) -> bool:
    """Whether an engine may refuse to run an example (build-2): it uses the rules' second part."""
    if example.name == VISITS_A_PARTITION_TWICE:
        return True
    module = _module(example)
    return hasattr(module, "application") and bool(second_part_of(module.application))


def results(example: SpecExample, engine: str) -> Mapping[Block, str]:
    """Run an example and return what each of its blocks that tell a result should say.

    Args:
        example: which.
        engine: an installed engine's name; of no account for ``code`` and ``refused``.

    Raises:
        NotPromisedError: this engine owes the example nothing.
        BadExampleError: something is missing from the example.
        Exception: whatever the example raises.
    """
    if example.kind == "application":
        return _run(example, engine)
    if example.kind == "session":
        return _printed(example, {**vars(_module(example)), "serve": serve(engine)})
    if example.kind == "code":
        return _printed(example, {})
    return _refused(example)


def _run(example: SpecExample, engine: str) -> dict[Block, str]:
    module = _module(example)
    isolation = isolation_of(engine)
    if isolation == "trusting":
        _expect_no_findings(example, module)
    said: dict[Block, str] = {}
    result: Result | None = None
    partitions: int | None = None
    titles: set[str] = set()
    for block in example.blocks[1:]:
        if block.title == "input":
            _expect_all_shown(result, titles, example)
            result, partitions = _call(block, example, module, engine, isolation)
            titles = set()
        elif block.title in RESULTS and result is not None:
            titles.add(block.title)
            # Findings are not compared between engines.
            known = block.title == "findings" and engine != THE_REFERENCE
            said[block] = block.text if known else shown(block.title, result, partitions=partitions)
        else:
            raise BadExampleError(f"{example.name}: no input before {block.title!r}")
    _expect_all_shown(result, titles, example)
    return said


def _call(
    block: Block, example: SpecExample, module: ModuleType, engine: str, isolation: Isolation
) -> tuple[Result, int | None]:
    """Execute an input block and return what its one call of `run`, or its session, gave."""
    met: list[tuple[Result, int | None]] = []
    sessions: list[testing.Session] = []

    def run(application: Any, payloads: Any = (), **options: Any) -> Result:
        result = testing.run(application, payloads, engine=engine, isolation=isolation, **options)
        met.append((result, options.get("partitions")))
        return result

    def session(application: Any, **options: Any) -> testing.Session:
        made = testing.Session(application, engine=engine, isolation=isolation, **options)
        sessions.append(made)
        return made

    _execute(block, example.path, {**vars(module), "run": run, "Session": session})
    met += [(one.result, None) for one in sessions]
    if len(met) != 1:
        raise BadExampleError(
            f"{example.name}: an input calls run, or makes a session, once, not {len(met)} times"
        )
    return met[0]


def _expect_no_findings(example: SpecExample, module: ModuleType) -> None:
    for block in example.blocks:
        if block.title == "input":
            result, _ = _call(block, example, module, THE_REFERENCE, "isolated")
            if result.findings:
                raise NotPromisedError(
                    f"trusting mode promises nothing to an application with the finding "
                    f"{result.findings[0].kind}"
                )


def _expect_all_shown(result: Result | None, titles: set[str], example: SpecExample) -> None:
    """Refuse an example that keeps silent about what happened."""
    if result is None:
        return
    if result.outputs and "outputs" not in titles:
        raise BadExampleError(f"{example.name}: its outputs are not shown")
    if result.dead_letters and not titles & {"dead letters", "dead-letter lines"}:
        raise BadExampleError(f"{example.name}: its dead letters are not shown")
    if result.open_windows and "open windows" not in titles:
        raise BadExampleError(f"{example.name}: its open windows are not shown")
    if result.trace.late and "late" not in titles:
        raise BadExampleError(f"{example.name}: its late messages are not shown")
    if result.trace.ended and "ended" not in titles:
        raise BadExampleError(f"{example.name}: that the run ended early is not shown")


def _printed(example: SpecExample, names: dict[str, Any]) -> dict[Block, str]:
    namespace: dict[str, Any] = {"__name__": "example", **names}
    if not names:
        exec(compile(example.beginning, str(example.path), "exec"), namespace)  # noqa: S102 - ours
    said: dict[Block, str] = {}
    text = ""
    for block in example.blocks:
        if block.title == "application":
            continue
        if block.title == "printed":
            said[block] = text
        else:
            text = _execute(block, example.path, namespace)
    if not said:
        raise BadExampleError(f"{example.name}: it shows nothing printed")
    return said


def _refused(example: SpecExample) -> dict[Block, str]:
    namespace: dict[str, Any] = {"__name__": "example"}
    exec(compile(example.beginning, str(example.path), "exec"), namespace)  # noqa: S102 - our text
    said: dict[Block, str] = {}
    error: WallarooParameterError | None = None
    for block in example.blocks:
        if block.title == "error":
            if error is None:
                raise BadExampleError(f"{example.name}: nothing was refused")
            said[block] = wrapped(str(error))
            continue
        try:
            _execute(block, example.path, namespace)
            error = None
        except WallarooParameterError as refusal:
            error = refusal
    return said


def agree(block: Block, said: str, engine: str) -> bool:
    """Whether what a block should say on this engine is what it says, as far as rules go."""
    if block.title == "dead-letter lines" and engine != THE_REFERENCE:
        return _without_errors(said) == _without_errors(block.text)
    return said == block.text


def _without_errors(lines: str) -> list[dict[str, Any]]:
    """Return dead letters without what engines need not agree on (dead-1)."""
    letters = [json.loads(line) for line in lines.splitlines()]
    return [{**letter, **dict.fromkeys(NOT_COMPARED)} for letter in letters]


def _execute(block: Block, path: Path, namespace: dict[str, Any]) -> str:
    """Execute a block, with its lines numbered as in the document; return what it printed."""
    printed = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)  # noqa: S102 - the documents' own examples
    return printed.getvalue()


def _module(example: SpecExample) -> ModuleType:
    """Return the example's application as a module with a file, so that workers can import it."""
    name = f"spec_{example.path.stem}_{example.name}".replace("-", "_").replace(".", "_")
    path = _directory() / f"{name}.py"
    path.write_text(f"{example.beginning}\n\n{example.blocks[0].text}", "utf-8")
    sys.modules.pop(name, None)  # what an earlier run left in its objects is no part of this one
    module = load_file(path, name).module
    wanted = "application_setup" if example.kind == "session" else "application"
    if not hasattr(module, wanted):
        raise BadExampleError(f"{example.name}: its module defines no {wanted}")
    return module


_directories: list[tempfile.TemporaryDirectory[str]] = []


def _directory() -> Path:
    """Return this process's directory of modules; it goes when the process does."""
    if not _directories:
        _directories.append(tempfile.TemporaryDirectory(prefix="wallaroo-docs-"))
    return Path(_directories[0].name)


def rewritten(path: Path, examples: Iterable[SpecExample]) -> str:
    """Return a chapter's text with every result as the reference gives it."""
    text = path.read_text("utf-8")
    said: dict[Block, str] = {}
    for example in examples:
        with contextlib.suppress(NotPromisedError):  # such as recovery: it stays as it is written
            said |= results(example, THE_REFERENCE)
    for block in sorted(said, key=lambda block: block.span, reverse=True):
        start, end = block.span
        text = text[:start] + said[block] + text[end:]
    return text
