"""The command ``wallaroo``: finds its subcommands, reads the arguments, turns errors into one line.

A subcommand is an entry point of the group ``wallaroo.commands`` whose name is the command's and
whose value is a function ``register(subparsers) -> None``. If the command needs an extra of its
distribution, the entry point names it in brackets. The function adds the command's parser and calls
``set_defaults(run=function)``; ``function(namespace) -> int`` is the exit code. A command that
passes arguments on to an application also sets ``passes_arguments=True`` and finds them, in order,
in ``namespace.app_arguments``. All arguments after a ``--`` are passed on unread; they are also in
``namespace.unread_arguments``. The command's own options are in ``namespace.own_options``.

Exit codes: 0 all went well, 1 it failed, 2 it was called wrongly, 130 Ctrl-C, 141 the reader of its
output has ended (``wallaroo graph app.py | head``).
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
import textwrap
import traceback
from collections.abc import Sequence
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any, NoReturn, TypeAlias

from wallaroo.cli.arguments import did_you_mean, option_strings
from wallaroo.cli.completion import SHELLS, Completion
from wallaroo.cli.logs import LEVELS, logging_to
from wallaroo.errors import (
    ApplicationNotFoundError,
    EngineNotFoundError,
    ExtraMissingError,
    UsageError,
    WallarooError,
)
from wallaroo.extras import install_command, lacking, missing_packages
from wallaroo.text import escaped

COMMANDS = "wallaroo.commands"
READER_GONE = 141
"""The exit code when the reader of stdout has ended: 128 + SIGPIPE, as a shell reports it."""

_CALLED_WRONGLY = (
    UsageError,
    ApplicationNotFoundError,
    EngineNotFoundError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
)

Subparsers: TypeAlias = "argparse._SubParsersAction[CommandParser]"
"""The type of the argument of a command's `register`; argparse has no public name for it."""

_EXAMPLES = """\
examples:
  wallaroo new my_app                       a starting application and its test
  wallaroo check my_app.py                  is it right? print its topology
  wallaroo run my_app.py --in 127.0.0.1:7010 --out 127.0.0.1:7002
  wallaroo receive --listen 127.0.0.1:7002  print what the sink sends
  wallaroo send words.txt --to 127.0.0.1:7010

`wallaroo COMMAND --help` describes a command.
"""


class CommandParser(argparse.ArgumentParser):
    """A parser without abbreviated options: unknown options belong to the application."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("allow_abbrev", False)
        # Epilogs are examples, laid out by hand.
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs["description"] = textwrap.fill(kwargs.get("description") or "", 88)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and how to get help, on one line; exit with code 2."""
        self.exit(2, f"{self.prog}: {escaped(message)} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Args:
        argv: the arguments, without the program's name; by default the process's.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may support ASCII only
    try:
        try:
            namespace = parse(arguments)
            code = _run(namespace)
        except SystemExit as end:  # argparse has printed why
            if isinstance(end.__context__, BrokenPipeError):
                return READER_GONE  # rich noticed it, and turned stdout off
            code = _exit_code(end)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout once more at exit: allow that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return READER_GONE
    return code


def _exit_code(end: SystemExit) -> int:
    """Return the exit code of `end`; show the text it carries in its place, as Python does."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(f"wallaroo: {escaped(str(end.code))}", file=sys.stderr)
    return 1


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the namespace of a command line.

    Raises:
        SystemExit: help was asked for (0), or the command line is wrong (2).
    """
    parser, commands, unavailable = _parser(arguments)
    word = _command_word(arguments)
    if word in unavailable:
        parser.error(f"{word} {unavailable[word]}")
    if word and word not in commands:
        names = sorted([*commands, *unavailable])
        hint = did_you_mean(word, names) or f"; there are: {', '.join(names)}"
        parser.error(f"there is no command {word!r}{hint}")
    command = commands.get(word)
    tail: list[str] = []
    if command is not None and command.get_default("passes_arguments") and "--" in arguments:
        separator = arguments.index("--")
        arguments, tail = arguments[:separator], arguments[separator + 1 :]
    namespace, extras = parser.parse_known_args(arguments)
    if getattr(namespace, "passes_arguments", False):
        assert command is not None
        namespace.app_arguments = extras + tail
        namespace.unread_arguments = tail
        namespace.own_options = option_strings(command)
    elif extras:
        # The error of the command's own parser, whose help lists the options.
        at = command or parser
        hint = did_you_mean(extras[0], option_strings(at))
        at.error(f"unknown arguments: {' '.join(extras)}{hint}")
    if getattr(namespace, "run", None) is None:
        (command or parser).print_help(sys.stderr)
        raise SystemExit(2)
    return namespace


def _run(namespace: argparse.Namespace) -> int:
    """Run a command with logging set up; return its exit code, or that of the error it met."""
    with logging_to(sys.stderr, namespace.log_level, as_json=namespace.log_json):
        try:
            return int(namespace.run(namespace))
        except BrokenPipeError:
            raise
        except KeyboardInterrupt:
            return 130  # as a shell reports it
        except ModuleNotFoundError as error:
            point = next(iter(entry_points(group=COMMANDS, name=namespace.command)))
            if (lacks := lacking(point, error)) is None:
                raise
            _tell(ExtraMissingError(f"{point.name} {lacks}"), namespace)
            return 2
        except (WallarooError, OSError) as error:
            _tell(error, namespace)
            return 2 if isinstance(error, _CALLED_WRONGLY) else 1


def _tell(error: WallarooError | OSError, namespace: argparse.Namespace) -> None:
    """Show an error that ends a command: as one line, or as a record of the JSON log."""
    debug = namespace.log_level == "debug"
    if namespace.log_json:
        logging.getLogger("wallaroo").error(
            "%s", explained(error), exc_info=error if debug else None
        )
        return
    if debug:
        traceback.print_exception(error)
    print(f"wallaroo: {escaped(explained(error))}", file=sys.stderr)


def explained(error: WallarooError | OSError) -> str:
    """Return an error as one line: what happened, and where if that is known."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    where = "; ".join(getattr(error, "__notes__", ()))
    return f"{error} ({where})" if where else str(error)


def add_global_options(parser: argparse.ArgumentParser, **defaults: Any) -> None:
    """Add the options every command has."""
    group = parser.add_argument_group("logging")
    group.add_argument("--log-level", choices=LEVELS, help="least level logged (info)", **defaults)
    group.add_argument(
        "--log-json", action="store_true", help="log a JSON object a line", **defaults
    )


def _parser(
    arguments: list[str],
) -> tuple[CommandParser, dict[str, CommandParser], dict[str, str]]:
    """Return the parser, its commands by name, and the errors of commands that cannot be used."""
    points = entry_points(group=COMMANDS)
    parser = CommandParser(
        prog="wallaroo",
        description="Stream processing in plain Python functions.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"wallaroo {_version(points)}")
    parser.add_argument(
        "--completion",
        action=Completion,
        choices=SHELLS,
        help="print the script that completes command lines in this shell",
    )
    add_global_options(parser)
    parser.set_defaults(log_level="info", log_json=False)
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", parser_class=CommandParser
    )
    unavailable: dict[str, str] = {}
    to_install: dict[str, list[str]] = {}
    for point in _wanted(points, _command_word(arguments)):
        if missing := missing_packages(point):
            install = install_command(point)
            unavailable[point.name] = f"needs {', '.join(missing)}, not installed; try: {install}"
            to_install.setdefault(install, []).append(point.name)
            continue
        try:
            point.load()(subparsers)
        except Exception as error:  # noqa: BLE001 - a package's broken command breaks no other
            lacks = lacking(point, error) if isinstance(error, ModuleNotFoundError) else None
            unavailable[point.name] = lacks or (
                f"cannot be used here: {type(error).__name__}: {error}"
            )
    parser.epilog = "\n".join([_EXAMPLES, *_not_usable(unavailable, to_install)])
    commands: dict[str, CommandParser] = dict(subparsers.choices)
    for command in commands.values():
        # The same options after the command's name; values given before it are not overwritten.
        add_global_options(command, default=argparse.SUPPRESS)
    return parser, commands, unavailable


def _not_usable(unavailable: dict[str, str], to_install: dict[str, list[str]]) -> list[str]:
    """Return the help's lines about commands that cannot be used."""
    to_add = [f"  {', '.join(names)}: {install}" for install, names in sorted(to_install.items())]
    others = unavailable.keys() - {name for names in to_install.values() for name in names}
    broken = [f"  {name} {unavailable[name]}" for name in sorted(others)]
    return [
        *(["commands that need more packages:", *to_add, ""] if to_add else []),
        *(["commands that are broken:", *broken] if broken else []),
    ]


def _version(points: EntryPoints) -> str:
    """Return the version of the distribution that contains the command `run`."""
    brought = [point.dist for point in points.select(name="run")]
    return next((dist.version for dist in brought if dist is not None), "of unknown version")


def _wanted(points: EntryPoints, word: str) -> list[EntryPoint]:
    """Return the entry points to load: only the command's own, to save time."""
    return list(points.select(name=word)) or sorted(points, key=lambda point: point.name)


def _command_word(arguments: list[str]) -> str:
    """Return the command's name: the first argument that is neither an option nor its value."""
    words = iter(arguments)
    for word in words:
        if word in ("--log-level", "--completion"):
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""
