"""recover-4: stored states that the application would build otherwise are refused at the start."""

from __future__ import annotations

import dataclasses
import re
import threading
from collections import Counter

import pytest
from counted import send, source, whole
from mixed import tree
from served import BOTH

import wallaroo
from wallaroo.transport.identity import CheckpointError


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


def application(state=Plain):
    @wallaroo.state_computation(name="count", state=version(state))
    def count(message, state):
        if isinstance(state, dict):
            return message
        state.count += 1
        if hasattr(state, "__dict__"):
            state.later = 1  # no fresh one has it
        return message

    return wallaroo.build_application("app", source().key_by(whole).to(count).done())


def run(serve, application, isolation="trusting", **own):
    """Process some messages, and stop in order."""
    handle = serve(application, isolation, own=own)
    send(handle, "a", "b", "a")
    handle.stop()
    summary = handle.wait(60)
    assert summary.problem is None
    return summary


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        (Plain, Longer, "has no 'longest'"),
        (Lists, Dicts, "has as 'seen' a list, which is a dict today"),
        (Slots, MoreSlots, "has no '_MoreSlots__hidden'"),
        (Fields, MoreFields, "has no 'names'"),
        (dict, Counter, "is a dict, which is a Counter today"),
    ],
)
def test_recover_4_a_state_of_another_shape_is_refused(serve, tmp_path, first, then, said):
    run(serve, application(state=first))
    before = tree(tmp_path / "c")
    with pytest.raises(CheckpointError) as refused:
        serve(application(state=then), own={"record": tmp_path / "recorded"})
    text = str(refused.value)
    assert "state partition 'count', class " in text
    assert f": what is stored {said}." in text
    assert f"wallaroo checkpoint {tmp_path / 'c'} --migrate MODULE:FUNCTION --app APP" in text
    assert "--accept-old-states" in text
    assert tree(tmp_path / "c") == before
    assert not (tmp_path / "recorded").exists()


@pytest.mark.parametrize(("first", "then"), [(Plain, Longer), (Slots, MoreSlots)])
def test_recover_4_the_line_that_the_refusal_gives_takes_care(serve, first, then):
    run(serve, application(state=first))
    with pytest.raises(CheckpointError) as refused:
        serve(application(state=then))
    (line,) = re.findall("in class Kept, (def .*), or change", str(refused.value))
    space = {}
    exec(line, space)
    version = type("Version", (then,), {**space, "__slots__": ()})
    assert run(serve, application(state=version)).dead_letters == {}


@BOTH
@pytest.mark.parametrize(
    ("first", "then"),
    [(Plain, ForAll), (Longer, Plain), (Locked, Locked)],
)
def test_recover_4_what_the_class_takes_care_of_goes_on(serve, isolation, first, then):
    run(serve, application(first), isolation)
    assert run(serve, application(then), isolation).dead_letters == {}
