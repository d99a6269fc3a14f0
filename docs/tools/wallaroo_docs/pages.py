r"""The other pages: everything they show is done, in order, in a directory of their own.

=============================================  ====================================================
a block's first line                           what is done
=============================================  ====================================================
```` ```python ````                            executed, all of a page's in one module; with ``>>>``
                                               as a doctest; a title that names no file is for
                                               people
```` ```python title="votes.py" ````           written to that file
```` ```text title="words.txt" ````            written to that file, as any other language is
```` ```console ````                           each ``$ command`` is run by a shell; its output must
                                               be what follows it
```` ```console title="terminal 1" ````        the same, but the command goes on in the background;
                                               a line ``^C`` interrupts it
```` ```text title="terminal 1" ````           what that terminal shows next, sooner or later
=============================================  ====================================================

In what is printed, ``...`` stands for anything. Ports are exchanged for free ones. A block after
``<!-- skip: next -->`` is for people only: commands that take minutes, or need another machine.
"""

from __future__ import annotations

import doctest
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, TracebackType

from sybil import Document, Example, Region, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer
from sybil.typing import Parser

DOCS = Path(__file__).parents[2]

_PATIENCE = 120.0  # seconds until a page has failed that waits for something
_LOOK = 0.02  # seconds between looks at a terminal
_INFO = re.compile(r'(?P<language>\w+)(?: title="(?P<title>[^"\n]*)")?[ \t]*$\n', re.MULTILINE)
_PORT = re.compile(r"127\.0\.0\.1:([1-9]\d{3,4})\b")


def pages() -> list[Path]:
    """Return the pages that are no chapters of the specification, in alphabetical order."""
    return sorted(DOCS.glob("*.md"))


class Page:
    """A page that is being followed, with its files, terminals and ports.

    Args:
        path: the page.
        directory: where its files are written and its commands run.
    """

    def __init__(self, path: Path, directory: Path) -> None:
        self._directory = directory
        self._terminals: dict[str, _Terminal] = {}
        self._ports = {port: _free_port() for port in _PORT.findall(path.read_text("utf-8"))}
        python = PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS)
        parsers: list[Parser] = [python, self._parse, SkipParser()]
        self.document = Sybil(parsers, path=str(DOCS)).parse(path)
        # A module, so that classes that the page defines can be pickled.
        module = ModuleType(f"page_{path.stem.replace('-', '_')}")
        sys.modules[module.__name__] = module
        self.document.namespace = vars(module)

    def __enter__(self) -> Page:
        self._known = set(sys.modules)
        sys.path.insert(0, str(self._directory))
        self._before = Path.cwd()
        os.chdir(self._directory)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.chdir(self._before)
        sys.path.remove(str(self._directory))
        for name in set(sys.modules) - self._known:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(self._directory)):
                del sys.modules[name]  # another page may have a file of that name
        for terminal in self._terminals.values():
            terminal.close()

    def _parse(self, document: Document) -> Iterator[Region]:
        for region in RawFencedCodeBlockLexer(_INFO)(document):
            language, title = region.lexemes["language"], region.lexemes["title"] or ""
            if language == "console":
                yield _with(region, self._console)
            elif title.startswith("terminal "):
                yield _with(region, self._next)
            elif re.search(r"\.\w+$", title):
                yield _with(region, self._write)
            elif language == "python" and title:
                yield _with(region, PythonEvaluator())

    def _write(self, example: Example) -> None:
        title = example.region.lexemes["title"]
        path = self._directory / title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(example.parsed), "utf-8")

    def _console(self, example: Example) -> str | None:
        title = example.region.lexemes["title"]
        for command, expected in commands(str(example.parsed)):
            if title is None:
                printed = self._run(command)
                if not _matches(expected, printed):
                    return f"$ {command}\n{printed}instead of\n{expected}"
                continue
            terminal = self._terminals.setdefault(title, _Terminal())
            if command == "^C":
                terminal.interrupt()
            else:
                terminal.start(self._exchanged(command), self._directory)
            # Several threads of a command print while it starts.
            if problem := self._shows(terminal, expected, in_order=command == "^C"):
                return problem
        return None

    def _next(self, example: Example) -> str | None:
        terminal = self._terminals[example.region.lexemes["title"]]
        return self._shows(terminal, str(example.parsed), in_order=True)

    def _shows(self, terminal: _Terminal, expected: str, *, in_order: bool) -> str | None:
        deadline = time.monotonic() + _PATIENCE
        matches = _matches if in_order else _matches_in_any_order
        while not matches(expected, self._restored(terminal.new())):
            if time.monotonic() > deadline:
                return f"it shows\n{self._restored(terminal.new())}instead of\n{expected}"
            time.sleep(_LOOK)
        terminal.seen()
        return None

    def _run(self, command: str) -> str:
        done = subprocess.run(  # noqa: S602 - the documents' own commands
            self._exchanged(command),
            shell=True,
            executable="/bin/bash",
            cwd=self._directory,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            check=False,
        )
        return self._restored(done.stdout.decode("utf-8"))

    def _exchanged(self, text: str) -> str:
        return _PORT.sub(lambda match: f"127.0.0.1:{self._ports[match[1]]}", text)

    def _restored(self, text: str) -> str:
        for shown, port in self._ports.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{shown}")
        return text


class _Terminal:
    """A command in the background, and what it has printed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._printed = b""
        self._seen = 0

    def start(self, command: str, directory: Path) -> None:
        self.close()
        self._process = subprocess.Popen(  # noqa: S602 - the documents' own commands
            f"exec {command}",
            shell=True,
            executable="/bin/bash",
            cwd=directory,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def interrupt(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(_PATIENCE)
        self._reader.join(_PATIENCE)

    def close(self) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(_PATIENCE)
        self._reader.join(_PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def new(self) -> str:
        return self._printed[self._seen :].decode("utf-8", "replace")

    def seen(self) -> None:
        self._seen = len(self._printed)

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        while data := os.read(process.stdout.fileno(), 65536):
            self._printed += data


def _with(region: Region, evaluate: object) -> Region:
    region.parsed = region.lexemes["source"]
    region.evaluator = evaluate  # type: ignore[assignment]  # a bound method is one
    return region


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block, and what is printed after it."""
    command: list[str] = []
    printed: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ ") or line == "^C":
            if command:
                yield "\n".join(command), "".join(printed)
            command, printed = [line.removeprefix("$ ")], []
        elif command and command[-1].endswith("\\") and not printed:
            command.append(line)
        else:
            printed.append(f"{line}\n")
    if command:
        yield "\n".join(command), "".join(printed)


def _matches(expected: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(
        expected, printed, doctest.ELLIPSIS | doctest.DONT_ACCEPT_BLANKLINE
    )


def _matches_in_any_order(expected: str, printed: str) -> bool:
    orders = itertools.permutations(printed.splitlines(keepends=True))
    return any(_matches(expected, "".join(order)) for order in itertools.islice(orders, 120))


def _environment() -> dict[str, str]:
    """Return an environment in which commands print what they would on a plain terminal."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    return {**kept, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1"}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
