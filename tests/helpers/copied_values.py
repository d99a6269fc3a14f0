"""Values of every kind that pickle treats in its own way, for tests of copies."""

from __future__ import annotations

import collections
import dataclasses
import enum
import typing
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

T = typing.TypeVar("T")


class Empty:
    pass


class Defaults:
    level = 7
    names: typing.ClassVar[list] = []


class Child(Defaults, Empty):
    pass


class Grandchild(Defaults):
    level = 8


class Property:
    @property
    def half(self):
        return self.whole / 2

    @half.setter
    def half(self, value):
        self.whole = 2 * value


class DataDescriptor:
    """Its attribute `hidden` is in ``__dict__``, but reading goes by the descriptor."""

    @property
    def hidden(self):
        return "by the property"


class Slots:
    __slots__ = ("one", "two")


class SlotsAndDict(Slots):
    pass


class DictInSlots:
    __slots__ = ("__dict__",)


class DictElsewhere:
    """Its ``__dict__`` is not that of its attributes."""

    def __init__(self):
        self.other = {}

    @property
    def __dict__(self):
        return self.other


class GetAttr:
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return f"no {name}"


class GetAttribute:
    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


class SetAttr:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, f"set: {value}")


class GetState:
    def __getstate__(self):
        return {"seen": len(self.__dict__)}


class SetState:
    def __setstate__(self, state):
        self.__dict__.update(state)
        self.restored = True


class StateIsNothing:
    def __getstate__(self):
        return None


class Reduce:
    def __reduce__(self):
        return (type(self), (), {"reduced": sorted(map(str, self.__dict__))})


class ReduceEx:
    def __reduce_ex__(self, protocol):
        return (type(self), (), {"protocol": protocol})


class NewArgs:
    def __new__(cls, made="bare"):
        self: Any = super().__new__(cls)
        self.made = made
        return self

    def __getnewargs__(self):
        return ("by pickle",)


class ConstructorOnly:
    def __init__(self, must_have):
        self.must_have = must_have


class Meta(type):
    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        made.counted = True
        return made


class WithMeta(metaclass=Meta):
    pass


class LyingEq:
    __hash__ = None

    def __eq__(self, other):
        return True


class EqualToAll:
    __hash__ = None

    def __eq__(self, other):
        return True

    def __call__(self):
        return (LyingReduce, (), {"by": "its own __reduce__"})


class LyingReduce:
    __reduce__: Any = EqualToAll()


class LyingClass:
    @property
    def __class__(self):
        return Empty


class Falsy:
    def __bool__(self):
        return False

    def __len__(self):
        return 0


class Registered:
    pass


@dataclasses.dataclass
class Data:
    count: int = 0
    text: str = ""


@dataclasses.dataclass(frozen=True)
class FrozenData:
    count: int = 0


@dataclasses.dataclass(slots=True)
class SlottedData:
    count: int = 0


class Generic(typing.Generic[T]):
    pass


class Text(str):
    pass


class Many(list):
    pass


class Table(dict):
    pass


class Number(int):
    pass


class Broken(Exception):
    pass


Pair = collections.namedtuple("Pair", "left right")


class Colour(enum.Enum):
    RED = 1


class Flags(enum.IntFlag):
    A = 1
    B = 2


def _slots(**attributes):
    value: Any = SlotsAndDict()
    value.one = 1
    value.__dict__.update(attributes)
    return value


BARE: list[Any] = [
    Empty,
    Defaults,
    Child,
    Grandchild,
    Property,
    DataDescriptor,
    _slots,
    DictInSlots,
    DictElsewhere,
    GetAttr,
    GetAttribute,
    SetAttr,
    GetState,
    SetState,
    StateIsNothing,
    Reduce,
    ReduceEx,
    NewArgs,
    lambda: ConstructorOnly(1),
    WithMeta,
    LyingEq,
    LyingReduce,
    Falsy,
    Registered,
    Data,
    FrozenData,
    Generic,
    Generic[int],
    lambda: Text("text"),
    lambda: Many([1, [2]]),
    lambda: Table(a=[1]),
    lambda: Number(3),
    lambda: Broken("why", 1),
]
"""How to make an instance with a ``__dict__`` that anything may be put into."""


def _heir(base):
    """Return a class that differs from `base` in its name alone, and that pickle finds here."""
    heir = type(base)(f"Heir{base.__name__}", (base,), {"__module__": __name__})
    return globals().setdefault(heir.__name__, heir)


# `LyingReduce` makes no other class than itself.
BARE += [_heir(base) for base in BARE if isinstance(base, type) and base is not LyingReduce]

HOOKS = [
    "__reduce_ex__",
    "__reduce__",
    "__getstate__",
    "__setstate__",
    "__getattribute__",
    "__getattr__",
    "__getnewargs__",
    "__getnewargs_ex__",
    "__slots__",
    "__class__",
    "__dict__",
    "__new__",
    "__init__",
    "__copy__",
    "__deepcopy__",
]

atoms = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.just(2**70)
)
names = st.one_of(
    st.sampled_from([*HOOKS, "level", "names", "half", "whole", "hidden", "one", "counted"]),
    st.text(max_size=3),
    st.integers(0, 2),
    st.builds(Text, st.text(max_size=2)),
    st.tuples(st.integers(0, 2)),
)
values = st.recursive(
    st.one_of(
        atoms,
        st.sampled_from(
            [Colour.RED, Flags.A | Flags.B, Pair(1, "two"), Fraction(1, 3), Empty, len, Text("t")]
        ),
        st.builds(Empty),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=2), inner, max_size=2),
    ),
    max_leaves=4,
)


flat = st.one_of(
    st.lists(atoms, max_size=3),
    st.dictionaries(atoms, atoms, max_size=3),
    st.sets(st.integers(), max_size=2),
)


@st.composite
def instances(draw):
    value = draw(st.sampled_from(BARE))()
    attributes = draw(st.dictionaries(names, st.one_of(atoms, values, flat), max_size=3))
    if attributes and draw(st.booleans()):  # two names for one object
        attributes["again"] = draw(st.sampled_from(list(attributes.values())))
    vars(value).update(attributes)
    return value
