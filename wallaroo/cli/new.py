"""``wallaroo new``: a starting application and its test, or the repository of an engine."""

from __future__ import annotations

import argparse
import keyword
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from string import Template

from wallaroo.cli.main import Subparsers
from wallaroo.engine import engine_names
from wallaroo.errors import UsageError, WallarooError

_EXAMPLES = """\
examples:
  wallaroo new my_app
  pytest test_my_app.py
  printf 'ann\\nbob\\nann\\n' | wallaroo run my_app.py --stdin --stdout
  wallaroo new my_windows --windows
  wallaroo new --engine my_engine
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "new",
        help="write a starting application and its test, or the repository of an engine",
        description="Write NAME.py, a starting application, and test_NAME.py, its test, into the "
        "current directory. Or the folder NAME: a repository for an engine of your own.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("name", metavar="NAME", help="its name, as a module's")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--windows", action="store_true", help="an application with event times and windows"
    )
    kinds.add_argument(
        "--engine",
        action="store_true",
        help="the repository of an engine: package, entry point, tests, CI files, README",
    )
    parser.set_defaults(run=new)


def new(options: argparse.Namespace) -> int:
    """Run the command."""
    name = options.name.removesuffix(".py")
    _check_form(name, "--engine " if options.engine else "")
    if options.engine:
        return _new_engine(name)
    files = files_of("windows" if options.windows else "application", name)
    for path in files:
        if path.exists():
            raise WallarooError(f"{path} is there already, and nothing was written")
    _check_free(name)
    _write(files)
    print(f"wrote {name}.py and test_{name}.py; try: pytest test_{name}.py")
    return 0


def files_of(template: str, name: str) -> dict[Path, str]:
    """Return the files of a template by their paths.

    Args:
        template: ``application``, ``windows`` or ``engine``: a folder beside this module.
        name: stands for NAME in the paths, and for ``$name`` in the texts.
    """
    folder = Path(__file__).parent / "templates" / template
    return {
        Path(str(path.relative_to(folder).with_suffix("")).replace("NAME", name)): Template(
            path.read_text(encoding="utf-8")
        ).substitute(name=name)
        for path in sorted(folder.rglob("*.template"))
    }


def _new_engine(name: str) -> int:
    """Write the repository of an engine into a folder of its name, which must not be there."""
    if name in engine_names():
        raise UsageError(f"an engine {name!r} is installed already; give yours another name")
    folder = Path(name)
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise WallarooError(f"{folder} is there already, and nothing was written") from error
    _write({folder / path: text for path, text in files_of("engine", name).items()})
    print(f"wrote {folder}/; {folder / 'README.md'} says how to get its first report")
    return 0


def _write(files: Mapping[Path, str]) -> None:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)


def _check_form(name: str, option: str) -> None:
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        suggestion = "".join([c if c.isascii() and c.isalnum() else "_" for c in name])
        if not suggestion.isidentifier() or keyword.iskeyword(suggestion):
            suggestion = f"my_{suggestion}"
        raise UsageError(
            f"{name!r} cannot be a module's name; try: wallaroo new {option}{suggestion}"
        )


def _check_free(name: str) -> None:
    if name in (*sys.stdlib_module_names, "conftest") or find_spec(name) is not None:
        # It would run, but `import json` in a file beside it would import it, not the library.
        raise UsageError(f"{name!r} is a name that a library uses; try: wallaroo new my_{name}")
