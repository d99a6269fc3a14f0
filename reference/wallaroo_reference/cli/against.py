"""``wallaroo rerun --against``: where two versions of an application differ, and why.

Each version runs in a process of its own, since both may bring modules of one name. What they print
as lines of JSON comes in the order of the records; the lines of each record are compared.
"""

from __future__ import annotations

import argparse
import base64
import difflib
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from wallaroo import readable
from wallaroo.errors import UsageError, WallarooError
from wallaroo.keys import encode_key, key_from_json
from wallaroo.loading import load_function
from wallaroo.text import counted, escaped
from wallaroo.trace import NOT_COMPARED

_NOT_COMPARED = frozenset({*NOT_COMPARED, "number"})

Line: TypeAlias = dict[str, Any]
"""What `wallaroo rerun --json` prints: each line has a kind, and the fields of that kind."""


def against(options: argparse.Namespace) -> int:
    """Run the command: 0 if the two agree, 1 if they differ."""
    if options.outputs is not None or options.dead_letters is not None:
        raise UsageError("--against writes no files: run each of the two without it")
    with ExitStack() as up:
        apps = (options.app, options.against)
        comparable = _same_output
        if options.comparable is not None:
            _, comparable = load_function(options.comparable, "--comparable")
        streams = [up.enter_context(_running(options, app)) for app in apps]
        differences = _differences(apps, comparable, *streams)
        if options.all:
            return _show_all(differences, apps)
        pair = next(differences, None)
    if pair is None:
        print(escaped(f"{options.app} and {options.against} do the same"))
        return 0
    for line in _described(options, *pair):
        print(escaped(line))
    return 1


def _show_all(differences: Iterator[tuple[_Version, _Version]], apps: Sequence[str]) -> int:
    """Print all differences; return the exit code."""
    count, records = 0, set[int]()
    for pair in differences:
        record = min([_place(version.line) for version in pair])
        if not count or record not in records:
            print("at the end:" if record == _AT_THE_END else f"record {record}:")
        count += 1
        records.add(record)
        for version in pair:
            print(escaped(f"  {version.app}: {_line_text(version.line)}"))
    if not count:
        print(escaped(f"{' and '.join(apps)} do the same"))
        return 0
    at = len(records - {_AT_THE_END})
    print(f"{counted(count, 'difference')}, at {counted(at, 'record')}")
    return 1


def _same_output(output: bytes) -> bytes:
    return output


@contextmanager
def _running(options: argparse.Namespace, app: str) -> Iterator[Iterator[bytes]]:
    """Yield the lines of a version.

    Raises:
        WallarooError: it could not be run.
    """
    with _started(_command("rerun", options, app, ["--json"])) as stream:
        yield _lines(stream, app)


@contextmanager
def _started(command: Sequence[str]) -> Iterator[Iterable[bytes]]:
    """Yield what a command prints; the command is ended with the block."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - this program
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.kill()


def _printed(command: Sequence[str]) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, encoding="utf-8")  # noqa: S603 - this program
    return done.stdout


def _lines(stream: Iterable[bytes], app: str) -> Iterator[bytes]:
    ended = False
    for line in stream:
        ended = line.startswith(b'{"end"')
        if not line.startswith(b'{"finding"'):  # findings are not compared
            yield line
    if not ended:
        raise WallarooError(f"{app} could not be run to the end: see above")


def _command(command: str, options: argparse.Namespace, app: str, more: Sequence[str]) -> list[str]:
    common = ["--on-error", options.on_error, "--progress", "none"]
    if options.state is not None:
        common += ["--from", str(options.state)]
    if options.last is not None:
        common += ["--last", str(options.last)]
    for number in options.skip_record:
        common += ["--skip-record", str(number)]
    if options.until is not None:
        common += ["--until", str(options.until)]
    unread = len(options.unread_arguments)
    read = options.app_arguments[: len(options.app_arguments) - unread]
    arguments = [*read, "--", *options.unread_arguments]
    start = [sys.executable, "-m", "wallaroo", "--log-level", "error", command]
    return [*start, str(options.directory), app, *common, *more, *arguments]


@dataclass(frozen=True)
class _Version:
    """One of the two, and its first line that differs.

    Args:
        app: how it was named.
        module: the name of its own module.
        line: the line.
    """

    app: str
    module: str
    line: Line


class _Lines:
    """The lines of a version, the next of which can be looked at."""

    def __init__(self, lines: Iterator[bytes], module: str) -> None:
        self.module = module
        self._lines = lines
        self.next: bytes | None = next(lines, None)

    def take(self) -> None:
        """Go on to the next line."""
        self.next = next(self._lines, None)

    def taken_at(self, place: Any) -> list[Line]:
        """Take the lines of a place, which are the next, and return them."""
        found: list[Line] = []
        while self.next is not None and _order(line := json.loads(self.next)) == place:
            found.append(line)
            self.take()
        return found


def _differences(
    apps: Sequence[str],
    comparable: Callable[[bytes], Any],
    one: Iterator[bytes],
    other: Iterator[bytes],
) -> Iterator[tuple[_Version, _Version]]:
    """Yield the lines that differ in what is compared; one of a pair may be `_NOTHING`."""
    ours, theirs = both = [
        _Lines(lines, json.loads(next(lines))["begin"]["module"]) for lines in (one, other)
    ]
    while ours.next is not None or theirs.next is not None:
        if ours.next == theirs.next:
            ours.take()
            theirs.take()
            continue
        place = min([_order(json.loads(lines.next)) for lines in both if lines.next is not None])
        compared = [
            [
                (form, line)
                for line in lines.taken_at(place)
                if (form := _compared(line, lines.module, comparable)) is not None
            ]
            for lines in both
        ]
        for pair in _unequal(*compared):
            first, second = map(_Version, apps, [lines.module for lines in both], pair)
            yield first, second


def _unequal(
    ours: Sequence[tuple[Any, Line]], theirs: Sequence[tuple[Any, Line]]
) -> Iterator[tuple[Line, Line]]:
    """Yield the lines of one place that differ, each with its form that is compared."""
    blocks: Sequence[tuple[str, int, int, int, int]]
    if len(ours) == len(theirs) or len(ours) + len(theirs) > _MOST_MATCHED:
        blocks = [("replace", 0, len(ours), 0, len(theirs))]
    else:
        matcher = difflib.SequenceMatcher(
            None, [form for form, _ in ours], [form for form, _ in theirs], autojunk=False
        )
        blocks = matcher.get_opcodes()
    absent = (None, _NOTHING)
    for what, start, end, other_start, other_end in blocks:
        if what == "equal":
            continue
        for one, other in itertools.zip_longest(
            ours[start:end], theirs[other_start:other_end], fillvalue=absent
        ):
            if one[0] != other[0]:
                yield one[1], other[1]


def _compared(line: Line, module: str, comparable: Callable[[bytes], Any]) -> Any:
    """Return the part of a line that is compared, as something that can be hashed.

    It is without texts of errors and the module's name. `None`: nothing of it is compared.

    Raises:
        WallarooError: the user's function raised.
    """
    ((kind, form),) = line.items()
    if kind == "output":
        try:
            output = comparable(base64.b64decode(form["data"]))
            hash(output)
            return None if output is None else (form["sink"], output)
        except (Exception, SystemExit) as error:
            raise WallarooError(
                f"--comparable raised {type(error).__name__}: {error}, for {_line_text(line)}"
            ) from error
    if kind == "end":  # the rest follows from what came before it
        form = {"ended": form["ended"]}
    elif kind == "dead_letter":
        form = {name: form[name] for name in form if name not in _NOT_COMPARED}
    for part in ("state", "accumulator"):
        if part in form:
            form = {**form, part: _without(form[part], f"{module}.")}
    return json.dumps([kind, form], sort_keys=True)


def _without(structure: Any, module: str) -> Any:
    """Return a structure whose types do not name their module, which may be another file."""
    if not isinstance(structure, list):
        return structure
    named = 1 if structure[:1] == ["global"] else 0
    return [
        part.removeprefix(module)
        if index == named and isinstance(part, str)
        else _without(part, module)
        for index, part in enumerate(structure)
    ]


def _described(options: argparse.Namespace, *both: _Version) -> Iterator[str]:
    """Yield the first difference, and its cause."""
    names = " and ".join([version.app for version in both])
    places = [_place(version.line) for version in both]
    record = min(places)
    if record == _AT_THE_END:
        yield f"{names} give the same outputs and dead letters, and:"
    else:
        yield f"{names} first differ at record {record}:"
    first = min([_entity(version.line) for version in both])
    lacking = [record == _AT_THE_END and _entity(version.line) != first for version in both]
    until = None if any(lacking) else _first_visit(options, both)
    for version, place, lacks in zip(both, places, lacking, strict=True):
        # A line that comes later in the log than the other has nothing to do with it.
        text = _line_text(version.line) if place == record else "gives nothing"
        yield f"  {version.app}: {'there is no such entity' if lacks else text}"
    if until is not None:
        yield f"  The entity is first different after record {until}."
    for version, place, lacks in zip(both, places, lacking, strict=True):
        asked = _asked(version.line)
        if place != record:  # why is there no output here?
            asked = ["--record", str(record)]
        if until is not None:
            asked += ["--until", str(until + 1)]
        if asked and not lacks:
            yield ""
            yield f"{version.app}:"
            for line in _printed(_command("explain", options, version.app, asked)).splitlines():
                yield f"  {line}"


def _first_visit(options: argparse.Namespace, both: Sequence[_Version]) -> int | None:
    """Return after which record an entity is different; `None`: not an entity, or not known."""
    if any("entity" not in version.line for version in both):
        return None
    visits: list[list[tuple[int, Any]]] = []
    for version in both:
        asked = [*_asked(version.line), "--visits", str(_VISITS), "--json"]
        form = json.loads(_printed(_command("explain", options, version.app, asked)) or "null")
        if form is None or form["visits"] > _VISITS:
            return None
        visits.append(
            [
                (visit["lineage"][0], _without(visit["state_after"], f"{version.module}."))
                for visit in form["last"]
            ]
        )
    for ours, theirs in itertools.zip_longest(*visits, fillvalue=(_AT_THE_END, None)):
        if ours != theirs:
            return min(ours[0], theirs[0])
    return None


_VISITS = 10_000  # of an entity, in which the first difference is looked for
_AT_THE_END = sys.maxsize
_MOST_MATCHED = 1000  # lines of a record in which those that one version has more are looked for
_NOTHING: Line = {"nothing": {}}
"""Stands for a line that a version does not have."""


def _entity(line: Line) -> tuple[str, bytes]:
    """Return what entities are sorted by; lines that are not about entities come after them."""
    form = line.get("entity")
    if form is None:
        return _NO_ENTITY
    return form["partition"], encode_key(key_from_json(form["key"]))


_NO_ENTITY = ("\U0010ffff", b"")  # after all entities


def _order(line: Line) -> Any:
    """Return by what lines come in order."""
    if (record := _place(line)) != _AT_THE_END:
        return (record,)
    ((kind, form),) = line.items()
    match kind:
        case "entity":
            return record, 0, *_entity(line)
        case "window":
            return record, 1, form["step"], encode_key(key_from_json(form["key"])), form["start"]
        case "late":
            return record, 2, form["step"], form["what"]
    return record, 3


def _place(line: Line) -> int:
    """Return the record that a line belongs to, or a number after all records."""
    if "output" in line:
        return int(line["output"]["record"])
    return int(line["dead_letter"]["lineage"][0]) if "dead_letter" in line else _AT_THE_END


def _line_text(line: Line) -> str:
    for kind, form in line.items():
        match kind:
            case "output":
                written = base64.b64decode(form["data"])
                return f"output {form['number']} of {form['sink']} is {written!r:.200}"
            case "dead_letter":
                step = "" if form["step"] is None else f" at {form['step']!r}"
                return f"dead letter {form['number']}, {form['reason']}{step}"
            case "entity":
                name = f"{form['partition']}[{readable.ascii_key(key_from_json(form['key']))}]"
                return f"{name} is {readable.structure_text(form['state'])}"
            case "window":
                key = readable.ascii_key(key_from_json(form["key"]))
                shown = readable.structure_text(form["accumulator"])
                return f"a window of {form['step']}[{key}] is open, with {shown}"
            case "late":
                return f"{form['step']}: {form['number']} late messages {form['what']}"
            case "end":
                return (
                    "it did not end early"
                    if form["ended"] is None
                    else f"it ended: {form['ended']}"
                )
    return "nothing"


def _asked(line: Line) -> list[str]:
    """Return the options of `wallaroo explain` for a line; none if it cannot explain the line."""
    for kind, form in line.items():
        match kind:
            case "output":
                return ["--sink", form["sink"], "--output", str(form["number"])]
            case "dead_letter":
                return ["--dead-letter", str(form["number"])]
            case "entity":
                key = ascii(key_from_json(form["key"]))
                return ["--literal", "--entity", form["partition"], key]
    return []
