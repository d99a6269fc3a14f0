"""Scripts about checkpoints: those that must be refused, and runs that go on elsewhere.

Mixed ones (recover-3) and old ones (recover-4) are refused. With another number of partitions, and
on another engine, a run goes on (scale-1).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from wallaroo.engine import load_engine
from wallaroo.errors import WallarooError
from wallaroo_conformance.live import applications as apps
from wallaroo_conformance.live.applications import FRAMES
from wallaroo_conformance.live.peers import wait_until
from wallaroo_conformance.live.run import LiveRun, Scenario
from wallaroo_conformance.live.served import OTHER, entities_in, files_of, home_of
from wallaroo_conformance.live.windows import ROUNDS

_FRAMES = [frame for frames in ROUNDS for frame in frames]
_MOST_PARTITIONS = 5
_RULES = ("scale-1",)
_AWAY = (FRAMES, 0)  # the sink that is away while a run is killed


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
    _end_with(run, FRAMES, b"a 0 m")
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


def moving_scenario(rng: Random) -> Scenario:
    """Return a scenario in which a run goes on with other partitions, and another engine (scale-1).

    The input is cut at places that chance decides: once the run is stopped there, once it is killed
    while a sink is away. Each time its checkpoint is written anew, and the next run goes on with
    that.
    """
    first, second = sorted(rng.sample(range(1, len(_FRAMES)), 2))
    parts = [_FRAMES[:first], _FRAMES[first:second]]
    partitions = rng.sample(range(1, _MOST_PARTITIONS), 2)
    killed = rng.sample([False, True], 2)

    def script(run: LiveRun) -> None:
        checkpoint = run.checkpoint
        home = home_of(checkpoint)
        for number, kill in enumerate(killed):
            _cut(run, parts[number], kill=kill)
            engine, moved = home if number else OTHER, f"moved {number}"
            checkpoint = run.moved(*_RULES, checkpoint, moved, engine, partitions[number])
            try:
                run.serve_from(checkpoint, None if engine == home else load_engine(engine))
            except WallarooError as error:
                run.broken(_RULES, f"the new checkpoint is refused: {error}")
            run.peers[_AWAY].come_back()
            run.delivered(_RULES)
        _send(run, _FRAMES[second:])
        run.delivered(_RULES)
        run.generated(_RULES)
        run.ended(("stop-1",), 0, stop=True)
        wanted = _shown(run.expected().entities)
        if (there := _shown(entities_in(checkpoint))) != wanted:
            run.broken(_RULES, f"entities at the end: {there}, not {wanted}")

    return Scenario(apps.RECOVERY, script, (*_RULES, "scale-2"), recovers=True)


def _cut(run: LiveRun, frames: Sequence[bytes], *, kill: bool) -> None:
    """Send frames; then stop the run, or kill it while outputs wait for a sink."""
    if kill:
        run.sink_goes(_AWAY)
        _send(run, frames)
        run.kill()
    else:
        _send(run, frames)
        run.delivered(_RULES)
        run.ended(("stop-1",), 0, stop=True)


def _send(run: LiveRun, frames: Sequence[bytes]) -> None:
    """Send frames, and return when they are in the log (frame-4)."""
    sender = run.connect(FRAMES)
    run.hand_over(sender, frames)
    run.senders.remove(sender)
    sender.finish()
    if (end := sender.end()) != "in order":
        run.broken(("frame-4",), f"after a half-close the connection's end is {end}")
    sender.close()


def _shown(entities: Sequence[Any]) -> list[Any]:
    return [(entity.partition, entity.key, entity.state) for entity in entities]
