"""How many faults that nobody chose does the suite find? Mutants made by machine, drawn by seed.

cosmic-ray's operators change one place of a function of a module that decides what comes out. Of
the places some are drawn, and of each one mutant. What decides about messages is tried under the
stored cases and the search of `wallaroo conform`; the edges, which decide what outlives a crash,
under the simulation and conformance's live runs. With `--tests`, the tests of their folder are
tried where these are silent. Prints by module the share that was found, with its interval of
confidence (Wilson, 95 %), and the survivors.

    pip install --group mutants && python benchmarks/machine_mutants.py [--mutants N] [--seed N]

A survivor is a hole, or equal in meaning. The equal ones are listed, with the reason, in
`machine_mutants_equal.toml`, by their source texts; they do not count.

Mutants of the interpreter are judged by the definition, all others by the interpreter. Modules of
what is not compared (findings, figures) are left out, and so are changes that only a type checker
sees, and those of arguments' default values, which a patch does not put in place. Each mutant runs
in a fork of a process that knows what the cases mean, and which functions each of them calls: a
case that does not call the function that is changed is not run again.
"""

from __future__ import annotations

import argparse
import ast
import gc
import itertools
import math
import multiprocessing
import os
import resource
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, replace
from difflib import unified_diff
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from statistics import median
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from facts import Figures, add_json_option, machine_facts
from wallaroo_conformance.cases.building import GeneratedCase
from wallaroo_conformance.cases.counterexamples import STORED, stored
from wallaroo_conformance.judge.oracle import REFERENCE
from wallaroo_conformance.language import check_language
from wallaroo_conformance.live import check_live
from wallaroo_conformance.search.budget import Budget, Check
from wallaroo_conformance.search.running import HarnessError
from wallaroo_conformance.search.search import Search
from wallaroo_conformance.stepping import check_due
from wallaroo_mutants.catalogue import MutantEngine
from wallaroo_mutants.patching import NOTHING, Change, Patch, PatchError
from wallaroo_mutants.spark import OneByOne

from wallaroo.engine import Capabilities, Case, Engine, load_engine
from wallaroo.trace import Trace

sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))
from simulation.search import SUBJECTS, Subject, failure, quiet

EQUAL = Path(__file__).with_name("machine_mutants_equal.toml")
NEEDING_ARGUMENTS = ("core/VariableReplacer", "core/VariableInserter")
_BYTES = 6 << 30
_SIMULATED = {
    "cases": 300,
    "log": 200,
    "recording": 100,
    "server": 400,
    "spark": 300,
    "topics": 200,
}
"""How many runs the simulation makes of each of its subjects."""
_FEW_RUNS = 300
"""So many are made of what is not of the edges."""
_OF_ENGINES = {
    REFERENCE: ["cases", "topics"],
    "compiled": ["cases", "topics"],
    "spark": ["spark"],
}
"""By home, the subjects that serve its engine."""
_OF_EDGES = [name for name in _SIMULATED if name != "spark"]
_PATIENCE = 20.0  # seconds to wait for something in a live run
_LONGEST = 900.0  # seconds of a mutant that waits for something that never comes
_MORE = 2.0  # times the CPU time of the engine as it is; one that takes longer never ends
_Z = 1.96  # of 95 %


def _named(package: str, *names: str) -> tuple[str, ...]:
    return tuple([f"{package}.{name}" for name in names])


MODULES: dict[str, tuple[str, ...]] = {
    REFERENCE: _named(
        "wallaroo_reference.isolated",
        *("copies", "counts", "interpreter", "judging", "places", "ranges", "sessions", "walk"),
        *("watermarks", "windows"),
    ),
    "compiled": (
        *_named(
            "wallaroo_reference.compiled",
            *("clocks", "codegen", "codegen_text", "codegen_windows", "entities", "failing"),
            *("keyed_windows", "machine", "ranges", "windows"),
        ),
        *_named("wallaroo", "judging", "copying", "windowing.watermarks"),
    ),
    "language": _named(
        "wallaroo",
        *("building.builder", "building.declarations", "building.pipeline", "checks", "keys"),
        *("kinds", "operations", "records", "times", "topology", "windows"),
    ),
    "spark": (
        *_named(
            "wallaroo_spark.worker",
            *("calls", "fetching", "flow", "leaving", "nodes", "plan", "program", "replay"),
            *("routing", "segments", "sink_node", "states", "tasks", "tracker", "window_step"),
            "window_store",
        ),
        *_named(
            "wallaroo_spark.live",
            *("delivery", "intake", "kafka_sinks", "log_feed", "offset_log", "resume", "to_tasks"),
        ),
        *_named("wallaroo_spark.wire", "job", "lineages", "outbox", "rows"),
        *_named("wallaroo_spark.bounded", "micro_batches", "runs", "traces"),
        *("wallaroo_spark.plans.records", "wallaroo.windowing.kinds"),
    ),
    "edges": (
        *_named(
            "wallaroo",
            *("frames", "transport.checkpoint", "transport.connection"),
            *("transport.dead_letter_file", "transport.input_log", "transport.listener"),
            *("transport.log_directory", "transport.log_file", "transport.log_format"),
            *("transport.logged", "transport.resuming_sink", "transport.resumption"),
            *("transport.sink", "transport.skipping", "transport.stamps", "transport.stored"),
            *(f"transport.kafka.{name}" for name in ("beginning", "producing", "reader")),
            *(f"transport.kafka.{name}" for name in ("sink", "source", "sources")),
        ),
        *_named(
            "wallaroo_reference",
            *("checkpoints.blobs", "checkpoints.collecting", "checkpoints.head"),
            *("checkpoints.on_disk", "checkpoints.recovery", "checkpoints.store"),
            *("checkpoints.stored", "serving.checkpointing", "serving.durable", "serving.feeder"),
            *("serving.inlet", "serving.journal", "serving.outbox", "serving.server"),
        ),
    ),
}
"""By home, the modules that decide what comes out."""

TESTS: dict[str, tuple[str, ...]] = {
    REFERENCE: (
        *("reference/rules", "reference/isolated", "reference/replay"),
        *("reference/serving/test_server_time.py", "conformance/test_texts.py"),
    ),
    "compiled": (
        *("reference/rules", "reference/compiled", "wallaroo/test_judging.py"),
        *("reference/checkpoints/test_changed_topology.py", "conformance/test_texts.py"),
    ),
    "language": (
        *("wallaroo/building", "reference/rules/test_key_expiry.py"),
        *(f"wallaroo/test_{name}.py" for name in ("config", "decorators", "keys", "times")),
        *(f"wallaroo/test_{name}.py" for name in ("topology", "windows")),
    ),
    "spark": (
        *("spark/worker", "spark/wire", "spark/plans", "spark/bounded/test_micro_batches.py"),
        *("spark/bounded/test_cases.py", "spark/live/test_offset_log.py"),
        *(f"spark/live/test_{name}.py" for name in ("arrivals", "log_feed", "new_part")),
        *(f"spark/live/test_{name}.py" for name in ("resume", "to_tasks")),
    ),
    "edges": (
        *("wallaroo/test_frames.py", "wallaroo/transport"),
        *("reference/checkpoints", "reference/serving", "reference/replay"),
    ),
}
"""By home, the tests that are tried where all else is silent."""


@dataclass(frozen=True)
class Drawn:
    """A mutant, and what came of it.

    Args:
        home: where it belongs to.
        module: the module that is changed.
        function: the function, as a path in the module.
        operator: cosmic-ray's operator.
        change: the lines that go, behind ``-``, those that come, behind ``+``, and neighbours.
        found: by what: ``conform``, ``simulation``, ``tests``; ``equal``: it is listed; or empty.
        seconds: CPU time until it was found, or all was tried.
    """

    home: str
    module: str
    function: str
    operator: str
    change: str
    found: str = ""
    seconds: float = 0.0

    @property
    def place(self) -> tuple[str, str]:
        """Its function, as the list of equal ones names it, and the change."""
        return f"{self.module}:{self.function}", self.change


# -- mutants ---------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A place in a module, and what can be made of it: (operator, occurrence)."""

    module: str
    mutants: tuple[tuple[str, int], ...]


def places(module: str) -> list[Place]:
    """Return the places of a module at which cosmic-ray can change something."""
    nodes = list(ast_nodes(get_ast(_source(module))))
    found: dict[Any, list[tuple[str, int]]] = {}
    for name in operator_names():
        if name not in NEEDING_ARGUMENTS:
            operator = get_operator(name)()
            positions = [at for node in nodes for at in operator.mutation_positions(node)]
            for occurrence, at in enumerate(positions):
                found.setdefault(at, []).append((name, occurrence))
    return [Place(module, tuple(mutants)) for mutants in found.values()]


def drawn(home: str, seed: int) -> Iterator[tuple[Drawn, Patch]]:
    """Yield mutants of a home: of each place one, in an order that the seed decides."""
    rng = Random(seed)
    everything = [place for module in MODULES[home] for place in places(module)]
    rng.shuffle(everything)
    for place in everything:
        mutants = list(place.mutants)
        rng.shuffle(mutants)
        found = (made(home, place.module, *mutant) for mutant in mutants)
        if (mutant := next(filter(None, found), None)) is not None:
            yield mutant


def made(home: str, module: str, operator: str, occurrence: int) -> tuple[Drawn, Patch] | None:
    """Return a mutant and its patch; `None`: it changes no function, or nothing that runs."""
    source = _source(module)
    text = mutate_code(source, get_operator(operator)(), occurrence)
    if text is None:
        return None
    try:
        before, after = _functions(source), _functions(text)
    except SyntaxError:  # a star or a colon was taken for an operator
        return None
    changed = [name for name in before if _meaning(before[name]) != _meaning(after.get(name))]
    if len(changed) != 1:
        return None
    [name] = changed
    was, now = _text(source, before[name]), _text(text, after[name])
    patch = Patch(
        f"{module}:{name} {operator} {occurrence}", (Change(f"{module}:{name}", was, now),)
    )
    try:
        patch.codes()
    except PatchError:
        return None
    lines = list(unified_diff(was.splitlines(), now.splitlines(), lineterm="", n=1))[2:]
    change = [f"{one[0]} {one[1:].strip()}" for one in lines if not one.startswith("@@")]
    return Drawn(home, module, name, operator.removeprefix("core/"), "\n".join(change)), patch


def equal() -> dict[tuple[str, str], str]:
    """Return why mutants are equal in meaning, by function and change.

    Without a change it is so of all changes, and the function may be a shell pattern.
    """
    listed = tomllib.loads(EQUAL.read_text("utf-8"))
    return {
        (function, entry.get("change", "").strip("\n")): entry["why"]
        for function, entries in listed.items()
        for entry in entries
    }


@cache
def _source(module: str) -> str:
    return Path(file_of(module)).read_text("utf-8")


def file_of(module: str) -> str:
    """Return the path of a module's source."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return spec.origin


@cache
def _functions(source: str) -> dict[str, Any]:
    """Return the functions of a module and of its classes by their paths."""
    found: dict[str, Any] = {}

    def look(body: Sequence[Any], path: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                look(node.body, f"{path}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[f"{path}{node.name}"] = node

    look(ast.parse(source).body, "")
    return found


def _meaning(function: Any) -> str:
    """Return what a patch changes of a function: no annotations, decorators and default values."""
    if function is None:
        return ""
    node = ast.parse(ast.unparse(function)).body[0]
    for each in ast.walk(node):
        for name in ("returns", "annotation", "type_comment"):
            if hasattr(each, name):
                setattr(each, name, ast.Constant(0) if isinstance(each, ast.AnnAssign) else None)
    node.decorator_list = []  # type: ignore[attr-defined]
    node.args.defaults = node.args.kw_defaults = []  # type: ignore[attr-defined]
    return ast.dump(node)


def _text(source: str, node: Any) -> str:
    return "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])


# -- runs ------------------------------------------------------------------------------------------


class _Runs:
    """Runs things with faults in them, but what does not call what is changed is run only once.

    Args:
        modules: those that are changed.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = {Path(file_of(name)): name for name in modules}
        self._given: dict[Any, Any] = {}
        self._called: dict[Any, set[str]] = {}

    def result(self, name: Any, run: Callable[[], Any], patch: Patch) -> Any:
        """Return what a run gives with a fault.

        Args:
            name: of the run. When it is first met, nothing is changed yet.
            run: the run. It gives the same whenever it is called.
            patch: the fault.
        """
        if name not in self._given:
            self._given[name], self._called[name] = self._noted(run)
        if self._called[name].isdisjoint([change.function for change in patch.changes]):
            return self._given[name]
        with patch.in_place():
            return run()

    def _noted(self, run: Callable[[], Any]) -> tuple[Any, set[str]]:
        """Return what a run gives, and the functions that it calls, in all threads."""
        codes: set[CodeType] = set()

        def called(frame: FrameType, event: str, _argument: Any) -> None:
            if event == "call":
                codes.add(frame.f_code)

        threading.setprofile(called)
        sys.setprofile(called)
        try:
            given = run()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        # What is inside of a function is changed with it.
        named = [
            (Path(one.co_filename), one.co_qualname.partition(".<locals>")[0]) for one in codes
        ]
        return given, {f"{self._modules[at]}:{name}" for at, name in named if at in self._modules}


class _Faulty:
    """An engine with a fault, for cases that have been run without it before.

    Args:
        engine: the engine.
        claims: what it claims.
        runs: of the cases.
        patch: the fault.
    """

    def __init__(self, engine: Engine, claims: Capabilities, runs: _Runs, patch: Patch) -> None:
        self.name = engine.name
        self.check = engine.check
        self.serve = engine.serve
        self.add_arguments = engine.add_arguments
        self._engine = engine
        self._claims = claims
        self._runs = runs
        self._patch = patch

    def capabilities(self) -> Capabilities:
        return self._claims

    def run(self, case: Case) -> Trace:
        [trace] = self.run_many([case])
        return trace

    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        return [
            self._runs.result(case.made_from, partial(self._engine.run, case), self._patch)
            for case in cases
            if isinstance(case, GeneratedCase)
        ]


class _Cases:
    """Tries mutants with cases.

    Args:
        home: of the mutants.
        cases: most cases that are generated.
        seed: of the generation.
    """

    def __init__(self, home: str, cases: int, seed: int) -> None:
        self._check = Check(Budget(cases), seed, fail_fast=True)
        engine: Any = {"spark": OneByOne}.get(home, lambda: load_engine(_ENGINES[home]))()
        self._engine = engine
        self._claims = replace(engine.capabilities(), live=False)
        if engine.name == REFERENCE:
            self._claims = replace(self._claims, isolation=frozenset({"isolated"}))
        self._subjects = _OF_ENGINES.get(home, [])
        # The language makes the topology, which is made outside the engine.
        self._everywhere = home == "language"
        self._runs = _Runs(MODULES[home])
        assert self.found(NOTHING) == "", "an engine that is right was called wrong"

    def found(self, patch: Patch) -> str:
        """Return by what a mutant was found."""
        engine: Any = _Faulty(self._engine, self._claims, self._runs, patch)
        if self._everywhere:
            engine = MutantEngine(self._engine.name, self._engine, patch, self._claims)
        with patch.in_place() if self._everywhere else nullcontext():
            if self._everywhere and check_language("*")[1]:
                return "conform"
            search = Search(engine, self._check)
            try:
                search.replay(one.case for one in stored(STORED))
                if not search.findings.failing:
                    search.search()
            except HarnessError:
                return "conform"
        if search.findings.failing or search.problems:
            return "conform"
        due = partial(check_due, self._engine, "*", self._check.seed)
        if self._runs.result("due", due, patch)[1]:
            return "conform"
        return _simulated(patch, self._runs, self._subjects, _FEW_RUNS)


_ENGINES = {"language": REFERENCE, REFERENCE: REFERENCE, "compiled": "compiled"}
"""By home, the engine that runs cases."""


def _simulated(patch: Patch, runs: _Runs, subjects: Sequence[str], most: int) -> str:
    """Make runs of each subject in turn."""
    named = [(seed, name) for name in subjects for seed in range(min(most, _SIMULATED[name]))]

    def fails(seed: int, subject: Subject) -> bool:
        return failure(subject, subject.drawn(seed))[0] is not None

    with quiet():
        for seed, name in sorted(named):
            if runs.result((seed, name), partial(fails, seed, SUBJECTS[name]), patch):
                return "simulation"
    return ""


class _Edges:
    """Tries mutants by the simulation, and by live runs."""

    def __init__(self, home: str, cases: int, seed: int) -> None:
        self._seed = seed
        self._runs = _Runs(MODULES[home])
        assert self.found(NOTHING) == "", "the edges as they are were called wrong"

    def found(self, patch: Patch) -> str:
        """Return by what a mutant was found."""
        if found := _simulated(patch, self._runs, _OF_EDGES, max(_SIMULATED.values())):
            return found
        with patch.in_place():
            engine = load_engine(REFERENCE)
            _, failures = check_live(engine, "*", self._seed, patience=_PATIENCE)
        return "conform" if failures else ""


def trial(home: str, cases: int, seed: int) -> _Cases | _Edges:
    """Return what tries the mutants of a home, after trying what has no fault."""
    return (_Edges if home == "edges" else _Cases)(home, cases, seed)


def tests_fail(home: str) -> bool:
    """Return whether a test of a home fails; in this process, as what it starts is not changed."""
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        folder = Path(__file__).parents[1] / "tests"
        options = ("-x", "-q", "-p", "no:cacheprovider", "-m", "not alone and not browser")
        return pytest.main([*options, *[str(folder / one) for one in TESTS[home]]]) != 0


def _found_by_tests(home: str, patch: Patch) -> bool:
    with patch.in_place():
        return tests_fail(home)


def _answer(target: Callable[[], Any], most: float) -> Any:
    """Return what a function returns in a process of its own, which it may break.

    Args:
        target: the function.
        most: seconds of CPU time; one that takes longer never ends.

    Returns:
        What the function returns and its CPU seconds; `None`: it was killed, or died.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(most) + 1, int(most) + 1))
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
        begun = time.process_time()
        there.send((target(), time.process_time() - begun))
        os._exit(0)  # threads of what was served may go on

    process = context.Process(target=limited)
    process.start()
    process.join(_LONGEST)
    process.kill()
    return here.recv() if here.poll() else None


def _all_tried(home: str, share: int, options: argparse.Namespace, results: Any) -> None:
    """Try a share of a home's mutants; in a process of its own, which remembers what cases mean."""
    begun = time.process_time()
    tries = trial(home, options.cases, options.seed)
    most = _MORE * max(time.process_time() - begun, 10.0)
    gc.freeze()
    listed = equal()
    own = itertools.islice(drawn(home, options.seed), share, options.mutants, options.jobs)
    for one, patch in own:
        if options.only not in f"{one.module}:{one.function}":
            continue
        whole = [name for name, change in listed if not change]
        if one.place in listed or any(fnmatchcase(one.place[0], name) for name in whole):
            results.put(replace(one, found="equal"))
            continue
        # One that is killed, or dies, is seen by everybody.
        found, seconds = _answer(partial(tries.found, patch), most) or ("conform", most)
        if not found and options.tests:
            tests = _answer(partial(_found_by_tests, home, patch), _LONGEST)
            found = "tests" if tests is None or tests[0] else ""
        results.put(replace(one, found=found, seconds=round(seconds, 2)))
    results.put(None)


def tried(homes: Sequence[str], options: argparse.Namespace) -> Iterator[Drawn]:
    """Yield the mutants of some homes that were drawn, with what came of them."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    for home, share in itertools.product(homes, range(options.jobs)):
        context.Process(target=_all_tried, args=(home, share, options, results)).start()
    left = len(homes) * options.jobs
    while left:
        if (result := results.get()) is None:
            left -= 1
        else:
            yield result


# -- figures ---------------------------------------------------------------------------------------


def interval(found: int, drawn: int) -> tuple[float, float]:
    """Return between which shares the true one lies (Wilson's interval, 95 %)."""
    share, more = found / drawn, _Z**2 / drawn
    middle = (share + more / 2) / (1 + more)
    half = _Z * math.sqrt(share * (1 - share) / drawn + more / drawn / 4) / (1 + more)
    return middle - half, middle + half


def line(name: str, mutants: Sequence[Drawn]) -> str:
    """Return the figures of some mutants as a line; those that are equal do not count."""
    by = Counter(one.found or "nothing" for one in mutants)
    equals = by.pop("equal", 0)
    if not by.total():
        return f"{name:44} {equals} equal"
    found = by.total() - by["nothing"]
    low, high = interval(found, by.total())
    told = ", ".join([f"{number} by {what}" for what, number in sorted(by.items()) if number])
    share = f"{found:3} of {by.total():3}, {found / by.total():4.0%} ({low:.0%} to {high:.0%})"
    return f"{name:44} {share}; {told}; {equals} equal"


def main() -> None:
    """Draw, try and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=100, help="of each home")
    parser.add_argument("--home", choices=MODULES, action="append")
    parser.add_argument("--cases", type=int, default=2_500, help="most cases for each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes for each home")
    parser.add_argument("--only", default="", help="of these, those of functions with this text")
    parser.add_argument("--tests", action="store_true", help="where all else is silent, try tests")
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    mutants: list[Drawn] = []
    for one in tried(options.home or list(MODULES), options):
        mutants.append(one)
        print(
            f"# {one.found or 'SURVIVED'} {one.module}:{one.function} {one.operator}"
            f" {one.seconds} s",
            flush=True,
        )
        if not one.found:  # as the list of equal ones has it
            print(f'[["{one.module}:{one.function}"]]\nchange = """\n{one.change}"""', flush=True)
    names = sorted({one.module for one in mutants})
    groups = {name: [one for one in mutants if one.module == name] for name in names}
    groups |= {home: [one for one in mutants if one.home == home] for home in MODULES}
    groups = {name: own for name, own in {**groups, "all": mutants}.items() if own}
    figures = Figures(__file__)
    for name, own in groups.items():
        print(line(name, own))
        by = Counter(one.found or "nothing" for one in own)
        for what, number in by.items():
            figures.add(f"{name}/{what}", number, "mutants")
        number = by.total() - by["equal"]
        if number:
            limits = interval(number - by["nothing"], number)
            for limit, value in zip(("from", "to"), limits, strict=True):
                figures.add(f"{name}/{limit}", round(100 * value), "%")
    times = [one.seconds for one in mutants if one.found in ("conform", "simulation")]
    print(f"CPU seconds until one was found: median {median(times or [0]):.1f}, most {max(times)}")
    figures.add("all/time to the first failure, median", median(times or [0]), "s")
    how = {name: getattr(options, name) for name in ("seed", "cases", "mutants", "tests")}
    figures.write(
        options.json, {**how, "survivors": [asdict(one) for one in mutants if not one.found]}
    )


if __name__ == "__main__":
    main()
