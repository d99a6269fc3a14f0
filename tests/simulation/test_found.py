"""What simulations have found: each plan holds, and fails with the fault as it was."""

from unittest import mock

import pytest
from simulation.checkpoints import CheckpointRun
from simulation.plans import Life, Plan, Sending
from simulation.planted import named
from simulation.search import quiet
from simulation.world import Broken

from wallaroo.transport.input_log import InputLog


def run_all(plans, **options):
    with quiet():
        for plan in plans:
            one = CheckpointRun(plan)
            one.fixed = options
            one.run()


def planted(words):
    (found,) = named(words)
    return found.plant()


def sending(number, life, *frames):
    return Sending(number, source=0, frames=frames, life=life)


def test_a_log_that_was_not_cut_is_cut_after_the_restart():
    words = ("word",) * 8
    plan = Plan(1, (Life(),), (sending(0, 0, *words), sending(1, 1, *words)))

    class Killed(CheckpointRun):
        """Its first process dies before it comes to cut the log; the second finds it too long."""

        def serve(self, loop):
            self.fixed = {"log_bytes": 1 << 20 if self.world.life == 0 else 200}
            return super().serve(loop)

        def live(self, life):
            if self.world.life >= 0:
                return super().live(life)
            with mock.patch.object(InputLog, "drop_before"):
                return super().live(life)

    with quiet():
        Killed(plan).run()
        with planted("a log that was not cut before a kill stays full"), pytest.raises(Broken):
            Killed(plan).run()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (("write", "letters", 1), "a dead letter that cannot be written is forgotten"),
        (("fsync", "letters", 1), "a sync of dead letters that fails is tried again"),
    ],
    ids=["written", "synced"],
)
def test_no_checkpoint_passes_a_dead_letter_that_is_not_on_disk(fault, words):
    frames = ("undecodable", "word")
    plans = [
        Plan(seed, (Life(power=True, faults=(fault,)),), (sending(0, 0, *frames),))
        for seed in range(40, 60)  # some of which show either fault
    ]
    run_all(plans, checkpoint_interval=0.001)
    with planted(words), pytest.raises(Broken):
        run_all(plans, checkpoint_interval=0.001)
