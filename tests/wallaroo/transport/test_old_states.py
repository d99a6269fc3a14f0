"""recover-4: stored states that the application would build otherwise.

That a run is refused for them, and changes nothing then, is a law of live servers.
"""

from __future__ import annotations

import dataclasses
import pickle
import re
import threading
from collections import Counter
from pathlib import Path

import pytest
from counted import source

import wallaroo
from wallaroo.transport.identity import CheckpointError
from wallaroo.transport.old_states import FreshStates, Place


class Plain:
    """What every version of the class `Kept` has: a count."""

    def __init__(self):
        self.count = 0


class Longer(Plain):
    def __init__(self):
        super().__init__()
        self.longest = 0


class Lists(Plain):
    def __init__(self):
        super().__init__()
        self.seen = []


class Dicts(Plain):
    def __init__(self):
        super().__init__()
        self.seen = {}


class ForAll(Longer):
    longest = 0


class Locked(Plain):
    """Leaves out what is not to be stored."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def __getstate__(self):
        return {"count": self.count}


class Slots:
    __slots__ = ("count",)

    def __init__(self):
        self.count = 0


class MoreSlots:
    __slots__ = ("__hidden", "count")

    def __init__(self):
        self.count = 0
        self.__hidden = 1


@dataclasses.dataclass(slots=True)
class Fields:
    count: int = 0


@dataclasses.dataclass(slots=True)
class MoreFields:
    count: int = 0
    names: list[str] = dataclasses.field(default_factory=list)


def version(cls):
    """Return a class that is stored, and found, under one name, whatever its version."""
    if cls.__module__ != __name__:
        return cls
    made = type("Kept", (cls,), {"__module__": __name__, "__slots__": ()})
    globals()["Kept"] = made
    return made


def refuse(first, then, directory=Path()):
    """Refuse a state of one version if an application with another builds it otherwise."""
    state = version(first)()
    if hasattr(state, "__dict__"):
        state.later = 1  # no fresh one has it
    stored = pickle.dumps(state, 5)
    count = wallaroo.state_computation(name="count", state=version(then))(
        lambda message, state: None
    )
    application = wallaroo.build_application("app", source().to(count).done())
    FreshStates(application).refuse_old(directory, [(Place("count"), stored)])


@pytest.mark.parametrize(
    ("first", "then", "facts"),
    [
        (Plain, Longer, "has no 'longest'"),
        (Lists, Dicts, "has as 'seen' a list, which is a dict today"),
        (Slots, MoreSlots, "has no '_MoreSlots__hidden'"),
        (Fields, MoreFields, "has no 'names'"),
        (dict, Counter, "is a dict, which is a Counter today"),
    ],
)
def test_a_state_of_another_shape_is_refused_with_what_to_do(tmp_path, first, then, facts):
    with pytest.raises(CheckpointError) as refused:
        refuse(first, then, tmp_path)
    text = str(refused.value)
    assert "state partition 'count', class " in text
    assert f": what is stored {facts}." in text
    assert f"wallaroo checkpoint {tmp_path} --migrate MODULE:FUNCTION --app APP" in text
    assert "--accept-old-states" in text


@pytest.mark.parametrize(("first", "then"), [(Plain, Longer), (Slots, MoreSlots)])
def test_the_line_that_the_refusal_gives_takes_care(tmp_path, first, then):
    with pytest.raises(CheckpointError) as refused:
        refuse(first, then, tmp_path)
    (line,) = re.findall("in class Kept, (def .*), or change", str(refused.value))
    space = {}
    exec(line, space)
    refuse(first, type("Version", (then,), {**space, "__slots__": ()}))


@pytest.mark.parametrize(("first", "then"), [(Plain, ForAll), (Longer, Plain), (Locked, Locked)])
def test_what_the_class_takes_care_of_goes_on(first, then):
    refuse(first, then)
