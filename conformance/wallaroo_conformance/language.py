"""What holds for the language itself, whichever engine runs an application.

For each law there is a mistake that must be refused when an application is built, with the words
that the error must contain, or something that must be built. All other ways to make mistakes are in
``tests/wallaroo/building``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any, TypeAlias

import wallaroo
from wallaroo.errors import WallarooParameterError
from wallaroo.operations import Branch
from wallaroo_conformance.cases.operators import STEPS
from wallaroo_conformance.cases.operators.decoding import text
from wallaroo_conformance.cases.operators.encoding import line
from wallaroo_conformance.cases.operators.routing import by_text
from wallaroo_conformance.cases.operators.states import Notebook, Stocked
from wallaroo_conformance.cases.operators.triples import ByLetter, Same
from wallaroo_conformance.judge.law import Law, LawResult, Status
from wallaroo_conformance.judge.results import Failure, fits

Mistake: TypeAlias = tuple[Callable[[], Any], str]
"""What makes a mistake, and the words its error must contain, with blanks between them:
application, pipeline, step, and what to write instead."""


def _source() -> wallaroo.TCPSourceConfig:
    return wallaroo.TCPSourceConfig("127.0.0.1", 0, text)


def _sink() -> wallaroo.TCPSinkConfig:
    return wallaroo.TCPSinkConfig("127.0.0.1", 1, line)


def _begun() -> wallaroo.ApplicationBuilder:
    return wallaroo.ApplicationBuilder("shop").new_pipeline("orders", _source())


def _keyed(builder: Any, keys: Any, step: str = "count", state: Any = Notebook) -> Any:
    return builder.to_state_partition(STEPS[step], state, "books", by_text, keys).done()


def _listed(keys: Any) -> Any:
    return _keyed(_begun(), keys).build().partition["books"].keys


def _shared() -> Any:
    """Describe one state partition in two ways that agree."""
    begun = _keyed(_begun(), ["a", "b"], state=Stocked(2)).new_pipeline("returns", _source())
    return _keyed(begun, ["b", "a"], state=Stocked(2)).build()


def _stream(name: str = "orders") -> Any:
    return wallaroo.source(name, _source())


def _branches() -> Any:
    """Return the steps that are built of a pipeline used three times, of which two are given."""
    begun = _stream()
    ends = [begun.to(Same(name)).to_sink(_sink()) for name in ("one", "third", "other")]
    built = wallaroo.build_application("shop", ends[0], ends[2])
    return [step.name for step in built.steps if not step.name.startswith("branch")]


_USES: Mapping[str, Callable[[Any], Any]] = {
    "done": lambda pipeline: pipeline.done(),
    "sent": lambda pipeline: pipeline.to_sink(_sink()),
    "computed": lambda pipeline: pipeline.to(Same("computed")).done(),
    "keyed": lambda pipeline: pipeline.collect().done(),
    "merged with itself": lambda pipeline: pipeline.merge(pipeline).done(),
}


_USED_TOGETHER = (*combinations(_USES, 1), *permutations(_USES, 2))


def _numbers() -> dict[str, list[int]]:
    """Return the numbers of the branches of a pipeline that is used in two ways, or in one."""
    found = {}
    for uses in _USED_TOGETHER:
        begun = _stream()
        steps = wallaroo.build_application("shop", *[_USES[use](begun) for use in uses]).steps
        branches = [step.operation for step in steps if isinstance(step.operation, Branch)]
        found[" and ".join(uses)] = sorted([branch.number for branch in branches])
    return found


def _all_numbers() -> dict[str, list[int]]:
    """Return what the numbers must be: from 0 on, if there are several uses."""
    found = {}
    for uses in _USED_TOGETHER:
        several = len(uses) + ("merged with itself" in uses)
        found[" and ".join(uses)] = [*range(several)] if several > 1 else []
    return found


_REFUSALS: Mapping[Law, Sequence[Mistake]] = {
    Law(
        "build-1",
        "refused",
        "a mistake is refused by an error that says where, and what to write instead",
    ): (
        (lambda: _begun().build(), "'shop' 'orders' .done()"),
        (lambda: _begun().to(STEPS["count"]), "'shop' 'orders' count to_stateful"),
        (
            lambda: _keyed(_begun(), ["a", "a"], "wrong_items_then_count"),
            "'shop' 'orders' 'wrong items, then count' 'a'",
        ),
    ),
    Law("graph-5", "named", "two steps of one name are refused"): (
        (
            lambda: wallaroo.build_application(
                "shop", _stream().to(Same("price")).to(Same("price")).done()
            ),
            "'shop' 'orders' 'price' name=",
        ),
    ),
    Law("graph-3", "sides", "a merge of a side with a key and one without is refused"): (
        (
            lambda: _stream().key_by(ByLetter("by_letter")).merge(_stream("returns")),
            "'returns' key_by",
        ),
    ),
    Law("key-3", "forms", "a state computation of the other form of the API is refused"): (
        (lambda: _stream().to(STEPS["count"]), "'orders' count state="),
    ),
    Law("window-1", "refused", "impossible windows are refused"): (
        (lambda: wallaroo.range_windows(0), "range"),
        (lambda: wallaroo.range_windows(9).with_delay(1).with_delay(2), "with_delay twice"),
    ),
    Law("kafka-17", "refused", "options of the client that break a rule are refused"): (
        (
            lambda: wallaroo.KafkaSinkConfig(
                "orders", "127.0.0.1", line, kafka={"partitioner": "random"}
            ),
            "KafkaSinkConfig partitioner kafka-13 partition",
        ),
    ),
}
_BUILT: Mapping[Law, tuple[Callable[[], Any], Any]] = {
    Law("route-3", "listed", "keys may be listed in any sequence, and an empty one lists none"): (
        lambda: [*map(_listed, (["a"], range(1), [], None))],
        [("a",), (0,), None, None],
    ),
    Law("state-8", "agreeing", "builders and sets of keys that agree are not refused"): (
        lambda: [partition.name for partition in _shared().partitions],
        ["books"],
    ),
    Law(
        "graph-1",
        "built",
        "everything that leads to one of the given pipelines is built, and nothing else",
    ): (_branches, ["one", "other"]),
    Law(
        "graph-2",
        "numbered",
        "each use of a pipeline has a number, and so has each side of a merge",
    ): (_numbers, _all_numbers()),
}
"""What is built, and what it must be."""

LANGUAGE_LAWS = (*_REFUSALS, *_BUILT)
"""The laws of the language, which do not depend on an engine."""


def _refused(build: Callable[[], Any], words: str) -> str | None:
    """Return what is wrong with how a mistake is refused, or `None`."""
    try:
        built = build()
    except WallarooParameterError as error:
        missing = [word for word in words.split() if word not in str(error)]
        return f"the error does not say {missing}: {error}" if missing else None
    except Exception as error:  # noqa: BLE001 - anything else is not what was promised
        return f"{type(error).__name__} instead of WallarooParameterError: {error}"
    return f"a mistake is not refused, which is about {words}: {built}"


def _is_built(build: Callable[[], Any], wanted: Any) -> str | None:
    """Return what is wrong with what is built, or `None`."""
    try:
        built = build()
    except WallarooParameterError as error:
        return f"what is right is refused: {error}"
    return None if built == wanted else f"there is {built}, not {wanted}"


def check_language(rules: str) -> tuple[list[LawResult], list[Failure]]:
    """Check build-1, and other rules about the two forms of the API."""
    laws: list[LawResult] = []
    failures: list[Failure] = []
    for law in LANGUAGE_LAWS:
        if not fits(law.rule, rules):
            continue
        if law in _BUILT:
            answers = [_is_built(*_BUILT[law])]
        else:
            answers = [_refused(*mistake) for mistake in _REFUSALS[law]]
        problems = [problem for problem in answers if problem]
        status: Status = "broken" if problems else "kept"
        laws.append(law.result(status, len(answers) - len(problems)))
        failures += [Failure((law,), None, text=problem) for problem in problems]
    return laws, failures
