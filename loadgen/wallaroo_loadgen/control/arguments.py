"""The arguments that describe a run, for `wallaroo load` and for Locust."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from wallaroo.config import parse_address
from wallaroo.errors import WallarooParameterError
from wallaroo_loadgen.common.config import Address, RunConfig
from wallaroo_loadgen.common.schedule import ScheduleError
from wallaroo_loadgen.control.verdict import SLO, SLOError
from wallaroo_loadgen.workloads.plan import MAKERS
from wallaroo_loadgen.workloads.protocol import WorkloadError

_RUN_TICKS = 100  # run numbers a second: two commands started one after the other differ
_FILES = {"file", "symbols"}  # workloads' options read by other processes too, wherever they are
_OPTIONS = [option for option in fields(RunConfig) if option.metadata]


class ArgumentsError(ValueError):
    """Arguments that do not describe a run; the message is one line for the user."""


SETUP_ERRORS = (ArgumentsError, WorkloadError, ScheduleError, SLOError)
"""The errors of a command line that are found before anything is sent."""


def add_arguments(add: Callable[..., object], *, repeatable: bool = True) -> None:
    """Add them; every value is kept as text or a number, to be read by `config` and `slos`.

    Args:
        add: a parser's `add_argument`, or a function with the same arguments.
        repeatable: whether some may be given several times; if not, as in a form of a page, their
            values are separated by commas.
    """
    several = "append" if repeatable else "store"
    again = "may be repeated" if repeatable else "several with commas"
    source = f"a source of the application; as many as it has, in order ({again})"
    add("--to", metavar="HOST:PORT", action=several, help=source)
    add(
        "--listen",
        metavar="HOST:PORT",
        default="127.0.0.1:7002",
        help="where the application's sink connects (127.0.0.1:7002); port 0 takes a free one",
    )
    for option in _OPTIONS:
        default = option.default
        shown = (
            f"{option.metadata['help']} ({default if default == 'constant' else f'{default:g}'})"
        )
        add(f"--{option.name}", type=type(default), default=default, help=shown)
    option_help = f"an option of the workload ({again})"
    add("-o", "--option", metavar="NAME=VALUE", action=several, help=option_help)
    add("--slo", metavar="BOUND", action=several, help=f"such as 'p99<5ms' ({again})")


def address(option: str, text: str) -> Address:
    """Return the address `HOST:PORT` that an option names.

    Raises:
        ArgumentsError: it is none.
    """
    try:
        return parse_address(text)
    except WallarooParameterError as error:
        raise ArgumentsError(f"{option}: {error}") from None


def config(arguments: argparse.Namespace, workload: str | None, *, processes: int = 1) -> RunConfig:
    """Return the configuration that arguments describe.

    Raises:
        ArgumentsError: when they do not describe a run.
    """
    if not workload:
        there_are = ", ".join(sorted(MAKERS))
        raise ArgumentsError(f"name a workload ({there_are}), or a file with --workload FILE.py")
    to = _items(arguments.to)
    if not to:
        raise ArgumentsError("--to HOST:PORT says where the application's source listens")
    values = {}
    for text in _items(arguments.option):
        name, equals, value = text.partition("=")
        if not equals:
            raise ArgumentsError(f"an option is NAME=VALUE, not {text!r}")
        values[name] = str(Path(value).resolve()) if name in _FILES else value
    for name, number, least in (
        ("connections", arguments.connections, 1),
        ("seed", arguments.seed, 0),
        ("processes", processes, 1),
    ):
        if number < least:
            raise ArgumentsError(f"--{name} is at least {least}")
    path = Path(workload)
    given = {option.name: getattr(arguments, option.name) for option in _OPTIONS}
    given["connections"] = max(arguments.connections, processes)
    return RunConfig(
        workload=str(path.resolve()) if path.suffix == ".py" else workload,
        to=tuple(address("--to", item) for item in to),
        listen=address("--listen", arguments.listen),
        processes=processes,
        run=int(time.time() * _RUN_TICKS) % (1 << 31),
        values=values,
        **given,
    )


def slos(arguments: argparse.Namespace) -> list[SLO]:
    """Return the SLOs that arguments name.

    Raises:
        SLOError: when one cannot be read.
    """
    return [SLO.parse(text) for text in _items(arguments.slo)]


def _items(value: str | list[str] | None) -> list[str]:
    """Return the values of an argument, given several times or with commas."""
    texts = [value] if isinstance(value, str) else value or []
    return [item.strip() for text in texts for item in text.split(",") if item.strip()]
