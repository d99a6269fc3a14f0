"""Generators go on where a stop has left them, whichever values can be stored (graph-4)."""

import json
import threading
import time

import pytest
from counted import sink
from receiving import eventually
from served import stopped

import wallaroo


class Item:
    """A value; one that has a lock can neither be copied nor stored."""

    def __init__(self, number, portable):
        self.number = number
        self.lock = None if portable else threading.Lock()

    def __str__(self):
        return str(self.number)


class Items:
    """Gives an item for each letter: `p` can be stored, `u` cannot."""

    def __init__(self, letters):
        self.letters = letters

    def initial_value(self):
        return self.item(0)

    def apply(self, last):
        time.sleep(0.01)
        return self.item(last.number + 1) if last.number + 1 < len(self.letters) else None

    def item(self, number):
        return Item(number, self.letters[number] == "p")


@pytest.mark.parametrize("letters", ["uuuuuuuuuuuu", "uuuuuuppuupp", "ppuuuuuuuupu"])
def test_graph_4_values_come_once_over_restarts_though_none_or_few_can_be_stored(
    serve, receiver, tmp_path, letters
):
    items = wallaroo.source("g", wallaroo.GenSourceConfig(Items(letters)))
    application = wallaroo.build_application("app", items.to_sink(sink(receiver.port)))
    dead = tmp_path / "dead.json"
    for _ in range(3):
        handle = serve(application, dead_letters=dead)
        while not handle.progress().received and handle.wait(0.01) is None:
            pass
        assert stopped(handle).exit_code == 0
    assert serve(application, dead_letters=dead).wait(60).exit_code == 0
    refused = [json.loads(line)["lineage"] for line in dead.read_text().splitlines()]
    assert refused == [[n] for n, letter in enumerate(letters) if letter == "u"]
    wanted = [b"%d\n" % n for n, letter in enumerate(letters) if letter == "p"]
    eventually(lambda: b"".join(receiver.so_far) == b"".join(wanted))


def test_that_all_sources_have_ended_in_an_earlier_run_is_said(serve, receiver, caplog):
    items = wallaroo.source("g", wallaroo.GenSourceConfig(Items("pp")))
    application = wallaroo.build_application("app", items.to_sink(sink(receiver.port)))
    for said in (False, True):
        assert serve(application).wait(60).exit_code == 0
        assert ("every source has ended in an earlier run" in caplog.text) == said
