"""Reports that several tests look at: of an engine without a fault, and of one with a fault."""

from __future__ import annotations

from dataclasses import replace

import pytest
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.judge.results import Report
from wallaroo_conformance.search.budget import Budget
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Case
from wallaroo.trace import Trace


class NoState(ReferenceEngine):
    """Its traces have no final entities."""

    name = "no state"

    def run(self, case: Case) -> Trace:
        return replace(super().run(case), entities=())


@pytest.fixture(scope="session")
def no_state() -> ReferenceEngine:
    return NoState()


@pytest.fixture(scope="session")
def kept() -> Report:
    return check_engine("reference", Check(Budget(300)))


@pytest.fixture(scope="session")
def broken(no_state: ReferenceEngine, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return check_engine(no_state, Check(Budget(100), store=tmp_path_factory.mktemp("found")))
