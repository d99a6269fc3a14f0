"""Live runs with dead letters, and runs that end otherwise than by a complete stop."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wallaroo.engine import Engine, Isolation, ServeOptions
from wallaroo.trace import NOT_COMPARED
from wallaroo_conformance.live.peers import wait_until
from wallaroo_conformance.live.run import BAD, QUIT, UNREADABLE, UNWRITABLE, Pipe, Run

_GIVEN_UP = 0.3  # seconds that a stop waits for a sink that never comes
_OF_A_KIND = 12  # dead letters, more than are logged of one kind

_OLD = {"error": "of an earlier run"}


def dead_letters_and_a_sink_that_never_comes(
    engine: Engine, reference: Engine, isolation: Isolation, patience: float
) -> Counter[str]:
    """Make dead letters of each kind, and give up a stop for a sink that is away (stop-1)."""
    pipes = {"checked": Pipe(sinks=2), "away": Pipe(sinks=2)}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "dead"
        file.write_text(json.dumps(_OLD) + "\n", encoding="utf-8")
        options = ServeOptions(isolation=isolation, dead_letters=file, stop_timeout=_GIVEN_UP)
        with Run(engine, reference, pipes, options, patience) as run:
            run.note("the second sink of away is away; dead letters go to a file that is not empty")
            run.peers["away", 1].go_away()
            run.send("frame-5", "checked", [b"a", *[BAD] * _OF_A_KIND, b"b", UNWRITABLE, b"c"])
            run.send("frame-5", "away", [b"kept", UNREADABLE, b"", UNWRITABLE, BAD, b"kept too"])
            run.delivered("dead-2")
            trace = run.expected()
            waiting = len(trace.outputs["away", 1])
            if not wait_until(lambda: run.handle.progress().pending == waiting, patience):
                found = run.handle.progress().pending
                run.broken("sink-3", f"{found} outputs are pending, {waiting} have no sink")
            summary = run.ended("stop-1", 1, stop=True)
            run.delivered("dead-2", over=True)
            run.counted("stop-1", "undelivered", summary.undelivered, {("away", 1): waiting})
            letters = [letter.to_json() for letter in trace.dead_letters]
            kinds = Counter((d["pipeline"], d["step"], d["reason"]) for d in letters)
            run.counted("dead-1", "dead letters", summary.dead_letters, kinds)
            _compare_file(run, file, [_OLD, *letters])
    return Counter(["dead-1", "dead-2", "stop-1"])


def on_error_stop(
    engine: Engine, reference: Engine, isolation: Isolation, patience: float
) -> Counter[str]:
    """Let a dead letter end a run (dead-4); return the rules."""
    options = ServeOptions(isolation=isolation, on_error="stop", stop_timeout=patience)
    with Run(engine, reference, {"checked": Pipe(sinks=2)}, options, patience) as run:
        _ends_by_itself(run, "dead-4", BAD, 1)
    return Counter(["dead-4"])


def user_code_that_exits(
    engine: Engine, reference: Engine, isolation: Isolation, patience: float
) -> Counter[str]:
    """Let user code end a run by SystemExit (dead-3); return the rules."""
    options = ServeOptions(isolation=isolation, stop_timeout=patience)
    with Run(engine, reference, {"checked": Pipe(sinks=2)}, options, patience) as run:
        _ends_by_itself(run, "dead-3", QUIT, 0)
    return Counter(["dead-3"])


def _ends_by_itself(run: Run, rule: str, last: bytes, letters: int) -> None:
    """Send what ends the run, with frames before and behind it in one piece.

    One of the sinks is away and comes back: it must get the outputs before the end as well.
    """
    run.note("the second sink of checked is away, and comes back when frames are received")
    run.peers["checked", 1].go_away()
    payloads = [b"first", b"second", last, b"after", last]
    run.note(f"send {payloads} in one piece")
    run.log += [("checked", payload) for payload in payloads]
    run.connect("checked").send(run.framed("checked", payloads))
    wait_until(lambda: run.handle.progress().received > 0, run.patience)
    run.peers["checked", 1].come_back()
    summary = run.ended(rule, 1)
    run.delivered(rule, payloads.index(last), over=True)
    if (found := sum(summary.dead_letters.values())) != letters:
        run.broken(rule, f"{found} dead letters are counted, there are {letters}")
    if "check" not in (summary.problem or ""):
        run.broken(rule, f"the problem does not name the step, check: {summary.problem}")


def _compare_file(run: Run, file: Path, wanted: list[Mapping[str, Any]]) -> None:
    """Compare the file's lines with the letters, in all fields that count (dead-1)."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for number, (line, letter) in enumerate(zip(lines, wanted, strict=False)):
        if _compared(line) != _compared(letter) or type(line["error"]) is not str:
            run.broken("dead-1", f"line {number} of the file is {line}, it must be {letter}")
    if len(lines) != len(wanted):
        run.broken("dead-1", f"the file has {len(lines)} lines, it must have {len(wanted)}")


def _compared(letter: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in letter.items() if name not in NOT_COMPARED}
