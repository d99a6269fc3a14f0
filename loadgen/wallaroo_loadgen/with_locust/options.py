"""Our options on Locust's command line, and those of them that its page may set.

A page may set numbers, but not the name of a file, an address or a program: a workload file is
executed, a report file is overwritten, and everybody who reaches the page can use it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wallaroo_loadgen.control import arguments as args
from wallaroo_loadgen.workloads.plan import schedule_of

FORM = ("rate", "duration", "warmup", "cooldown", "schedule", "seed", "slo")
"""The options of ours that are fields of the page's form."""

_LOCUSTS = {
    *("user_count", "spawn_rate", "host", "run_time", "profile"),
    *("user_classes", "shape_class"),
}

LOOPBACK = "127.0.0.1"


class FieldError(ValueError):
    """A form has a field that a page may not set."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add our options to Locust's command line, `FORM` to the page too; listen to loopback only."""
    group = parser.add_argument_group("wallaroo load")

    def add(*names: str, **settings: Any) -> None:
        action: Any = group.add_argument(*names, **settings)
        action.include_in_web_ui = action.dest in FORM  # where Locust looks for it

    add("--workload", help="its name, or a file of your own")
    args.add_arguments(add, repeatable=False)
    add("--load-json", metavar="FILE", type=Path, help="write the figures")
    add("--load-html", metavar="FILE", type=Path, help="write a report with plots")
    add("--load-hdr", metavar="FILE", type=Path, help="write an HdrHistogram log")
    add(
        "--web-name",
        metavar="NAME",
        help="another name by which browsers reach the page, such as a proxy's (several with "
        "commas); without it the page answers to addresses, localhost and this machine's name",
    )
    listening = {
        "web_host": "Address to bind the web interface to",
        "master_bind_host": "Address at which the master waits for workers",
    }
    parser.set_defaults(**dict.fromkeys(listening, LOOPBACK))
    for action in parser._actions:  # argparse has no public way from an option to its help
        if action.dest in listening:
            action.help = f"{listening[action.dest]} ({LOOPBACK}); '*' for all"


def check_form(options: argparse.Namespace, form: Mapping[str, str]) -> str | None:
    """Return what is wrong with the values of a form that would start a run, or None.

    Args:
        options: the values from the command line and from earlier forms.
        form: the fields by name.

    Raises:
        FieldError: when it has a field that no page may set.
    """
    for name in form:
        if name not in FORM and name not in _LOCUSTS:
            raise FieldError(f"{name} cannot be set from a page: it is for the command line only")
    changed = argparse.Namespace(**vars(options))
    for name in FORM:
        if name in form:
            before = getattr(options, name)
            kind = str if before is None else type(before)
            try:
                setattr(changed, name, kind(form[name]))
            except ValueError:
                return f"{name} is a number, not {form[name]!r}"
    try:
        schedule_of(args.config(changed, changed.workload))
        args.slos(changed)
    except args.SETUP_ERRORS as error:
        return str(error)
    return None
