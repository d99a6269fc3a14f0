"""A checkpoint written anew for another engine and number of partitions (scale-1)."""

import json
import shutil

import pytest
from counted import Count, first_word, line, send, text
from live_on_spark import PATIENCE, is_idle, served_here
from receiving import Receiver, eventually
from small_windows import Collect
from standing_clock import NOON, SECOND, Clock, time_of
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.options import CheckpointOptions
from wallaroo_reference.serving import server as reference
from wallaroo_spark.jvm.session import session

import wallaroo
from wallaroo.cli.main import main
from wallaroo.engine import ServeOptions

PARTS = [
    ["a 0", "b 1", "a 2", "c 3"],
    ["a 4", "b 9", "d 5", "c 11"],
    ["a 12", "b 13", "d 19", "a 33", "b 34"],
]
"""What is sent in each of three runs: a key, and the second of its event time."""


@wallaroo.state_computation(name="count", state=Count)
def count(message, state):
    state.count += 1
    return f"{message} {state.count}"


@wallaroo.state_computation(name="fading", state=Count, expire_after=wallaroo.seconds(10))
def fading(message, state):
    state.count += 1
    return f"fading {message} {state.count}"


class Messages(Collect):
    """The messages of a window, with its start."""

    def __init__(self, name):
        self._name = name

    def name(self):
        return self._name

    def output(self, key, messages, window):
        return f"{self._name} {key} {window.start - NOON}: {' | '.join(messages)}"


class Three:
    """Gives 0, 1, 2."""

    def initial_value(self):
        return 0

    def apply(self, last):
        return last + 1 if last < 2 else None


def application(port):
    source = wallaroo.TCPSourceConfig("127.0.0.1", 0, text, event_time=time_of)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", port, line)
    words = wallaroo.source("p", source).key_by(first_word).to(count)
    sliding = wallaroo.range_windows(wallaroo.seconds(10)).with_slide(wallaroo.seconds(5))
    sessions = wallaroo.session_windows(wallaroo.seconds(8)).with_delay(wallaroo.seconds(1))
    counts = wallaroo.count_windows(3)
    return wallaroo.build_application(
        "moved",
        words.to(fading).to_sink(sink),
        words.to(sliding.over(Messages("sliding"))).to_sink(sink),
        words.to(sessions.over(Messages("session"))).to_sink(sink),
        words.to(counts.over(Messages("three"))).to_sink(sink),
        wallaroo.source("numbers", wallaroo.GenSourceConfig(Three())).to_sink(sink),
    )


def application_setup(args):
    return application(1)


class Runs:
    """Runs of the application, each on a checkpoint, with one clock and one receiver."""

    def __init__(self):
        self.clock, self.receiver = Clock(), Receiver()
        self.app = application(self.receiver.port)

    def on_reference(self, directory, part, partitions):
        options = ServeOptions(partitions=partitions)
        checkpoint = CheckpointOptions.given({"checkpoint": directory})
        handle = reference.Server(
            self.app,
            lambda: Compiled(self.app, partitions=partitions, keeps=True),
            options,
            checkpoint=checkpoint,
            clock=self.clock,
        )
        self._run(handle, part)

    def on_spark(self, directory, part, partitions):
        handle, kept = served_here(self.app, directory, partitions=partitions, clock=self.clock)

        def keep():
            eventually(lambda: is_idle(handle, kept), PATIENCE)
            shutil.copytree(kept, directory)

        self._run(handle, part, keep)

    def _run(self, handle, part, keep=lambda: None):
        for message in part:
            send(handle, message)
            self.clock.now += 3 * SECOND
        keep()
        handle.stop()
        assert handle.wait(PATIENCE).exit_code == 0

    @property
    def outputs(self):
        """What each sink has got, over all its connections."""
        return sorted(self.receiver.everything().splitlines())


def shown(capsys, directory):
    """The entities and windows of a checkpoint, without the numbers of partitions."""
    capsys.readouterr()
    assert main(["checkpoint", str(directory), "--entities"]) == 0
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    return [{name: one[name] for name in one if name != "number"} for one in lines]


@pytest.mark.xdist_group("spark")
def test_a_run_goes_on_on_spark_and_back_with_other_numbers_of_partitions(
    spark_engine, tmp_path, capsys
):
    session()
    whole, moved = Runs(), Runs()
    for part in PARTS:
        whole.on_reference(tmp_path / "whole", part, 1)

    anew = ["--app", __file__, "-o"]
    moved.on_reference(tmp_path / "a", PARTS[0], 1)
    first = ["checkpoint", str(tmp_path / "a"), "--to", "spark", "--partitions", "3"]
    assert main([*first, *anew, str(tmp_path / "on spark")]) == 0
    assert shown(capsys, tmp_path / "on spark") == shown(capsys, tmp_path / "a")
    moved.on_spark(tmp_path / "on spark", PARTS[1], 3)
    back = ["checkpoint", str(tmp_path / "on spark"), "--to", "reference", "--partitions", "2"]
    assert main([*back, *anew, str(tmp_path / "c")]) == 0
    moved.on_reference(tmp_path / "c", PARTS[2], 2)

    assert moved.outputs == whole.outputs
    assert shown(capsys, tmp_path / "c") == shown(capsys, tmp_path / "whole")
