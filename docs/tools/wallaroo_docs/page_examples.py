"""The examples of the pages, as a browser runs them: taken from the text that the tests execute.

A page gets a mark at the beginning and at the end of each example; the examples of a page are in a
JSON file beside the scripts, which is loaded when an example is opened.
"""

from __future__ import annotations

import doctest
import functools
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wallaroo_docs.blocks import chapters, examples
from wallaroo_docs.examples import SpecExample, source_of

DOCS = Path(__file__).parents[2]

LEARNT = {"tutorial", "windows"}
"""The pages whose prompts run: those of other pages need files, commands or more packages."""

_FILED = "dead-letter lines"  # a file's content, with the names of modules: a page shows no file


@dataclass(frozen=True)
class Run:
    """What one press of the button runs, and the expected results.

    Args:
        source: Python: the application's module, or the code.
        folded: how many of its first lines are those that the chapter's examples share.
        input: for an application, Python with one call of `run`, or lines; else ``""``.
        expected: the text of each block below, by its title.
    """

    source: str
    folded: int
    input: str
    expected: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PageExample:
    """An example of a page.

    Args:
        name: a rule's id and a number, or a file's name.
        kind: ``application``, ``lines`` (an application whose input is lines of text), ``prompt``
            (a module, and what is typed at Python's prompt), ``code`` or ``refused``.
        runs: what can be run of it, in the order of the text.
        span: where its blocks stand in the page's text.
    """

    name: str
    kind: str
    runs: tuple[Run, ...]
    span: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """Return the data that the page's script needs."""
        return {"name": self.name, "kind": self.kind, "runs": [asdict(run) for run in self.runs]}


@functools.cache
def page_examples(path: Path) -> list[PageExample]:
    """Return the examples of a page that can run in it; live ones need sockets, and cannot."""
    if path in chapters():
        return [
            PageExample(example.name, example.kind, tuple(_runs(example)), (found.start, found.end))
            for found in examples(path, lambda _: None)
            if (example := found.parsed).kind != "session"
        ]
    text = path.read_text("utf-8")
    prompts = _prompt_examples(text) if path.stem in LEARNT else ()
    return sorted([*_shell_examples(text), *prompts], key=lambda one: one.span)


def marked(
    text: str,
    page: str,
    found: list[PageExample],
    behind: Callable[[PageExample], str] = lambda _: "",
) -> str:
    """Return a page's text with a mark where each of its examples begins and ends.

    Args:
        text: the page's.
        page: its name, as its file of examples has it.
        found: its examples.
        behind: returns Markdown to put behind an example.
    """
    for example in reversed(found):
        start, end = example.span
        begin = (
            f'<div class="example-begin" data-page="{page}" data-example="{example.name}"></div>'
        )
        close = '<div class="example-end"></div>'
        more = f"\n\n{added}" if (added := behind(example)) else ""
        text = f"{text[:start]}{begin}\n\n{text[start:end]}\n\n{close}{more}{text[end:]}"
    return text


def _runs(example: SpecExample) -> Iterator[Run]:
    folded = example.beginning.count("\n")
    if example.kind == "application":
        source, folded = source_of(example), folded + 2
        inputs = [number for number, block in enumerate(example.blocks) if block.title == "input"]
        for start, end in zip(inputs, [*inputs[1:], len(example.blocks)], strict=True):
            results = [block for block in example.blocks[start + 1 : end] if block.title != _FILED]
            said = {block.title: block.text for block in results}
            yield Run(source, folded, example.blocks[start].text, said)
    elif example.kind == "code":
        source = "\n".join(block.text for block in example.blocks if block.title == "code")
        printed = "".join(block.text for block in example.blocks if block.title == "printed")
        yield Run(_behind(example.beginning, source), folded, "", {"printed": printed})
    else:
        for refused, error in zip(example.blocks[::2], example.blocks[1::2], strict=True):
            source = _behind(example.beginning, refused.text)
            yield Run(source, folded, "", {"error": error.text})


def _behind(beginning: str, text: str) -> str:
    return f"{beginning}\n{text}" if beginning else text


_FILE = re.compile(r'^```python title="(?P<name>\w+\.py)"\n(?P<text>.*?)^```$', re.M | re.S)
_PIPED = re.compile(
    r"^\$ (?P<printf>printf '[^']*') \| wallaroo run (?P<file>\w+\.py) --stdin --stdout\n"
    r"(?P<printed>.*?)(?=^\$|^```$)",
    re.M | re.S,
)
_SUMMARY = re.compile(r"^[^\n]* ran for \.\.\. s on the .*", re.M | re.S)


def _shell_examples(text: str) -> Iterator[PageExample]:
    """Yield the applications that a page feeds with lines in a shell's pipe."""
    piped = {found["file"]: found for found in reversed(list(_PIPED.finditer(text)))}
    for found in _FILE.finditer(text):
        name = found["name"]
        if name in piped and text.index(f'title="{name}"') < found.end():
            outputs = _SUMMARY.sub("", piped[name]["printed"])
            run = Run(found["text"], 0, _lines(piped[name]["printf"]), {"outputs": outputs})
            yield PageExample(name.removesuffix(".py"), "lines", (run,), found.span())


_PYTHON = re.compile(r'^```python(?: title="(?P<name>\w+)\.py")?\n(?P<text>.*?)^```$', re.M | re.S)


def _prompt_examples(text: str) -> Iterator[PageExample]:
    """Yield what a page types at Python's prompt with a module of the page.

    The module, and the Python between it and the prompt, are the source: what they import from the
    module by its name is there already.
    """
    module, beside, number = "", [""], 0
    for found in _PYTHON.finditer(text):
        if found["name"]:
            module, beside, number = found["name"], [found["text"]], 0
        elif not found["text"].startswith(">>> "):
            beside.append(found["text"])
        else:
            typed = doctest.DocTestParser().get_examples(found["text"])
            import_ = re.compile(rf"^from {module} import .*\n", re.M)
            texts = [*beside, "".join(one.source for one in typed)]
            if module and any(import_.search(each) for each in texts):
                number += 1
                *source, entered = [import_.sub("", each) for each in texts]
                folded = source[0].count("\n") if source[1:] else 0
                said = {"printed": "".join(one.want for one in typed)}
                run = Run("\n\n".join(source), folded, entered, said)
                yield PageExample(f"{module}.{number}", "prompt", (run,), found.span())


def _lines(command: str) -> str:
    """Return what a ``printf`` of a page writes."""
    done = subprocess.run(  # noqa: S603 - the documents' own commands
        shlex.split(command), stdout=subprocess.PIPE, check=True
    )
    return done.stdout.decode("utf-8")
