"""Scripts about checkpoints that must be refused: mixed ones (recover-3), old ones (recover-4)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from wallaroo_conformance.live import applications as apps
from wallaroo_conformance.live.applications import FRAMES
from wallaroo_conformance.live.peers import wait_until
from wallaroo_conformance.live.rewriting import files_of
from wallaroo_conformance.live.run import LiveRun


def mixes(run: LiveRun) -> None:
    """Let a copy of a checkpoint go on, and move each part of it over (recover-3)."""
    _end_with(run, "first", b"a")
    copy, mixed = run.checkpoint.with_name("copy"), run.checkpoint.with_name("mixed")
    shutil.copytree(run.checkpoint, copy)
    run.note("the checkpoint is copied")
    run.serve_from(copy)
    _end_with(run, "first", b"b")
    ours, theirs = files_of(run.checkpoint), files_of(copy)
    parts = sorted({name.partition("/")[0] for name in theirs if theirs[name] != ours.get(name)})
    for part in parts if len(parts) > 1 else []:  # a copy of its only part is the copy
        shutil.rmtree(mixed, ignore_errors=True)
        shutil.copytree(run.checkpoint, mixed)
        _replace(mixed / part, copy / part)
        run.note(f"{mixed.name} is the checkpoint with {part} of the copy")
        said = _refused(run, "recover-3", mixed)
        if not any(name in said for name in parts):
            run.broken(("recover-3",), f"the refusal names none of {', '.join(parts)}: {said}")


def old_states(run: LiveRun) -> None:
    """Add an attribute to states and accumulators, and start again (recover-4)."""
    _end_with(run, FRAMES, b"a")
    run.note("what is built has one attribute more")
    run.build(apps.NEWER)
    names = [kind.__name__ for kind in (apps.KeptState, apps.KeptAccumulator)]
    said = _refused(run, "recover-4", run.checkpoint, apps.NEW, *names)
    if apps.TakesCare.__name__ in said:
        run.broken(("recover-4",), f"a class that takes care is refused: {said}")
    run.note("the user accepts it")
    run.serve_from(run.checkpoint, accept_old_states=True)
    run.ended(("recover-4",), 0, stop=True)


def _end_with(run: LiveRun, source: str, payload: bytes) -> None:
    """Send a frame, and stop in order."""
    before = run.handle.progress().received
    run.hand_over(run.connect(source), [payload])
    if not wait_until(lambda: run.handle.progress().received > before, run.patience):
        run.broken(("order-2",), "what was sent is not received")
    for sender in run.senders:
        sender.close()
    run.senders.clear()
    run.ended(("stop-1",), 0, stop=True)


def _refused(run: LiveRun, rule: str, checkpoint: Path, *words: str) -> str:
    """Let the engine refuse a checkpoint, which stays as it was; return what it says."""
    before = files_of(checkpoint)
    said = run.refused(rule, checkpoint, *words)
    run.unchanged(rule, checkpoint, before)
    return said


def _replace(path: Path, other: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    copy: Any = shutil.copytree if other.is_dir() else shutil.copy
    copy(other, path)
