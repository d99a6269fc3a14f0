"""A pytest plugin that checks an engine, one test per rule.

``pytest -p wallaroo_conformance.plugin --wallaroo-engine=NAME``: it is loaded only where ``-p``
names it, on the command line or in the ``addopts`` of a repository's own configuration. Files and
folders that are named too run beside the rules: ``pytest tests --wallaroo-engine=NAME``.

The cases are run once, whatever the number of pytest-xdist workers: the first worker that needs
them runs them all, and the others wait for what it found.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from wallaroo_conformance.judge.results import Report

_PROFILES = ("ci", "dev", "nightly")
_SUITE = Path(__file__).parent / "suite" / "test_rules.py"
_PATIENCE = 3_600.0  # seconds that a worker waits for the one that runs the cases


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("wallaroo conformance")
    group.addoption("--wallaroo-engine", metavar="NAME", help="check this engine, rule by rule")
    group.addoption(
        "--wallaroo-profile", choices=_PROFILES, default="dev", help="how much to do (dev)"
    )
    group.addoption("--wallaroo-seed", type=int, default=0, metavar="S", help="of the generation")
    group.addoption("--wallaroo-cases", type=int, metavar="N", help="generate this many cases")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Run the suite, beside the files that are named on the command line."""
    if not config.getoption("wallaroo_engine"):
        return
    named = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
    if not any(map(_is_suite, named)):  # with xdist, a worker gets it by name
        config.args = [*named, str(_SUITE)]


def _is_suite(argument: str) -> bool:
    return Path(argument.partition("::")[0]).resolve() == _SUITE.resolve()


@pytest.fixture(scope="session")
def wallaroo_findings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What the check found: laws, and by rule what is shown of its failures."""
    config = request.config
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return _findings(config)
    place = tmp_path_factory.getbasetemp().parent / "wallaroo-conformance"  # which all workers see
    file = place / "findings.json"
    try:
        place.mkdir(mode=0o700)
    except FileExistsError:
        return _awaited(file)
    text = json.dumps(_findings(config))
    part = file.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.rename(file)  # whole, or not there
    return dict(json.loads(text))


def _awaited(file: Path) -> dict[str, Any]:
    end = time.monotonic() + _PATIENCE
    while not file.exists():
        if time.monotonic() > end:
            pytest.fail(f"no worker wrote {file}: has the one that runs the cases died?")
        time.sleep(0.1)
    return dict(json.loads(file.read_text(encoding="utf-8")))


def _findings(config: pytest.Config) -> dict[str, Any]:
    # Only here: pytest loads plugins at every start, most of which check no engine.
    from wallaroo_conformance.checking import Check, check_engine
    from wallaroo_conformance.live import check_live
    from wallaroo_conformance.search.budget import chosen_budget

    profile, cases = config.getoption("wallaroo_profile"), config.getoption("wallaroo_cases")
    check = Check(
        budget=chosen_budget(profile, cases),
        seed=config.getoption("wallaroo_seed"),
        live=check_live,
        store=Path(config.rootpath) / "wallaroo-counterexamples",
    )
    report = check_engine(config.getoption("wallaroo_engine"), check)
    return {
        "problems": list(report.problems),
        "laws": [vars(law) for law in report.laws],
        "failures": _texts(report),
    }


def _texts(report: Report) -> dict[str, list[str]]:
    from wallaroo_conformance.report.showing import failure_text

    texts: dict[str, list[str]] = {}
    for failure in report.failures:
        text = failure_text(failure, report.engine).encode("utf-8", "replace").decode()
        texts.setdefault(failure.rule, []).append(text)
    return texts
