"""Arguments that several commands have, and the types of their values."""

from __future__ import annotations

import argparse
import ast
import difflib
import math
import os
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from wallaroo.config import parse_address
from wallaroo.errors import WallarooError, WallarooParameterError
from wallaroo.keys import BadKeyError, Key, encode_key

KEY_HELP = """\
A KEY is text, or has its type before it: int:5, bytes:ab (its UTF-8 bytes), str:int:5 (the text
"int:5")."""
APP_HELP = "a Python file (word_count.py) or a module in the current directory or on PYTHONPATH"


def address(text: str) -> tuple[str, int]:
    """Return the (host, port) of ``HOST:PORT``."""
    try:
        return parse_address(text)
    except WallarooParameterError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def own_address(text: str) -> tuple[str, int]:
    """Return the (host, port) of ``HOST:PORT`` or ``PORT``, which is on this machine only."""
    return address(text if ":" in text else f"127.0.0.1:{text}")


def endpoint(text: str) -> str:
    """Return the URL of an endpoint of OpenTelemetry, without a slash at its end."""
    try:
        url = urlsplit(text)
        good = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        good = False
    if not good or url.query or url.fragment:
        raise argparse.ArgumentTypeError(
            f"expected a URL such as http://127.0.0.1:4318, not {text!r}"
        )
    return text.rstrip("/")


def _whole_number(least: int) -> Callable[[str], int]:
    """Return the type of an option that is a whole number, `least` or more."""

    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(
                f"expected a whole number, {least} or more, not {text!r}"
            )
        return int(text)

    return number


def _finite(what: str, good: Callable[[float], bool]) -> Callable[[str], float]:
    """Return the type of an option that is a finite number; `what` says which, for errors."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not good(value):
            raise argparse.ArgumentTypeError(f"expected {what}, not {text!r}")
        return value

    return number


count, index = _whole_number(1), _whole_number(0)
"""The types of options that are numbers of things, and indices."""

seconds = _finite("a number of seconds", lambda value: value >= 0)
duration = _finite("seconds, more than 0", lambda value: value > 0)
rate = _finite("messages a second, more than 0", lambda value: value > 0)


def key_of(text: str) -> Key:
    """Return the key that `KEY_HELP` describes.

    Raises:
        WallarooError: it is not a key.
    """
    kind, colon, value = text.partition(":")
    if not colon or kind not in ("int", "bytes", "str"):
        return checked_key(text, text)
    if kind == "int":
        try:
            return checked_key(int(value), text)
        except ValueError:
            raise WallarooError(f"key {text!r}: {value!r} is not a whole number") from None
    return checked_key(value if kind == "str" else os.fsencode(value), text)


def literal_key(text: str) -> Key:
    """Return the key that a Python literal is.

    Raises:
        WallarooError: it is not a key.
    """
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise WallarooError(
            f"key {text!r} is not a Python literal; write 5, \"'a'\", \"b'a'\" or \"(1, 'a')\""
        ) from None
    return checked_key(value, text)


def checked_key(key: Any, text: str) -> Key:
    """Return `key`, which was written as `text`.

    Raises:
        WallarooError: it is not a key (route-2).
    """
    try:
        encode_key(key)
    except BadKeyError as error:
        raise WallarooError(f"key {text!r:.80}: {error} (route-2)") from None
    checked: Key = key
    return checked


def add_on_error(parser: argparse.ArgumentParser) -> None:
    """Add ``--on-error`` (dead-4)."""
    parser.add_argument(
        "--on-error",
        choices=("skip", "stop"),
        default="skip",
        help="go on after a dead letter, or end at the first (skip)",
    )


def add_progress(parser: argparse.ArgumentParser) -> None:
    """Add ``--progress``."""
    parser.add_argument(
        "--progress",
        choices=("auto", "none", "json"),
        default="auto",
        help="auto: a live line on a terminal; json: a JSON object a second on stderr (auto)",
    )


def option_strings(parser: argparse.ArgumentParser) -> list[str]:
    """Return the options of a parser."""
    # argparse has no public way to ask.
    return [option for action in parser._actions for option in action.option_strings]


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return ``; did you mean NEAREST?`` for the end of an error, or "" if none is near."""
    # Without hyphens, which all options have in common; a file's name is no option written wrong.
    is_option = word.startswith("-")
    names = {name.lstrip("-"): name for name in candidates if name.startswith("-") == is_option}
    near = difflib.get_close_matches(word.partition("=")[0].lstrip("-"), names, n=1)
    return f"; did you mean {names[near[0]]}?" if near else ""
