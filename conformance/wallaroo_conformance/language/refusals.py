"""Mistakes that must be refused when an application is built (build-1), and their errors.

These hold for the language, not for an engine: they are checked once, without one.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import wallaroo
from wallaroo.errors import WallarooParameterError
from wallaroo_conformance.cases.operators import ENCODERS, STEPS
from wallaroo_conformance.cases.operators.decoding import text
from wallaroo_conformance.cases.operators.encoding import line
from wallaroo_conformance.cases.operators.routing import by_text
from wallaroo_conformance.cases.operators.states import Notebook, Stocked
from wallaroo_conformance.judge.law import Law
from wallaroo_conformance.judge.results import Failure, LawResult, Status, fits
from wallaroo_conformance.language.pipelines import BUILT, PIPELINE_SLIPS, all_built
from wallaroo_conformance.language.refusal import Refusal

REFUSED = Law(
    "build-1",
    "refused",
    "a mistake is refused by an error that says where, and what to write instead",
)
AGREEING = Law("state-8", "agreeing", "builders and sets of keys that agree are not refused")
LISTED = Law("route-3", "listed", "keys may be listed in any sequence, and an empty one lists none")

LANGUAGE_LAWS: tuple[Law, ...] = (
    *(REFUSED, LISTED, AGREEING),
    *(BUILT, *[law for law, _ in PIPELINE_SLIPS]),
)
"""The laws of the language, which do not depend on an engine."""

Builder = wallaroo.ApplicationBuilder


def _source(port: int = 0) -> wallaroo.TCPSourceConfig:
    return wallaroo.TCPSourceConfig("127.0.0.1", port, text)


def _sink() -> wallaroo.TCPSinkConfig:
    return wallaroo.TCPSinkConfig("127.0.0.1", 1, line)


def _begun() -> Builder:
    return Builder("shop").new_pipeline("orders", _source())


def _keyed(builder: Builder, **options: Any) -> Builder:
    arguments = {"step": STEPS["count"], "state": Notebook, "keys": None, **options}
    return builder.to_state_partition(
        arguments["step"], arguments["state"], "books", by_text, arguments["keys"]
    )


def _shared(first: Any, second: Any) -> Any:
    begun = first(_begun()).done().new_pipeline("returns", _source())
    return second(begun).done().build()


_WHERE = ("'shop'", "'orders'")

REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "a step before any pipeline",
        lambda: Builder("shop").to(STEPS["identity"]),
        ("'shop'", "identity", "new_pipeline"),
    ),
    Refusal(
        "a step after the end",
        lambda: _begun().done().to(STEPS["identity"]),
        (*_WHERE, "identity", "ended"),
    ),
    Refusal(
        "a pipeline with neither sink nor done()", lambda: _begun().build(), (*_WHERE, ".done()")
    ),
    Refusal(
        "two pipelines of one name",
        lambda: _begun().done().new_pipeline("orders", _source()),
        _WHERE,
    ),
    Refusal(
        "two sources on one address",
        lambda: (
            Builder("shop")
            .new_pipeline("orders", _source(7010))
            .done()
            .new_pipeline("returns", _source(7010))
        ),
        ("'shop'", "'returns'", "'orders'", "7010"),
    ),
    Refusal(
        "a state computation given to to",
        lambda: _begun().to(STEPS["count"]),
        (*_WHERE, "count", "to_stateful"),
    ),
    Refusal(
        "a computation given to to_stateful",
        lambda: _begun().to_stateful(STEPS["identity"], Notebook, "books"),
        (*_WHERE, "identity", ".to("),
    ),
    Refusal(
        "an encoder given to to", lambda: _begun().to(ENCODERS["line"]), (*_WHERE, "line")
    ),
    Refusal(
        "a plain function given to to",
        lambda: _begun().to(lambda message: message),  # type: ignore[arg-type]  # to be refused
        (*_WHERE, "@wallaroo.computation"),
    ),
    Refusal(
        "a builder's class where an instance is meant",
        lambda: _begun().to_stateful(STEPS["count"], Stocked, "books"),
        (*_WHERE, "Stocked()"),
    ),
    Refusal(
        "to_stateful with the computation alone",
        lambda: _begun().to_stateful(STEPS["count"]),
        (*_WHERE, "to_stateful(count, "),
    ),
    Refusal("repeated keys", lambda: _keyed(_begun(), keys=["a", "a"]), (*_WHERE, "'a'")),
    Refusal(
        "repeated keys, at a step whose function has another name",
        lambda: _keyed(_begun(), keys=["a", "a"], step=STEPS["wrong_items_then_count"]),
        (*_WHERE, "'wrong items, then count'", "'a'"),
    ),
    Refusal("keys in a text", lambda: _keyed(_begun(), keys="ab"), (*_WHERE, "list")),
    Refusal("keys in a set", lambda: _keyed(_begun(), keys={"a", "b"}), (*_WHERE, "list")),
    Refusal("keys without an end", lambda: _keyed(_begun(), keys=count()), (*_WHERE, "list")),
    Refusal("a key that is not a key", lambda: _keyed(_begun(), keys=[True]), (*_WHERE, "bool")),
    Refusal(
        "a shared partition with other builders",
        lambda: _shared(_keyed, lambda begun: _keyed(begun, state=Stocked(2))),
        ("'shop'", "'returns'", "'books'", "'orders'"),
    ),
    Refusal(
        "a shared partition with unequal builders",
        lambda: _shared(
            lambda begun: _keyed(begun, state=Stocked(1)),
            lambda begun: _keyed(begun, state=Stocked(2)),
        ),
        ("'shop'", "'returns'", "'books'", "'orders'"),
    ),
    Refusal(
        "a shared partition with other keys",
        lambda: _shared(
            lambda begun: _keyed(begun, keys=["a"]), lambda begun: _keyed(begun, keys=["b"])
        ),
        ("'shop'", "'returns'", "'books'", "'orders'"),
    ),
    Refusal(
        "a shared partition, 64-bit here and not there",
        lambda: _shared(
            _keyed,
            lambda begun: begun.to_state_partition_u64(
                STEPS["count"], Notebook, "books", by_text
            ),
        ),
        ("'shop'", "'returns'", "'books'", "'orders'"),
    ),
)  # fmt: skip


def agreeing_partitions() -> str | None:
    """Return what is wrong where pipelines describe one partition in different ways (state-8)."""
    try:
        _shared(
            lambda begun: _keyed(begun, state=Stocked(2), keys=["a", "b"]),
            lambda begun: _keyed(begun, state=Stocked(2), keys=["b", "a"]),
        )
    except WallarooParameterError as error:
        return f"builders of equal attributes and equal sets of keys are refused: {error}"
    return None


def listed_keys() -> str | None:
    """Return what is wrong with how keys may be listed (route-3)."""
    try:
        for keys in (["a"], ("a",), range(1)):
            listed = _keyed(_begun(), keys=keys).done().build().partition["books"].keys
            if listed != tuple(keys):
                return f"{keys!r} lists {listed!r}"
        nothing: tuple[Any, ...] = (None, [], (), range(0))
        for none in nothing:
            listed = _keyed(_begun(), keys=none).done().build().partition["books"].keys
            if listed is not None:
                return f"{none!r} lists {listed!r}, not any key"
    except WallarooParameterError as error:
        return f"keys in a sequence are refused: {error}"
    return None


def check_language(rules: str) -> tuple[list[LawResult], list[Failure]]:
    """Check build-1, and other rules about the two forms of the API."""
    refused = {refusal.name: refusal.problem() for refusal in REFUSALS}
    laws: list[LawResult] = []
    failures: list[Failure] = []
    for law, found in (
        (REFUSED, refused),
        (LISTED, {"listed": listed_keys()}),
        (AGREEING, {"agreeing": agreeing_partitions()}),
        (BUILT, {"built": all_built()}),
        *[(law, {one.name: one.problem() for one in slips}) for law, slips in PIPELINE_SLIPS],
    ):
        if not fits(law.rule, rules):
            continue
        problems = [f"{slip}: {problem}" for slip, problem in found.items() if problem]
        kept = len(found) - len(problems)
        status: Status = "broken" if problems else "kept"
        laws.append(LawResult(law.rule, law.name, law.says, status, kept))
        failures += [Failure((law,), None, text=text) for text in problems]
    return laws, failures
