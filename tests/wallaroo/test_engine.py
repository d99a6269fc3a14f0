"""How engines are found, and that those that are installed answer the protocol."""

import argparse
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from wallaroo import engine as protocol
from wallaroo.engine import Capabilities, Case, Engine, engine_names, load_engine
from wallaroo.errors import EngineNotFoundError, UnsupportedTopology
from wallaroo.trace import Trace

OURS = ["reference", "compiled"]


@pytest.mark.parametrize("name", OURS)
def test_engine_answers_the_protocol(name, app):
    engine = load_engine(name)
    assert isinstance(engine, Engine)
    assert engine.name == name
    assert isinstance(engine.capabilities(), Capabilities)
    application = app()
    engine.check(application)
    parser = argparse.ArgumentParser()
    engine.add_arguments(parser)
    isolation = sorted(engine.capabilities().isolation)[-1]
    case = Case(application, [("p", b"a"), ("p", b"b")], isolation=isolation)
    trace = engine.run(case)
    assert isinstance(trace, Trace)
    assert trace.outputs == {("p", 0): (b"'a';", b"'b';")}
    assert engine.run_many([case, case]) == [trace, trace]
    assert engine.run_many([]) == []


def test_engine_an_unknown_name_says_which_there_are():
    with pytest.raises(EngineNotFoundError, match=r"no engine is called 'nonsense'; .*reference"):
        load_engine("nonsense")


class NoEngine:
    pass


def test_engine_what_is_offered_must_be_one(monkeypatch):
    offered = EntryPoints(
        EntryPoint(name, value, protocol.ENTRY_POINTS)
        for name, value in (("odd", f"{__name__}:NoEngine"), ("away", "no_such_module:Engine"))
    )
    monkeypatch.setattr(
        "importlib.metadata.entry_points",
        lambda **params: offered.select(**params) if params else offered,
    )
    with pytest.raises(EngineNotFoundError, match=r"NoEngine is not an engine: see"):
        load_engine("odd")
    with pytest.raises(EngineNotFoundError, match=r"not installed: .*'wallaroo-streams\[away\]'"):
        load_engine("away")
    assert engine_names() == ["away", "odd"]


def test_build_2_the_compiled_path_refuses_what_it_has_not(app):
    engine = load_engine("compiled")
    assert engine.capabilities().isolation == {"trusting"}
    with pytest.raises(UnsupportedTopology, match="state-4"):
        engine.run(Case(app(), [], isolation="isolated"))
