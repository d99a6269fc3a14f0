"""A script that lets a run go on with another number of partitions, and another engine (scale-1).

The input is cut at places that chance decides: once a run is stopped there, once it is killed while
a sink is away. Each time its checkpoint is written anew, and the next run goes on with that.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from wallaroo.engine import load_engine
from wallaroo.errors import WallarooError
from wallaroo_conformance.live import applications as apps
from wallaroo_conformance.live.applications import FRAMES
from wallaroo_conformance.live.rewriting import OTHER, entities_in, home_of
from wallaroo_conformance.live.run import LiveRun, Scenario
from wallaroo_conformance.live.windows import ROUNDS

_FRAMES = [frame for frames in ROUNDS for frame in frames]
_MOST_PARTITIONS = 5
_RULES = ("scale-1",)
_AWAY = (FRAMES, 0)  # the sink that is away while a run is killed


def moving_scenario(rng: Random) -> Scenario:
    """Return a scenario whose two cuts and numbers of partitions are drawn."""
    first, second = sorted(rng.sample(range(1, len(_FRAMES)), 2))
    parts = [_FRAMES[:first], _FRAMES[first:second]]
    partitions = rng.sample(range(1, _MOST_PARTITIONS), 2)
    killed = rng.sample([False, True], 2)

    def script(run: LiveRun) -> None:
        checkpoint = run.checkpoint
        home = home_of(checkpoint)
        for number, kill in enumerate(killed):
            _end_with(run, parts[number], kill=kill)
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


def _end_with(run: LiveRun, frames: Sequence[bytes], *, kill: bool) -> None:
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
