"""Loads the application of a command, with the application's own arguments.

A command passes on the arguments that it does not know. An application takes an option by naming
it: the option stands in its code as a string of its own (``add_argument("--symbols")``, ``"--json"
in args``). An option that nobody takes is refused, since it is probably mistyped. What comes after
a ``--`` is the application's, whatever it is.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import wallaroo
from wallaroo.cli.arguments import did_you_mean
from wallaroo.errors import ApplicationNotFoundError, UsageError
from wallaroo.kafka_cli import KAFKA_OPTIONS
from wallaroo.loading import ADDRESS_OPTIONS, LoadedModule, load_module, set_up
from wallaroo.topology import Application

_OPTION = re.compile(r"--?[^\W\d][\w-]*")
_READ_BY_US = frozenset([option for options in ADDRESS_OPTIONS for option in options])
_OF_KAFKA = re.compile(r"--(?:[\w-]+_)?(kafka_(?:source|sink)_\w+)")
_OURS = Path(wallaroo.__file__ or "").parent


def load_named_application(
    options: argparse.Namespace,
    read: Sequence[str] | None = None,
    *,
    placeholders: bool,
    further: Sequence[str] = (),
    hint: Callable[[str], str] = lambda _: "",
) -> Application:
    """Return the application of a command line, ``options.app`` with ``options.app_arguments``.

    Args:
        options: the namespace of a command that passes arguments on.
        read: the arguments for the application from before the ``--``; by default all of them.
        placeholders: as for `wallaroo.loading.load_application`.
        further: options beside the command's own, such as the engine's.
        hint: gives the end of the error about an option, if more is known about it.

    Raises:
        UsageError: there is an option that neither the command nor the application knows.
        WallarooError: as `wallaroo.loading.load_application`.
    """
    unread = list(options.unread_arguments)
    if read is None:
        read = options.app_arguments[: len(options.app_arguments) - len(unread)]
    unknown = [
        word
        for word in read
        if _OPTION.match(word) and not _is_one_of(word, _READ_BY_US) and not _is_of_kafka(word)
    ]
    options_here = [*options.own_options, *further, *_READ_BY_US, *KAFKA_OPTIONS]
    try:
        loaded = load_module(options.app)
    except ApplicationNotFoundError:
        # The value of a mistyped option may have been taken for the application.
        for word in unknown:
            if near := did_you_mean(word, options_here):
                raise _refusal(word, near, options) from None
        raise
    named = _named_options(loaded) if unknown else None
    if named is not None:
        for word in unknown:
            if not _is_one_of(word, named):
                near = did_you_mean(word, [*options_here, *named])
                raise _refusal(word, hint(word) or near, options)
    return set_up(loaded, [*read, *unread], placeholders=placeholders)


def _refusal(word: str, hint: str, options: argparse.Namespace) -> UsageError:
    return UsageError(
        f"there is no option {word.partition('=')[0]}{hint} "
        f"(after -- the application gets everything; see wallaroo {options.command} --help)"
    )


def _is_one_of(word: str, names: frozenset[str]) -> bool:
    """Whether `word` is one of these options, perhaps with its value: ``--in=X``, ``-iX``."""
    return word.partition("=")[0] in names or (word[1] != "-" and word[:2] in names)


def _is_of_kafka(word: str) -> bool:
    """Whether `word` is an option of a Kafka source or sink, perhaps with a name before it."""
    option = _OF_KAFKA.fullmatch(word.partition("=")[0])
    return option is not None and f"--{option[1]}" in KAFKA_OPTIONS


def _named_options(loaded: LoadedModule) -> frozenset[str] | None:
    """Return the options named in the code of an application; `None` if it has no source."""
    if loaded.path is None or loaded.path.suffix != ".py":
        return None
    return frozenset(
        [
            node.value.rstrip("=")
            for path in _own_files(loaded)
            for node in ast.walk(_parsed(path))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            if _OPTION.fullmatch(node.value.rstrip("="))
        ]
    )


def _own_files(loaded: LoadedModule) -> Iterator[Path]:
    """Yield the files of the application's module and of the modules beside it that it imported."""
    assert loaded.path is not None
    assert loaded.directory is not None
    yield loaded.path
    for module in list(sys.modules.values()):
        path = Path(getattr(module, "__file__", None) or "")
        if (
            path.suffix == ".py"
            and path.is_relative_to(loaded.directory)
            # This package, or an environment, may be inside the application's directory.
            and not path.is_relative_to(_OURS)
            and "site-packages" not in path.parts
        ):
            yield path


def _parsed(path: Path) -> ast.Module:
    try:
        with tokenize.open(path) as file:
            return ast.parse(file.read())
    except (OSError, SyntaxError):  # removed or changed since it was imported
        return ast.Module(body=[], type_ignores=[])
