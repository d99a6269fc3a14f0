"""Steps of a live run in an order that chance decides."""

from __future__ import annotations

from random import Random

from wallaroo_conformance.live.applications import BAD, PLAIN
from wallaroo_conformance.live.run import LiveRun, Scenario

_PAYLOADS = (b"a", b"b", b"", b"ab", BAD, b"a b c", b"\xc3\xa9", b"k" * 300)
_MOST_CONNECTIONS = 4
_STEPS = 10


def random_scenario(rng: Random, *, may_recover: bool) -> Scenario:
    """Return a scenario whose application and steps are drawn.

    Args:
        rng: draws them.
        may_recover: the engine claims recovery, so some runs have a checkpoint.
    """

    def script(run: LiveRun) -> None:
        for _ in range(_STEPS):
            _step(run, rng)
        run.delivered(("order-2", "frame-5"))
        if not run.recovers and rng.random() < 1 / 4:
            run.kill()
        else:
            run.finished()

    return Scenario(rng.choice(PLAIN), script, (), recovers=may_recover and rng.random() < 1 / 2)


def _step(run: LiveRun, rng: Random) -> None:
    kinds = ["connect", "send", "send", "begin", "finish", "refuse", "sink goes", "sink returns"]
    kind = rng.choice([*kinds, *["kill", "store"] * run.recovers])
    sink = rng.choice(list(run.peers))
    if kind == "kill":
        run.kill_and_restart()
    elif kind == "store":
        run.let_it_store()
    elif kind == "sink goes":
        run.sink_goes(sink)
    elif kind == "sink returns":
        run.sink_returns(sink)
    elif not run.senders or (kind == "connect" and len(run.senders) < _MOST_CONNECTIONS):
        run.connect(rng.choice(run.sources))
    else:
        _step_of_a_sender(run, rng, kind)


def _step_of_a_sender(run: LiveRun, rng: Random, kind: str) -> None:
    sender = rng.choice(run.senders)
    if kind == "finish":
        run.finish(sender)
    elif sender.kept_back:
        run.complete(sender)
    elif kind == "begin":
        run.begin(sender, rng.choice(_PAYLOADS), rng.randrange(10))
    elif kind == "refuse":
        try:
            claim = run.claim(sender.source)
        except OverflowError:  # its headers are too short
            return
        run.refuse(sender, claim)
    else:
        payloads = rng.choices(_PAYLOADS, k=rng.randint(1, 3))
        run.send(sender, payloads, [rng.randint(1, 7) for _ in range(rng.randrange(3))])
