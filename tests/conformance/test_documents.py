"""The document's toy engine is run, and what the document says of it is what is found."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.report.showing import failure_text
from wallaroo_conformance.search.budget import Budget

from wallaroo.engine import Engine

TEXT = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")


def test_the_toy_engine_is_what_the_document_says() -> None:
    code = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[0]
    names: dict[str, Any] = {"__name__": "toy_engine"}
    exec(code, names)
    toy = names["ToyEngine"]()
    assert isinstance(toy, Engine)
    report = check_engine(toy, Check(Budget(1_000), counterexamples=None))
    told = re.findall(r"\*\*([a-z]+-\d)\*\*", TEXT)
    assert len(told) > 5
    assert set(told) <= {rule for failure in report.failures for rule in failure.rules[:3]}
    shown = re.findall(r"```text\n(BROKEN.*?)\n```", TEXT, re.DOTALL)
    assert len(shown) == 1
    assert shown[0] in [failure_text(failure, "toy", width=72) for failure in report.failures]
    assert [failure.may_be_same for failure in report.failures] == [
        number > 0 for number in range(len(report.failures))
    ]
    assert report.rules["compute-2"] == "unsupported"
    assert report.rules["build-2"] == "kept"
    assert all(failure.case and len(failure.case.inputs) <= 3 for failure in report.failures)
