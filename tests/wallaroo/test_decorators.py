"""Decorated functions answer as components, are called as functions, and pickle by reference."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import sys
from typing import Any

import pytest

import wallaroo

DECORATED = '''
"""A user's module."""
import wallaroo

@wallaroo.decoder(header_length=2, length_fmt=">H")
def decode(payload: bytes) -> str:
    """Decode it."""
    return payload.decode()

@wallaroo.encoder
def encode(message: str) -> str:
    """Encode it."""
    return message + "!"

@wallaroo.computation(name="a compute")
def compute(message: str, times: int = 2) -> str:
    """Compute it."""
    return message * times

@wallaroo.computation_multi(name="a multi")
def compute_multi(message: str) -> list[str]:
    """Compute them."""
    return [message]

@wallaroo.state_computation(name="a state")
def compute_state(message: str, state: list) -> tuple[str, bool]:
    """Compute it with state."""
    state.append(message)
    return message, True

@wallaroo.state_computation_multi(name="a state multi")
def compute_state_multi(message: str, state: list) -> tuple[list[str], bool]:
    """Compute them with state."""
    return [message], False

@wallaroo.partition
def partition(message: str) -> str:
    """Find the key."""
    return message[0]

class Outer:
    @staticmethod
    @wallaroo.computation(name="nested")
    def nested(message):
        return message
'''

METHODS = {
    "decode": ("decode", (b"a",), "a"),
    "encode": ("encode", ("a",), "a!"),
    "compute": ("compute", ("a",), "aa"),
    "compute_multi": ("compute_multi", ("a",), ["a"]),
    "compute_state": ("compute", ("a", []), ("a", True)),
    "compute_state_multi": ("compute_multi", ("a", []), (["a"], False)),
    "partition": ("partition", ("abc",), "a"),
}
"""For each function its method, what that is called with, and what it returns."""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """A user's module, importable as ``decorated_by_user``, also from other processes."""
    directory = tmp_path_factory.mktemp("user")
    (directory / "decorated_by_user.py").write_text(DECORATED)
    sys.path.append(str(directory))
    yield importlib.import_module("decorated_by_user")
    sys.path.remove(str(directory))
    del sys.modules["decorated_by_user"]


@pytest.mark.parametrize("name", METHODS)
def test_decorated_functions_answer_the_one_method_of_their_class(module, name):
    decorated, (method, arguments, result) = getattr(module, name), METHODS[name]
    assert getattr(decorated, method)(*arguments) == result
    others = {each for each, _, _ in METHODS.values()} - {method}
    assert not [other for other in others if hasattr(decorated, other)]
    if method in ("compute", "compute_multi"):
        assert decorated.name() == f"a {name.replace('compute_', '').replace('_', ' ')}"


@pytest.mark.parametrize("name", METHODS)
def test_decorated_functions_keep_docstring_and_signature(module, name):
    decorated = getattr(module, name)
    plain = decorated.__wrapped__
    assert decorated.__doc__ == plain.__doc__
    assert decorated.__doc__.endswith(".")
    assert inspect.signature(decorated) == inspect.signature(plain)
    assert inspect.getsource(decorated) == inspect.getsource(plain)
    assert decorated.__name__ == decorated.__qualname__ == name
    assert decorated.__module__ == "decorated_by_user"
    assert decorated.__annotations__ == plain.__annotations__
    assert name in repr(decorated)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_decorated_functions_pickle_by_reference(module, name, protocol):
    decorated = getattr(module, name)
    pickled = pickle.dumps(decorated, protocol)
    assert pickle.loads(pickled) is decorated
    assert len(pickled) < 80


def test_decorated_functions_are_their_own_copies_also_inside_a_class(module):
    nested = module.Outer.nested
    assert pickle.loads(pickle.dumps(nested)) is copy.copy(nested) is nested
    assert copy.deepcopy([module.compute])[0] is module.compute


def test_decorators_wrap_builtins_that_tell_no_signature():
    assert wallaroo.partition(len)("abc") == 3
    largest: Any = max  # its overloads are no computation's type
    assert wallaroo.computation(name="largest")(largest)([1, 3, 2]) == 3
