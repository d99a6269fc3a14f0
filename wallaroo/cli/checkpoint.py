"""``wallaroo checkpoint``: whose a checkpoint is, what it holds, and whether it is whole."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from wallaroo.cli.arguments import KEY_HELP, count, key_of
from wallaroo.cli.main import Subparsers, parse
from wallaroo.cli.terminal import byte_progress
from wallaroo.engine import load_engine
from wallaroo.errors import UsageError, WallarooError
from wallaroo.keys import encode_key
from wallaroo.loading import load_application, load_function, set_up
from wallaroo.text import escaped
from wallaroo.topology import Application
from wallaroo.trace import Entity
from wallaroo.transport.checkpoint import INPUT, REPLACING, unused
from wallaroo.transport.identity import (
    IDENTITY,
    CheckpointError,
    Identity,
    identify,
    identity_in,
    refuse_others,
)
from wallaroo.transport.kafka.moved import exactly_once
from wallaroo.transport.migration import Migration
from wallaroo.transport.old_states import FreshStates
from wallaroo.transport.stored import (
    LogPart,
    StoredCheckpoint,
    StoredWindow,
    look_at_log,
    open_stored,
    refuse_half_deleted,
    rewrite,
    stored_entities,
    stored_windows,
)

_EXAMPLES = f"""\
{KEY_HELP}
States are shown without the application's code. Nothing is changed, and a run may be using DIR.

examples:
  wallaroo checkpoint DIR                          whose it is, and what it holds
  wallaroo checkpoint DIR --entities               a JSON object for each entity and open window
  wallaroo checkpoint DIR --entities counts Ann    one of them
  wallaroo checkpoint DIR --verify                 read everything
  wallaroo checkpoint DIR --try changed.py         run the input that waits with this code, into
                                                   nowhere: what would come out, fail, be refused
  wallaroo checkpoint DIR --try changed.py --last 1000
                                                   also the last records that DIR still holds
  wallaroo checkpoint DIR --migrate new.py:change --app totals.py
                                                   write DIR.migrated with changed states
  wallaroo checkpoint DIR --partitions 8 -o NEW    write NEW, which has 8 partitions
  wallaroo checkpoint DIR --to spark --app totals.py --partitions 8 -o NEW
                                                   write NEW for another engine
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "checkpoint",
        help="tell what a checkpoint or a recording holds, and whether it is whole",
        description="Tell what run a checkpoint belongs to and what it holds, print its state "
        "entities, or read all of it.",
        usage="wallaroo checkpoint DIR [--entities [NAME [KEY]] | --verify | "
        "--try APP [--last N] [application arguments] | [--migrate MODULE:FUNCTION] "
        "[--partitions M] [--to ENGINE] [--app APP] [-o NEW]]",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "directory", metavar="DIR", type=Path, help="what --checkpoint or --record named"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--entities",
        nargs="*",
        metavar="NAME [KEY]",
        help="print the states and open windows: all, those of a state partition or window step, "
        "or of one key there",
    )
    what.add_argument(
        "--verify",
        action="store_true",
        help="read everything, and say what is damaged or from another checkpoint",
    )
    what.add_argument(
        "--migrate",
        metavar="MODULE:FUNCTION",
        help="write a new checkpoint with the states that FUNCTION(name, key, state) returns; name "
        "is the state partition's, or the window step's of an accumulator",
    )
    what.add_argument(
        "--try",
        metavar="APP",
        dest="trial",
        help="run this application from the stored state over the input that waits, into nowhere; "
        "exit code 1 if a run would refuse the checkpoint, or end early",
    )
    parser.add_argument(
        "--last",
        metavar="N",
        type=count,
        help="with --try: over the last N records, also those that the state has met already",
    )
    parser.add_argument(
        "--partitions",
        metavar="M",
        type=count,
        help="write a new checkpoint with this number of partitions",
    )
    parser.add_argument(
        "--to", metavar="ENGINE", help="write a new checkpoint with which this engine goes on"
    )
    parser.add_argument(
        "-o",
        metavar="NEW",
        dest="output",
        type=Path,
        help="where the new checkpoint is written (default: beside DIR, as DIR.migrated)",
    )
    parser.add_argument(
        "--app",
        metavar="APP",
        help="the application: with --migrate, whose classes FUNCTION gets and must return; with "
        "--to, what is to go on",
    )
    parser.set_defaults(run=checkpoint, passes_arguments=True)


def checkpoint(options: argparse.Namespace) -> int:
    """Run the command.

    Raises:
        WallarooError: it is damaged, or there is no checkpoint.
    """
    directory: Path = options.directory
    identity = identity_in(directory)
    if (directory / REPLACING).exists():
        raise CheckpointError(
            f"a start on {directory} was killed while it put new parts into their places. Run the "
            "application on it once; each run finishes that first"
        )
    rewrites = [options.migrate, options.partitions, options.to]
    if not any(rewrites) and (options.app is not None or options.output is not None):
        raise UsageError("--app and -o go with --migrate, --partitions or --to")
    if any(rewrites) and (options.trial or options.verify or options.entities is not None):
        raise UsageError(
            "--migrate, --partitions and --to write a new checkpoint, and nothing else"
        )
    if options.trial is not None:
        return _try(options)
    if options.app_arguments:
        raise UsageError(f"unknown arguments: {' '.join(options.app_arguments)}")
    if options.last is not None:
        raise UsageError("--last goes with --try: it says how many records are run")
    if identity.recording:
        return _recording(directory, identity, options)
    stored = open_stored(directory, identity.engine)
    log = look_at_log(directory / INPUT)
    refuse_others(directory, identity, [*stored.stamps(), *log.ends.stamps()])
    if options.entities is not None:
        return _entities(directory, identity, stored, options.entities)
    if any(rewrites):
        return _rewrite(directory, identity, options)
    if options.verify:
        return _verify(directory, stored, log)
    _overview(directory, identity, stored, log)
    return 0


def _recording(directory: Path, identity: Identity, options: argparse.Namespace) -> int:
    """Tell what a recording of `wallaroo run --record` holds; it has no state."""
    if options.entities is not None or options.migrate is not None:
        raise WallarooError(
            f"{directory} is a recording, which holds input and no state. wallaroo rerun "
            f"{directory} APP --json makes its states again"
        )
    log = look_at_log(directory / INPUT)
    refuse_others(directory, identity, log.ends.stamps())
    torn = "" if log.torn is None else f"; its end is cut off, as by a crash: {log.torn}"
    if options.verify:
        print(f"all of {directory} is whole{torn}")
        return 0
    print(f"engine       {identity.engine}{_in_use(directory)}")
    print(f"application  {escaped(identity.application)}")
    print(f"recording    {log.ends.following:,} records, {_bytes(log.size)}{torn}")
    return 0


def _overview(directory: Path, identity: Identity, stored: StoredCheckpoint, log: LogPart) -> None:
    overview = stored.overview()
    behind = max(0, log.ends.following - overview.position)
    lines = [
        ("engine", identity.engine + _in_use(directory)),
        ("application", identity.application),
        ("partitions", str(identity.partitions)),
        ("position", f"record {overview.position:,}; the input log holds {behind:,} behind it"),
        ("stored", _age(overview.at)),
    ]
    sizes = {**overview.sizes, "input log": log.size}
    lines.append(("sizes", ", ".join([f"{name} {_bytes(size)}" for name, size in sizes.items()])))
    if overview.entities is None:
        lines.append(("entities", "not counted: they are in the engine's own files"))
    else:
        lines += [
            (f"entities of {name}", f"{number:,}") for name, number in overview.entities.items()
        ]
    lines += [
        (f"windows of {name}", f"{number:,} open") for name, number in overview.windows.items()
    ]
    lines += [(f"outputs of {name}", f"{number:,}") for name, number in overview.outputs.items()]
    if log.torn:
        lines.append(("input log", f"its end is cut off, as by a crash: {log.torn}"))
    width = max([len(name) for name, _ in lines])
    for name, text in lines:
        print(f"{escaped(name):{width}}  {escaped(text)}")


def _entities(
    directory: Path, identity: Identity, stored: StoredCheckpoint, asked: list[str]
) -> int:
    """Print entities and open windows, a JSON object each.

    Raises:
        WallarooError: there is none.
    """
    if len(asked) > 2:
        raise UsageError("--entities takes a NAME and a KEY at most")
    name = asked[0] if asked else None
    wanted = encode_key(key_of(asked[1])) if len(asked) > 1 else None
    shown = False
    state = stored.state()
    there = {entity.partition for entity in state.entities}

    def asked_for(place: str, key: bytes) -> bool:
        return name in (None, place) and wanted in (None, key)

    both: Iterator[Entity | StoredWindow] = itertools.chain(
        stored_entities(state, identity.partitions, lambda one: asked_for(one.partition, one.key)),
        stored_windows(state),
    )
    for item in both:
        if not isinstance(item, Entity):
            there.add(item.step)
            if not asked_for(item.step, encode_key(item.key)):
                continue
        print(json.dumps(item.to_json()))
        shown = True
    if shown:
        return 0
    if name in there:
        raise WallarooError(f"{directory} has nothing of {name!r} with this key")
    others = f"; it has some of {', '.join(map(repr, sorted(there)))}" if there else ""
    of = "" if name is None else f" of {name!r}"
    raise WallarooError(f"{directory} has no entities and no open windows{of}{others}")


def _verify(directory: Path, stored: StoredCheckpoint, log: LogPart) -> int:
    unread = stored.verify()
    refuse_half_deleted(directory, stored, log.ends)
    torn = "" if log.torn is None else f"; the log's end is cut off, as by a crash: {log.torn}"
    print(f"all of {directory} is whole{torn}" + (f"; not read: {unread}" if unread else ""))
    return 0


def _rewrite(directory: Path, identity: Identity, options: argparse.Namespace) -> int:
    """Write a new checkpoint, with other states, another number of partitions or for an engine."""
    application = None
    if options.app is not None:
        application = load_application(options.app, placeholders=True)
    migration = None
    if options.migrate is not None:
        loaded, change = load_function(options.migrate, "--migrate")
        if application is None and hasattr(loaded.module, "application_setup"):
            application = set_up(loaded, placeholders=True)
        fresh = None if application is None else FreshStates(application)
        migration = Migration(change, fresh, coded=identity.coded)
    new = replace(
        identity,
        engine=open_stored(directory, options.to or identity.engine).engine,
        partitions=options.partitions or identity.partitions,
    )
    if new.engine != identity.engine:
        _refuse_other_engine(directory, identity, new.engine, application)
    target = options.output or directory.with_name(directory.name + ".migrated")
    with byte_progress(f"writing {target}", None, sys.stderr):
        state = rewrite(
            directory,
            identity,
            target,
            new,
            change=(lambda state: state) if migration is None else migration.migrated,
            application=application,
        )
    changed = "" if migration is None else f", {migration.changed:,} of them changed"
    print(
        f"{state.parts:,} states and accumulators{changed}; the new checkpoint is {target}, and "
        f"{directory} is as it was"
    )
    if new.engine != identity.engine and exactly_once(application):
        print(
            f"Outputs to Kafka go on with the new one: a run on {directory} is refused from now on"
        )
    elif migration is None:
        print("Run one of the two only: TCP peers of both would get outputs twice")
    return 0


def _refuse_other_engine(
    directory: Path, identity: Identity, engine: str, application: Application | None
) -> None:
    """Refuse an application that the other engine could not go on with.

    Raises:
        WallarooError: it could not.
    """
    if application is None:
        raise UsageError(f"--to {engine} needs the application: --app APP")
    load_engine(engine).check(application)
    identify(directory / IDENTITY, identity.engine, application, None)
    if not identity.has_topology_of(application):
        raise CheckpointError(
            f"the checkpoint {directory} is of another topology than {application.name!r} today. "
            "Name the application as it was, and change it on the other engine; or run this one on "
            "the checkpoint once, with --accept-topology"
        )


def _try(options: argparse.Namespace) -> int:
    """Run an application from the stored state, on the reference engine, into nowhere."""
    directory = str(options.directory)
    last = [] if options.last is None else ["--last", str(options.last)]
    unread = options.unread_arguments
    read = options.app_arguments[: len(options.app_arguments) - len(unread)]
    rerun = ["rerun", directory, options.trial, "--from", directory, *last, *read, "--", *unread]
    namespace = parse(rerun)
    return int(namespace.run(namespace))


def _in_use(directory: Path) -> str:
    """Return that a run uses the checkpoint, if one does."""
    with unused(directory) as is_unused:
        return "" if is_unused else ", in use by a run"


def _age(at: int | None) -> str:
    if at is None:
        return "never yet: a restart processes the whole input log"
    when = datetime.fromtimestamp(at / 1e9, UTC)
    seconds = max(0.0, time.time() - at / 1e9)
    return f"{when:%Y-%m-%d %H:%M:%S} UTC, {seconds:,.0f} s ago"


def _bytes(size: int) -> str:
    if size < 1 << 10:
        return f"{size} bytes"
    return f"{size / 2**10:,.1f} KiB" if size < 1 << 20 else f"{size / 2**20:,.1f} MiB"
