"""Scripts about windows: they fire as time passes, and stay open in a stop or a kill."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from wallaroo.errors import WallarooError
from wallaroo.transport.recording import RecordedLog
from wallaroo_conformance.live import applications as apps
from wallaroo_conformance.live.applications import FRAMES
from wallaroo_conformance.live.peers import SinkPeer, wait_until
from wallaroo_conformance.live.run import LiveRun

_LETTERS = "abacba"
_FIRING, _NEVER = (("frames", 0), ("frames", 1), ("frames", 2)), ("frames", 3)
_COUNTS = ("frames", 2)
_QUIET = 1.0  # seconds in which nothing must be logged


def time_passes(run: LiveRun) -> None:
    """Let windows fire because time passes, also after a kill, and stop."""
    sent = _sent(run, 1)
    _all_fire(run, ("time-1",), sent)
    if run.recovers:
        sent |= _sent(run, 2)
        run.kill_and_restart()
        _all_fire(run, ("recover-1", "time-1"), sent)
    if _NEVER not in run.peers:
        before = _logged(run)
        if wait_until(lambda: _logged(run) > before, _QUIET):
            run.broken(("time-1",), "no window is open, and a tick has been logged")
    summary = run.ended(("stop-1",), 0, stop=True)
    open_windows = 0
    if (never := run.peers.get(_NEVER)) is not None:
        wait_until(lambda: not never.connections, run.patience)  # all is read that it brought
        if never.brought:
            run.broken(("time-5",), f"a window that ends in 2079 has fired: {never.brought}")
        open_windows = len({*_LETTERS})
    # A checkpoint keeps the windows that are open; without one they are lost, and counted.
    lost = 0 if run.recovers else open_windows
    if summary.open_windows != lost:
        counted = summary.open_windows
        run.broken(("time-5",), f"{counted} open windows are counted, {lost} are lost")


def _logged(run: LiveRun) -> int:
    """Return how many records the run's log has had."""
    found: list[int] = []

    def read() -> bool:
        with contextlib.suppress(WallarooError):  # a file may be deleted just now
            found.append(RecordedLog(run.checkpoint, whole=False).following)
        return bool(found)

    if not wait_until(read, run.patience):
        run.broken(("recover-1",), "the input log cannot be read")
    return found[0]


def _sent(run: LiveRun, which: int) -> dict[bytes, int]:
    """Send frames and no more; return their texts, each with a time when it had been received."""
    texts = [b"%d%d" % (which, number) for number in range(len(_LETTERS))]
    pairs = zip(_LETTERS.encode(), texts, strict=True)
    run.finish(run.send(FRAMES, [b"%c 0 %s" % pair for pair in pairs]))
    return dict.fromkeys(texts, time.time_ns())


def _all_fire(run: LiveRun, rules: tuple[str, ...], sent: Mapping[bytes, int]) -> None:
    """Wait until every frame has come out of every step that fires, and look at the windows.

    On one connection each frame comes once, in a window that was due. No window begins after its
    frames were received: they keep their arrival times (recover-1).
    """
    for sink in _FIRING:
        peer = run.peers[sink]
        wait_until(lambda peer=peer: _came(peer) >= sent.keys(), run.patience)  # type: ignore[misc]
        if missing := sorted(sent.keys() - _came(peer)):
            run.broken(rules, f"{sink}: {missing} have come out of no window")
        now = time.time_ns()
        for brought in peer.brought:
            seen: Counter[bytes] = Counter()
            for start, end, texts in _windows(brought):
                seen.update(texts)
                due = start + apps.SHORT if sink == _COUNTS else end
                shown = f"{sink}: the window of {texts} from {start} to {end}"
                if start > min([sent.get(text, now) for text in texts]):
                    run.broken(rules, f"{shown} begins after these were received")
                if due > now:
                    run.broken(("time-1",), f"{shown} has fired, and it is {now} only")
            if twice := [text for text, number in seen.items() if number > 1]:
                run.broken(rules, f"{sink}: {twice} came out of several windows")


def _came(peer: SinkPeer) -> set[bytes]:
    windows = [window for brought in peer.brought for window in _windows(brought)]
    return {text for _, _, texts in windows for text in texts}


def _windows(brought: bytes) -> list[tuple[int, int, list[bytes]]]:
    """Return start, end and texts of the windows on a connection, without a cut-off last one."""
    lines = [line.split(b" ")[2] for line in brought.split(b"\n")[:-1]]
    parts = [re.split(b"[@-]", line) for line in lines]
    return [(int(start), int(end), texts.split(b"+")) for texts, start, end in parts]


ROUNDS: tuple[Sequence[bytes], ...] = (
    (b"a 5 0", b"b 9 1", b"a 3 2", b"c 4 3", b"b 17 4"),
    (b"a 14 5", b"b 12 6", b"c 24 7"),
    (b"c 19 8", b"a 31 9", b"b 23 10", b"a 70 11"),
)
"""Frames before the first kill, before the second, and behind it. Some are out of order, and each
kill leaves windows open that hold messages."""


def kills_with_open_windows(run: LiveRun) -> None:
    """Kill the server twice; windows, states and a generator go on, each value is met once."""
    numbers = run.peers[apps.NUMBERED, 0]
    for frames in ROUNDS[:-1]:
        run.finish(run.send(FRAMES, frames))
        run.delivered(("order-2",))
        run.let_it_store()  # meanwhile the generator goes on
        if not wait_until(lambda: bool(numbers.size), run.patience):
            run.broken(("order-2",), "the generator's numbers do not come")
        run.kill_and_restart()
    run.finish(run.send(FRAMES, ROUNDS[-1]))
    run.generated(("order-2",))
    unportable = apps.VALUES - len(apps.NUMBERS)
    wait_until(lambda: len(_lineages(run.letters)) >= unportable, run.patience)
    if (values := len(_lineages(run.letters))) != unportable:
        said = f"{values} values that cannot be pickled are dead letters, {unportable} were made"
        run.broken(("recover-1",), said)


def _lineages(letters: Path) -> set[tuple[int, ...]]:
    """Return the lineages of the generator's dead letters; after a kill some come again."""
    lines = map(json.loads, letters.read_text(encoding="utf-8").splitlines())
    return {tuple(line["lineage"]) for line in lines if line.get("source") == apps.NUMBERED}
