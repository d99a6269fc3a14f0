"""An engine's own options of ``wallaroo run``, as the fields of a dataclass.

A field has the name, the default and the help of an option. The options about what outlives a run
are alike for all engines that can go on after a crash: `RecoveryOptions` has them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from wallaroo.cli.arguments import count, index
from wallaroo.transport.changed_topology import Accepted


def option(default: Any, kind: Callable[[str], Any], metavar: str, help_text: str) -> Any:
    """Return a field that is an option with a value."""
    return field(default=default, metadata={"type": kind, "metavar": metavar, "help": help_text})


def flag(help_text: str) -> Any:
    """Return a field that is an option without a value."""
    return field(default=False, metadata={"action": "store_true", "help": help_text})


def several(kind: Callable[[str], Any], metavar: str, help_text: str) -> Any:
    """Return a field that is an option which may be repeated."""
    how = {"action": "append", "type": kind, "metavar": metavar, "help": help_text}
    return field(default=(), metadata=how)


def directory(text: str) -> Path:
    """Return the directory of a checkpoint.

    Raises:
        argparse.ArgumentTypeError: it is a URL.
    """
    if "://" in text:
        raise argparse.ArgumentTypeError(f"this engine needs a directory, not the URL {text}")
    return Path(text)


CHECKPOINT_HELP = "keep state and unprocessed input here, and go on from here after a crash"


@dataclass(frozen=True)
class RecoveryOptions:
    """What outlives a run, and what is accepted of what an earlier one has left."""

    checkpoint: Path | None = option(  # noqa: RUF009 - it makes a field
        None, directory, "DIR", CHECKPOINT_HELP
    )
    resume: bool = flag("refuse to begin if --checkpoint holds none, as after a mistyped path")
    skip_record: Sequence[int] = several(
        *(index, "N"),
        "make a dead letter of record N of the input log, which ends each run; may be repeated",
    )
    accept_old_states: bool = flag(
        "go on with stored states that lack attributes of their class as it is today"
    )
    accept_topology: bool = flag(
        "go on with what the application, as it is today, still has of the checkpoint's steps"
    )
    drop_state: Sequence[str] = several(
        *(str, "NAME"),
        "with --accept-topology: let go what is stored of this state partition, window step or "
        "source, which the application no longer has; may be repeated",
    )
    log_bytes: int = option(
        *(256 << 20, count, "N"),
        "size of the input log from which senders have to wait (256 MiB)",
    )
    record: Path | None = option(  # noqa: RUF009 - it makes a field
        *(None, Path, "DIR"),
        "keep all input here, for `wallaroo rerun`; it takes as much of the disk as comes in",
    )
    accept_gaps: bool = flag(
        "go on where brokers have deleted records of a Kafka source that were not read yet"
    )
    accept_repeats: bool = flag(
        "go on where brokers have forgotten what a Kafka sink has delivered: the last outputs may "
        "come twice"
    )

    @classmethod
    def given(cls, values: Mapping[str, Any]) -> Self:
        """Return the options from their values by name, with defaults for those not given."""
        names = [one.name for one in fields(cls) if one.name in values]
        return cls(**{name: values[name] for name in names})

    @property
    def accepted(self) -> Accepted:
        """What is accepted of a checkpoint that another version of the application wrote."""
        return Accepted(self.accept_topology, self.drop_state, self.accept_old_states)


def add_options(parser: argparse.ArgumentParser, kind: type[RecoveryOptions], *names: str) -> None:
    """Add options to a parser.

    Args:
        parser: gets them.
        kind: the class whose fields they are.
        names: of fields; without any, all are added.
    """
    for one in fields(kind):
        if not names or one.name in names:
            default = [*one.default] if isinstance(one.default, tuple) else one.default
            option_name = f"--{one.name.replace('_', '-')}"
            parser.add_argument(option_name, default=default, **one.metadata)
