r"""The specification's chapters as Sybil sees them: rules, and the examples that belong to them.

A rule is a second-level heading that begins with its id: ``## state-4 …``. An example is a run of
titled code blocks below it::

    ```python title="application"      a module that defines `application`
    ```python title="input"            one call of `run(application, …)` or `Session(application)`
    ```text title="outputs"            what came out: the block is written by a command
    ```python title="input"            the same application may run again
    …

    ```python title="session"          an application, served: real sockets, real processes
    ```text title="printed"

    ```python title="code"             Python that needs no engine
    ```text title="printed"

    ```python title="refused"          Python that cannot be built (build-1)
    ```text title="error"

A block titled `BEGINNING` holds the lines that every example of its chapter begins with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sybil import Document, Example, Lexeme, Region, Sybil
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer

from wallaroo_docs.examples import BEGINNING, RESULTS, Block, SpecExample

FORMAT = "wallaroo-spec-examples/1"
SPEC = Path(__file__).parents[2] / "spec"

_BEGINS = ("application", "code", "refused")
_FOLLOWS = ("input", "session", "printed", "error", *RESULTS)
_INFO = re.compile(r'(?P<language>\w+) title="(?P<title>[^"\n]*)"[ \t]*$\n', re.MULTILINE)
_SECTION = re.compile(r"^##? +(?P<title>.+)$", re.MULTILINE)
_RULE = re.compile(r"^## +(?P<id>[a-z]+-\d+)\b", re.MULTILINE)


def chapters() -> list[Path]:
    """Return the chapters, in alphabetical order."""
    return sorted(SPEC.glob("*.md"))


def rules(path: Path) -> list[str]:
    """Return the ids of the rules a chapter states, in its order."""
    return [match["id"] for match in _RULE.finditer(path.read_text("utf-8"))]


def parser(evaluate: Callable[[Example], str | None]) -> Callable[[Document], Iterator[Region]]:
    """Return a Sybil parser that finds a chapter's examples and calls `evaluate` for each."""

    def parse(document: Document) -> Iterator[Region]:
        for start, end, example in _examples(document):
            yield Region(start, end, parsed=example, evaluator=evaluate)

    return parse


def examples(path: Path, evaluate: Callable[[Example], str | None]) -> list[Example]:
    """Return a chapter's examples as Sybil holds them."""
    return list(Sybil([parser(evaluate)]).parse(path))


def dumped() -> dict[str, Any]:
    """Return all examples as JSON values: what to run, and the expected results."""
    found = [example.parsed for path in chapters() for example in examples(path, lambda _: None)]
    return {
        "format": FORMAT,
        "examples": [
            {
                "name": example.name,
                "rule": example.rule,
                "kind": example.kind,
                "beginning": example.beginning,
                "blocks": [{"title": block.title, "text": block.text} for block in example.blocks],
            }
            for example in found
        ],
    }


def _examples(document: Document) -> Iterator[tuple[int, int, SpecExample]]:
    beginning = ""
    counts: dict[str, int] = {}
    for section_start, regions in _sections(document):
        rule = _RULE.match(document.text, section_start)
        subject = rule["id"] if rule else Path(document.path).stem
        for group in _groups(document, regions):
            blocks = tuple([_block(document, region) for region in group])
            if blocks[0].title == BEGINNING:
                beginning = blocks[0].text
                continue
            counts[subject] = counts.get(subject, 0) + 1
            yield (
                group[0].start,
                group[-1].end,
                SpecExample(
                    f"{subject}.{counts[subject]}",
                    rule["id"] if rule else None,
                    Path(document.path),
                    beginning,
                    blocks,
                ),
            )


def _sections(document: Document) -> Iterator[tuple[int, list[Region]]]:
    """Yield where each section begins, and its titled blocks."""
    regions = sorted(RawFencedCodeBlockLexer(_INFO)(document), key=lambda region: region.start)
    inside = [range(region.start, region.end) for region in RawFencedCodeBlockLexer(_ANY)(document)]
    starts = [
        match.start()
        for match in _SECTION.finditer(document.text)
        if not any(match.start() in block for block in inside)
    ]
    for start, end in zip(starts, [*starts[1:], len(document.text)], strict=True):
        yield start, [region for region in regions if start <= region.start < end]


_ANY = re.compile(r"[^\n]*$\n", re.MULTILINE)


def _groups(document: Document, regions: list[Region]) -> Iterator[list[Region]]:
    group: list[Region] = []
    for region in regions:
        title = region.lexemes["title"]
        if title in _BEGINS or title == BEGINNING:
            if group:
                yield group
            group = [region]
        elif group and title in _FOLLOWS:
            group.append(region)
        else:
            line = document.text.count("\n", 0, region.start) + 1
            raise ValueError(f"{document.path}, line {line}: a block titled {title!r} here?")
    if group:
        yield group


def _block(document: Document, region: Region) -> Block:
    source: Lexeme = region.lexemes["source"]
    start = region.start + source.offset
    return Block(
        region.lexemes["title"],
        str(source),
        document.text.count("\n", 0, start) + 1,
        (start, start + len(source)),
    )
