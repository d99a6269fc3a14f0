"""``wallaroo --completion SHELL``: a shell completes the commands, their options and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from wallaroo.engine import engine_names

SHELLS = ("bash", "zsh", "fish")

_FILES = ("APP", "FILE", "FILE.json", "CASE.json", "FILE.py")
_DIRECTORIES = ("DIR",)


class Completion(argparse.Action):
    """Prints the script for a shell, which `shtab` makes from the parser and its commands."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> NoReturn:
        """Print it and exit; exit with code 2 if `shtab` is not installed."""
        try:
            import shtab
        except ImportError:
            parser.error(
                "--completion needs shtab, not installed; try: pip install 'wallaroo-streams[cli]'"
            )
        for action in _arguments(parser):
            if action.metavar in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # read by shtab
            elif action.metavar in _DIRECTORIES:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # likewise
            elif "--engine" in action.option_strings:
                action.choices = engine_names()
        print(shtab.complete(parser, str(values)))
        parser.exit()


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and its commands."""
    for action in parser._actions:  # argparse has no public way to ask
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _arguments(command)
