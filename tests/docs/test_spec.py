"""The specification's examples, each on every installed engine."""

import contextlib
import re
from pathlib import Path

import pytest
from wallaroo_conformance.definition import Definition
from wallaroo_docs.blocks import chapters, examples, rules
from wallaroo_docs.performing import NotPromisedError
from wallaroo_docs.running import agree, may_be_refused, results, rewritten

from wallaroo import testing
from wallaroo.engine import Capabilities, engine_names, load_engine
from wallaroo.errors import EngineNotFoundError, UnsupportedTopology
from wallaroo.trace import Trace

ROOT = Path(__file__).parents[2]
RULE_CITED = re.compile(
    r"\b(?:frame|decode|compute|route|state|order|sink|dead|stop|build|recover"
    r"|graph|key|time|window)-[0-9]+\b"
)


def evaluate(example):
    """Run an example on the engine named in its namespace; the text returned is the failure."""
    engine = example.namespace["engine"]
    for block, said in results(example.parsed, engine).items():
        if not agree(block, said, engine):
            return f"line {block.line}, {block.title} on {engine}: {said}instead of: {block.text}"
    return None


EXAMPLES = [example for path in chapters() for example in examples(path, evaluate)]


def cases():
    """Return (example, engine) for all; what needs no engine is run once."""
    pairs, installed = [], engine_names()
    engines_of = {"application": [*installed, Defined.name], "session": installed}
    for example in EXAMPLES:
        engines = engines_of.get(example.parsed.kind, ["-"])
        for engine in engines:
            name = example.parsed.name if engine == "-" else f"{example.parsed.name}-{engine}"
            pairs.append(pytest.param(example, engine, id=name, marks=marks(example, engine)))
    return pairs


def marks(example, engine):
    """Return a case's marks: how pytest spreads it over processes."""
    if engine != "spark":
        return []
    if not kills(example):
        return [pytest.mark.xdist_group("spark")]
    why = "tests/spark/live/test_time.py kills Spark just so each time"
    return [pytest.mark.alone, pytest.mark.nightly(why)]


def kills(example):
    """Whether an example kills its engine, which then has a session of its own."""
    return any("engine.kill()" in block.text for block in example.parsed.blocks)


def found(name):
    return Defined() if name == Defined.name else load_engine(name)


class Defined(Definition):
    """The definition, which is no installed engine: it serves nothing."""

    def capabilities(self):
        return Capabilities()

    def check(self, application):
        pass


class Noting:
    """Stands in for an engine: notes the cases that it is given, and runs none."""

    def __init__(self, engine):
        self.check = engine.check
        self.cases = []

    def run(self, case):
        self.cases.append(case)
        return Trace({})


class Answering:
    """Stands in for an engine that has answered already."""

    def __init__(self, engine, traces):
        self.check = engine.check
        self.traces = iter(traces)

    def run(self, case):
        return next(self.traces)


@pytest.fixture(scope="module")
def answered_by_spark():
    """What Spark gives for the inputs of each example; one job for all costs as much as for two."""
    spark, noted = load_engine("spark"), {}
    with pytest.MonkeyPatch.context() as patch:
        for example in EXAMPLES:
            if example.parsed.kind == "application":
                noting = Noting(spark)
                patch.setattr(testing, "load_engine", lambda _, noting=noting: noting)
                with contextlib.suppress(Exception):  # its own test tells
                    results(example.parsed, "spark")
                noted[example.parsed.name] = noting.cases
    traces = iter(spark.run_many([case for cases in noted.values() for case in cases]))
    return {name: [next(traces) for _ in cases] for name, cases in noted.items()}


def share_session(monkeypatch):
    """Let live examples use the session that all share, those with a checkpoint too.

    Else the JVM of a run with a checkpoint is its own, and has the checkpoint's lock: see
    tests/spark/live/test_directory.py.
    """
    sessions = pytest.importorskip("wallaroo_spark.jvm.session")
    sessions.session()
    monkeypatch.setattr(
        "wallaroo_spark.live.query.borrowed",
        lambda settings, _, started: sessions.borrowed(settings, started=started),
    )


@pytest.mark.parametrize(("example", "engine"), cases())
def test_example(example, engine, request, monkeypatch):
    example.namespace["engine"] = engine
    if engine == Defined.name:
        for module in ("wallaroo.testing", "wallaroo.testing.session", "wallaroo_docs.performing"):
            monkeypatch.setattr(f"{module}.load_engine", found)
    if engine == "spark" and not kills(example):
        share_session(monkeypatch)
        if example.parsed.kind == "application":
            traces = request.getfixturevalue("answered_by_spark")[example.parsed.name]
            answering = Answering(load_engine("spark"), traces)
            monkeypatch.setattr(testing, "load_engine", lambda _: answering)
    try:
        example.evaluate()
    except UnsupportedTopology as refusal:
        # Told in pytest's summary (-rs); where an engine may not refuse, it is a failure.
        if not may_be_refused(example.parsed):
            raise
        pytest.skip(f"not run on {engine}: refused by build-2: {refusal}")
    except (NotPromisedError, EngineNotFoundError) as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("path", [*chapters()][::4], ids=lambda path: path.stem)
def test_regenerating_changes_nothing(path):
    own = [example.parsed for example in EXAMPLES if example.parsed.path == path]
    assert rewritten(path, own) == path.read_text("utf-8")


def test_every_rule_is_stated_once_and_has_an_example():
    stated = [rule for path in chapters() for rule in rules(path)]
    assert len(stated) == len(set(stated))
    assert set(stated) - {example.parsed.rule for example in EXAMPLES} == set()


def test_a_rules_heading_can_be_linked_to_by_its_id():
    for path in chapters():
        for line in path.read_text("utf-8").splitlines():
            match = re.match(r"## ([a-z]+-\d+)\b", line)
            assert match is None or line.endswith(f" {{ #{match[1]} }}"), f"{path.name}: {line}"


def test_no_rule_is_cited_that_is_not_stated():
    stated = {rule for path in chapters() for rule in rules(path)}
    files = [
        path
        for folder in ("wallaroo", "reference", "spark_impl", "conformance", "loadgen", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md")
    ]
    cited = {rule for path in files for rule in RULE_CITED.findall(path.read_text("utf-8"))}
    assert cited - stated == set()
