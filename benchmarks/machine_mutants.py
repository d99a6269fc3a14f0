"""How many faults that nobody chose does conformance find? Mutants made by machine, drawn by seed.

cosmic-ray's operators change one place of a function of a module that decides what comes out. Of
all such mutants some are drawn. Each is run under the stored cases and the search of `wallaroo
conform`, and where these are silent under the tests that are given. Prints the share that was
found, with its interval of confidence (Wilson, 95 %), and the survivors: each is equal in meaning,
or a hole.

    pip install --group mutants && python benchmarks/machine_mutants.py [--mutants N] [--seed N]

Mutants of the interpreter are judged by the definition, all others by the interpreter. Modules of
what is not compared (findings, figures) are left out, and so are changes that only a type checker
sees.
"""

from __future__ import annotations

import argparse
import ast
import math
import multiprocessing
import os
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, replace
from difflib import unified_diff
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from facts import Figures, add_json_option, machine_facts
from wallaroo_conformance.cases.counterexamples import STORED, stored
from wallaroo_conformance.judge.oracle import REFERENCE, definition_oracle, reference_oracle
from wallaroo_conformance.search.budget import Budget, Check
from wallaroo_conformance.search.running import HarnessError
from wallaroo_conformance.search.search import Search
from wallaroo_mutants.catalogue import MutantEngine
from wallaroo_mutants.patching import NOTHING, Change, Patch, PatchError

from wallaroo.engine import Capabilities, Case, Engine, load_engine
from wallaroo.trace import Trace

_ISOLATED = "wallaroo_reference.isolated"
_COMPILED = "wallaroo_reference.compiled"
MODULES = {
    REFERENCE: [
        *(f"{_ISOLATED}.{name}" for name in ("copies", "counts", "interpreter", "judging")),
        *(f"{_ISOLATED}.{name}" for name in ("places", "ranges", "sessions", "walk")),
        *(f"{_ISOLATED}.{name}" for name in ("watermarks", "windows")),
    ],
    "compiled": [
        *(f"{_COMPILED}.{name}" for name in ("clocks", "codegen", "codegen_text")),
        *(f"{_COMPILED}.{name}" for name in ("codegen_windows", "entities", "failing")),
        *(f"{_COMPILED}.{name}" for name in ("keyed_windows", "machine", "ranges", "windows")),
        *("wallaroo.judging", "wallaroo.copying"),
        *("wallaroo.windowing.kinds", "wallaroo.windowing.watermarks"),
    ],
}
"""By engine, the modules that decide what comes out of it."""

NEEDING_ARGUMENTS = ("core/VariableReplacer", "core/VariableInserter")
_CPU_SECONDS = 90  # of a mutant; one that takes longer never ends
_BYTES = 6 << 30
_Z = 1.96  # of 95 %


@dataclass(frozen=True)
class Drawn:
    """A mutant, and what came of it.

    Args:
        module: the module that is changed.
        function: the function, as a path in the module.
        operator: cosmic-ray's operator.
        diff: what is changed.
        found: by what: ``conform``, ``tests``, or by nothing (empty).
        cases: cases that were run.
        seconds: CPU time of the search.
    """

    module: str
    function: str
    operator: str
    diff: str
    found: str = ""
    cases: int = 0
    seconds: float = 0.0


# -- mutants ---------------------------------------------------------------------------------------


def places(module: str) -> list[tuple[str, str, int]]:
    """Return (module, operator, occurrence) of each mutant that cosmic-ray can make of a module."""
    nodes = list(ast_nodes(get_ast(_source(module))))
    found = []
    for name in operator_names():
        if name not in NEEDING_ARGUMENTS:
            operator = get_operator(name)()
            number = sum(len(list(operator.mutation_positions(node))) for node in nodes)
            found += [(module, name, occurrence) for occurrence in range(number)]
    return found


def made(module: str, operator: str, occurrence: int) -> tuple[Drawn, Patch] | None:
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
    lines = unified_diff(was.splitlines(), now.splitlines(), lineterm="", n=1)
    diff = "\n".join([line for line in lines if not line.startswith(("---", "+++", "@@"))])
    return Drawn(module, name, operator.removeprefix("core/"), diff), patch


def _source(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text("utf-8")


def _functions(source: str) -> dict[str, Any]:
    """Return the functions of a module and of its classes by their paths."""
    found: dict[str, Any] = {}

    def look(body: Sequence[Any], path: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                look(node.body, f"{path}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                found[f"{path}{node.name}"] = node

    look(ast.parse(source).body, "")
    return found


def _meaning(function: Any) -> str:
    """Return what runs of a function: neither annotations nor decorators."""
    if function is None:
        return ""
    node = ast.parse(ast.unparse(function)).body[0]
    for each in ast.walk(node):
        for name in ("returns", "annotation", "type_comment"):
            if hasattr(each, name):
                setattr(each, name, ast.Constant(0) if isinstance(each, ast.AnnAssign) else None)
    node.decorator_list = []  # type: ignore[attr-defined]
    return ast.dump(node)


def _text(source: str, node: Any) -> str:
    return "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])


# -- runs ------------------------------------------------------------------------------------------


class _Right:
    """An engine that is right: it fills the oracle's memory, and runs nothing that is changed."""

    def __init__(self, name: str) -> None:
        self.name = name
        oracle = definition_oracle() if name == REFERENCE else reference_oracle()
        self._right = oracle.reference

    def check(self, application: Any) -> None:
        load_engine(self.name).check(application)

    def capabilities(self) -> Capabilities:
        return _claims(self.name)

    def run(self, case: Case) -> Trace:
        return self._right.run(replace(case, isolation="isolated"))

    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        return [self.run(case) for case in cases]


def _claims(engine: str) -> Capabilities:
    can = load_engine(engine).capabilities()
    if engine == REFERENCE:
        can = replace(can, isolation=frozenset({"isolated"}))
    return replace(can, live=False)


def _searched(engine: Engine, cases: int, seed: int) -> Search:
    check = Check(Budget(cases, top_up=0), seed, fail_fast=True)
    search = Search(engine, check)
    search.replay(one.case for one in stored(STORED))
    if not search.findings.failing:
        search.search()
    return search


def _found_by_conform(engine: str, patch: Patch, cases: int, seed: int) -> tuple[bool, int]:
    mutant = MutantEngine(engine, load_engine(engine), patch, _claims(engine))
    try:
        search = _searched(mutant, cases, seed)
    except HarnessError:
        return True, 0
    return bool(search.findings.failing or search.problems), search.runner.cases


def _found_by_tests(patch: Patch, tests: Sequence[str]) -> bool:
    """Run tests in this process, as what they start is not changed."""
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
        patch.in_place(),
    ):
        return pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]) != 0


def _tried(engine: str, drawn: Drawn, patch: Patch, options: argparse.Namespace) -> Drawn:
    """Try a mutant in a process of its own, which it may break."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def conform() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
        begun = time.process_time()
        found, cases = _found_by_conform(engine, patch, options.cases, options.seed)
        there.send((found, cases, time.process_time() - begun))

    def run_tests() -> None:
        there.send(_found_by_tests(patch, options.tests))

    def answer(target: Any) -> Any:
        process = context.Process(target=target)
        process.start()
        process.join()
        return here.recv() if here.poll() else None

    # One that is killed, or dies, is seen by everybody.
    found, cases, seconds = answer(conform) or (True, 0, float(_CPU_SECONDS))
    by = "conform" if found else ""
    if not found and options.tests and answer(run_tests) is not False:
        by = "tests"
    return replace(drawn, found=by, cases=cases, seconds=seconds)


def _all_tried(engine: str, options: argparse.Namespace, results: Any) -> None:
    """Try mutants of one engine; in a process of its own, which remembers what cases mean."""
    everything = [place for module in MODULES[engine] for place in places(module)]
    Random(options.seed).shuffle(everything)
    right: Any = _Right(engine)
    unchanged = _searched(right, options.cases, options.seed)
    assert not unchanged.findings.failing
    assert not unchanged.problems
    number = 0
    for place in everything:
        if number == options.mutants:
            break
        mutant = made(*place)
        if mutant is not None:
            number += 1
            results.put(_tried(engine, *mutant, options))
    results.put(len(everything))


def tried(engine: str, options: argparse.Namespace) -> Iterator[Drawn]:
    """Yield the mutants of one engine that were drawn, with what came of them."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=_all_tried, args=(engine, options, results))
    process.start()
    while isinstance(result := results.get(), Drawn):
        yield result
    process.join()


# -- figures ---------------------------------------------------------------------------------------


def interval(found: int, drawn: int) -> tuple[float, float]:
    """Return between which shares the true one lies (Wilson's interval, 95 %)."""
    share, more = found / drawn, _Z**2 / drawn
    middle = (share + more / 2) / (1 + more)
    half = _Z * math.sqrt(share * (1 - share) / drawn + more / drawn / 4) / (1 + more)
    return middle - half, middle + half


def line(name: str, mutants: Sequence[Drawn]) -> str:
    """Return the figures of some mutants as a line."""
    found = sum(one.found != "" for one in mutants)
    by = Counter(one.found or "nothing" for one in mutants)
    low, high = interval(found, len(mutants))
    told = ", ".join(f"{by[name]} by {name}" for name in ("conform", "tests", "nothing"))
    return f"{name:40} {found:3} of {len(mutants):3}  {low:4.0%} to {high:4.0%}  ({told})"


def main() -> None:
    """Draw, try and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=200, help="of each engine")
    parser.add_argument("--engine", choices=MODULES, action="append")
    parser.add_argument("--cases", type=int, default=8_500, help="most cases for each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="*", default=[], help="tried where conform is silent")
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    assert NOTHING.codes() == {}
    mutants: list[Drawn] = []
    for engine in options.engine or MODULES:
        for one in tried(engine, options):
            mutants.append(one)
            place = f"{one.module}:{one.function} {one.operator}"
            print(f"{one.found or 'SURVIVED':8} {place}", flush=True)
            if not one.found:
                print(one.diff, flush=True)
    for module in dict.fromkeys(one.module for one in mutants):
        print(line(module, [one for one in mutants if one.module == module]))
    print(line("all", mutants))
    figures = Figures(__file__)
    for name in ("all", *dict.fromkeys(one.module for one in mutants)):
        own = [one for one in mutants if name in ("all", one.module)]
        found = sum(one.found != "" for one in own)
        figures.add(f"{name}/drawn", len(own), "mutants")
        for by in ("conform", "tests"):
            figures.add(f"{name}/{by}", sum(one.found == by for one in own), "mutants")
        for limit, value in zip(("from", "to"), interval(found, len(own)), strict=True):
            figures.add(f"{name}/{limit}", round(100 * value), "%")
    how = {name: getattr(options, name) for name in ("seed", "cases", "tests")}
    figures.write(
        options.json, {**how, "survivors": [asdict(one) for one in mutants if not one.found]}
    )


if __name__ == "__main__":
    main()
