"""Runs an example of the specification on an engine, and returns what each of its blocks says."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from wallaroo.engine import Isolation, rules_beyond_steps
from wallaroo.errors import WallarooParameterError
from wallaroo.testing import Result
from wallaroo.trace import NOT_COMPARED
from wallaroo_docs.examples import RESULTS, Block, SpecExample, source_of
from wallaroo_docs.performing import (
    BadExampleError,
    NotPromisedError,
    execute,
    isolation_of,
    loaded,
    result_of_input,
)
from wallaroo_docs.sessions import serve
from wallaroo_docs.show import sections, shown, wrapped

THE_REFERENCE = "reference"
"""The engine whose results stand in the documents."""


VISITS_A_PARTITION_TWICE = "order-1.2"
"""The only example of the rules' first part that an engine may refuse; its text says so."""


def may_be_refused(example: SpecExample) -> bool:
    """Whether an engine may refuse an example (build-2): it has graphs, keys, time or windows."""
    if example.name == VISITS_A_PARTITION_TWICE:
        return True
    module = _module(example)
    return hasattr(module, "application") and bool(rules_beyond_steps(module.application))


def results(example: SpecExample, engine: str) -> Mapping[Block, str]:
    """Run an example and return what each of its blocks that tell a result should say.

    Args:
        example: which.
        engine: an installed engine's name; ignored for ``code`` and ``refused``.

    Raises:
        NotPromisedError: this engine promises nothing about the example.
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
    return result_of_input(
        block.text,
        module,
        name=example.name,
        engine=engine,
        isolation=isolation,
        file=str(example.path),
        line=block.line,
    )


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
    """Refuse an example that does not show everything that happened."""
    if result is None:
        return
    happened = {*sections(result), *["outputs"] * bool(result.outputs)}
    if titles & {"dead letters", "dead-letter lines"}:
        titles = titles | {"dead letters", "dead-letter lines"}
    if missing := happened - titles - {"entities", "findings"}:
        raise BadExampleError(f"{example.name}: not shown: {', '.join(sorted(missing))}")


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
    return execute(block.text, namespace, file=str(path), line=block.line)


def _module(example: SpecExample) -> ModuleType:
    """Return the example's application as a module."""
    name = f"spec_{example.path.stem}_{example.name}".replace("-", "_").replace(".", "_")
    module = loaded(name, source_of(example)).module
    wanted = "application_setup" if example.kind == "session" else "application"
    if not hasattr(module, wanted):
        raise BadExampleError(f"{example.name}: its module defines no {wanted}")
    return module


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
