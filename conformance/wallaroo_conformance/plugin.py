"""A pytest plugin that checks an engine, one test per rule.

``pytest -p wallaroo_conformance.plugin --wallaroo-engine=NAME``: it is loaded only where ``-p``
names it, on the command line or in the ``addopts`` of a repository's own configuration. Files and
folders that are named too run beside the rules: ``pytest tests --wallaroo-engine=NAME``.

The cases are run once, whatever the number of pytest-xdist workers: the tests of the rules are one
group, which one worker runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from wallaroo_conformance.judge.results import Report

_PROFILES = ("ci", "dev", "nightly")
_SUITE = Path(__file__).parent / "suite" / "test_rules.py"


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
    config.addinivalue_line("markers", "xdist_group(name): tests that one worker runs")
    if config.getoption("numprocesses", None):  # with pytest-xdist, in the process that leads
        config.option.dist = "loadgroup"
    config.option.loadgroup = True  # in its workers, which do not learn the other
    named = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
    if not any(map(_is_suite, named)):  # a worker gets it by name
        config.args = [*named, str(_SUITE)]


def _is_suite(argument: str) -> bool:
    return Path(argument.partition("::")[0]).resolve() == _SUITE.resolve()


@pytest.fixture(scope="session")
def wallaroo_report(request: pytest.FixtureRequest) -> Report:
    """What the check found."""
    # Only here: pytest loads plugins at every start, most of which check no engine.
    from wallaroo_conformance.checking import Check, check_engine
    from wallaroo_conformance.live import check_live
    from wallaroo_conformance.search.budget import chosen_budget

    config = request.config
    profile, cases = config.getoption("wallaroo_profile"), config.getoption("wallaroo_cases")
    check = Check(
        budget=chosen_budget(profile, cases),
        seed=config.getoption("wallaroo_seed"),
        live=check_live,
        store=Path(config.rootpath) / "wallaroo-counterexamples",
    )
    return check_engine(config.getoption("wallaroo_engine"), check)
