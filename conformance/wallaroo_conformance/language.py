"""What holds for the language itself, whichever engine runs an application.

Mistakes that must be refused when an application is built, with the words that each error must
contain; and a few applications that must be built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeAlias

import wallaroo
from wallaroo.components import OwnState
from wallaroo.errors import WallarooParameterError
from wallaroo_conformance.cases.operators import ENCODERS, STEPS
from wallaroo_conformance.cases.operators.aggregations import Number
from wallaroo_conformance.cases.operators.decoding import text
from wallaroo_conformance.cases.operators.encoding import line
from wallaroo_conformance.cases.operators.routing import by_text
from wallaroo_conformance.cases.operators.states import Notebook, Stocked
from wallaroo_conformance.cases.operators.triples import ByLetter, Remember, Same
from wallaroo_conformance.judge.law import Law, LawResult, Status
from wallaroo_conformance.judge.results import Failure, fits

_REFUSED = Law(
    "build-1",
    "refused",
    "a mistake is refused by an error that says where, and what to write instead",
)
_LISTED = Law(
    "route-3", "listed", "keys may be listed in any sequence, and an empty one lists none"
)
_AGREEING = Law("state-8", "agreeing", "builders and sets of keys that agree are not refused")
_BUILT = Law(
    "graph-1",
    "built",
    "everything that leads to one of the given pipelines is built, and nothing else",
)
_NAMED = Law("graph-5", "named", "two steps of one name are refused")
_SIDES = Law("graph-3", "sides", "a merge of a side with a key and one without is refused")
_FORMS = Law("key-3", "forms", "a state computation of the other form of the API is refused")
_WINDOWS = Law("window-1", "refused", "impossible windows are refused")
_CLIENT = Law("kafka-17", "refused", "options of the client that break a rule are refused")

LANGUAGE_LAWS = (_REFUSED, _LISTED, _AGREEING, _BUILT, _NAMED, _SIDES, _FORMS, _WINDOWS, _CLIENT)
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


def _stream(name: str = "orders") -> Any:
    return wallaroo.source(name, _source())


def _range(size: Any = 10) -> Any:
    return wallaroo.range_windows(size)


def _of_pipelines() -> Any:
    return Remember("remember", OwnState(Notebook, "books", None))


Mistake: TypeAlias = tuple[Callable[[], Any], str]
"""What makes a mistake, and the words its error must contain, with blanks between them:
application, pipeline, step, and what to write instead."""

_WHERE = "'shop' 'orders'"
_SHARED = "'shop' 'returns' 'books' 'orders'"

_REFUSALS: Mapping[Law, Mapping[str, Mistake]] = {
    _REFUSED: {
        "a step before any pipeline": (
            lambda: Builder("shop").to(STEPS["identity"]),
            "'shop' identity new_pipeline",
        ),
        "a step after the end": (
            lambda: _begun().done().to(STEPS["identity"]),
            f"{_WHERE} identity ended",
        ),
        "a pipeline with neither sink nor done()": (lambda: _begun().build(), f"{_WHERE} .done()"),
        "two pipelines of one name": (
            lambda: _begun().done().new_pipeline("orders", _source()),
            _WHERE,
        ),
        "two sources on one address": (
            lambda: (
                Builder("shop")
                .new_pipeline("orders", _source(7010))
                .done()
                .new_pipeline("returns", _source(7010))
            ),
            "'shop' 'returns' 'orders' 7010",
        ),
        "a state computation given to to": (
            lambda: _begun().to(STEPS["count"]),
            f"{_WHERE} count to_stateful",
        ),
        "a computation given to to_stateful": (
            lambda: _begun().to_stateful(STEPS["identity"], Notebook, "books"),
            f"{_WHERE} identity .to(",
        ),
        "an encoder given to to": (lambda: _begun().to(ENCODERS["line"]), f"{_WHERE} line"),
        "a plain function given to to": (
            lambda: _begun().to(lambda message: message),  # type: ignore[arg-type]  # to be refused
            f"{_WHERE} @wallaroo.computation",
        ),
        "a builder's class where an instance is meant": (
            lambda: _begun().to_stateful(STEPS["count"], Stocked, "books"),
            f"{_WHERE} Stocked()",
        ),
        "to_stateful with the computation alone": (
            lambda: _begun().to_stateful(STEPS["count"]),
            f"{_WHERE} to_stateful(count,",
        ),
        "repeated keys": (lambda: _keyed(_begun(), keys=["a", "a"]), f"{_WHERE} 'a'"),
        "repeated keys, at a step whose function has another name": (
            lambda: _keyed(_begun(), keys=["a", "a"], step=STEPS["wrong_items_then_count"]),
            f"{_WHERE} 'wrong items, then count' 'a'",
        ),
        "keys in a text": (lambda: _keyed(_begun(), keys="ab"), f"{_WHERE} list"),
        "keys in a set": (lambda: _keyed(_begun(), keys={"a", "b"}), f"{_WHERE} list"),
        "keys without an end": (lambda: _keyed(_begun(), keys=count()), f"{_WHERE} list"),
        "a key that is not a key": (lambda: _keyed(_begun(), keys=[True]), f"{_WHERE} bool"),
        "a shared partition with other builders": (
            lambda: _shared(_keyed, lambda begun: _keyed(begun, state=Stocked(2))),
            _SHARED,
        ),
        "a shared partition with unequal builders": (
            lambda: _shared(
                lambda begun: _keyed(begun, state=Stocked(1)),
                lambda begun: _keyed(begun, state=Stocked(2)),
            ),
            _SHARED,
        ),
        "a shared partition with other keys": (
            lambda: _shared(
                lambda begun: _keyed(begun, keys=["a"]), lambda begun: _keyed(begun, keys=["b"])
            ),
            _SHARED,
        ),
        "a shared partition, 64-bit here and not there": (
            lambda: _shared(
                _keyed,
                lambda begun: begun.to_state_partition_u64(
                    STEPS["count"], Notebook, "books", by_text
                ),
            ),
            _SHARED,
        ),
    },
    _NAMED: {
        "two steps of one name": (
            lambda: wallaroo.build_application(
                "shop", _stream().to(Same("price")).to(Same("price")).done()
            ),
            "'shop' 'orders' 'price' name=",
        ),
    },
    _SIDES: {
        "one side with a key": (
            lambda: _stream().key_by(ByLetter("by_letter")).merge(_stream("returns")),
            "'returns' key_by",
        ),
    },
    _FORMS: {
        "a state computation of the builder in a pipeline": (
            lambda: _stream().to(STEPS["count"]),
            "'orders' count state=",
        ),
        "a state computation of pipelines in the builder": (
            lambda: _begun().to_stateful(_of_pipelines(), Notebook, "books"),
            "'orders' remember",
        ),
    },
    _CLIENT: {
        "an option of the client that breaks a rule": (
            lambda: wallaroo.KafkaSourceConfig(
                "orders", "127.0.0.1", text, kafka={"auto.offset.reset": "latest"}
            ),
            "KafkaSourceConfig auto.offset.reset kafka-4 start=",
        ),
        "the client's own partitioner": (
            lambda: wallaroo.KafkaSinkConfig(
                "orders", "127.0.0.1", line, kafka={"partitioner": "random"}
            ),
            "KafkaSinkConfig partitioner kafka-13 partition",
        ),
    },
    _WINDOWS: {
        "a range of nothing": (lambda: _range(0), "range"),
        "a negative duration": (lambda: wallaroo.seconds(-1), "-1"),
        "a slide beyond the range": (lambda: _range().with_slide(11), "11 10"),
        "too many panes": (lambda: _range(10_007).with_slide(10_006), "panes 10006"),
        "a delay given twice": (lambda: _range().with_delay(1).with_delay(2), "with_delay twice"),
        "sliding windows without combine": (
            lambda: _range().with_slide(5).over(Number("count")),
            "combine",
        ),
        "a count of nothing": (lambda: wallaroo.count_windows(0), "count 0"),
        "sessions with an oldest window": (
            lambda: wallaroo.session_windows(5).with_late_data_policy("place-in-oldest-window"),
            "oldest",
        ),
        "an aggregation without a window": (
            lambda: _stream().to(Number("count")),
            "'orders' over(",
        ),
    },
}


def _problem(name: str, build: Callable[[], Any], words: str) -> str | None:
    """Return what is wrong with how a mistake is refused, or `None`."""
    try:
        build()
    except WallarooParameterError as error:
        missing = [word for word in words.split() if word not in str(error)]
        return f"{name}: the error does not say {missing}: {error}" if missing else None
    except Exception as error:  # noqa: BLE001 - anything else is not what was promised
        kind = type(error).__name__
        return f"{name}: {kind} instead of WallarooParameterError: {error}"
    return f"{name}: it is not refused"


def _agreeing_partitions() -> str | None:
    """Return what is wrong where pipelines describe one partition in different ways (state-8)."""
    try:
        _shared(
            lambda begun: _keyed(begun, state=Stocked(2), keys=["a", "b"]),
            lambda begun: _keyed(begun, state=Stocked(2), keys=["b", "a"]),
        )
    except WallarooParameterError as error:
        return f"builders of equal attributes and equal sets of keys are refused: {error}"
    return None


def _listed_keys() -> str | None:
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


def _all_built() -> str | None:
    """Return what is wrong with the application built from two uses of a pipeline."""
    begun = _stream()
    one, other = begun.to(Same("one")), begun.to(Same("other"))
    begun.to(Same("third"))
    built = wallaroo.build_application("shop", one.to_sink(_sink()), other.to_sink(_sink()))
    names = [step.name for step in built.steps if not step.name.startswith("branch")]
    if names != ["one", "other"] or len(built.sinks) != len(names):
        return f"of two branches with a sink each, the steps {names} were built"
    return None


_BUILDS: Mapping[Law, Callable[[], str | None]] = {
    _LISTED: _listed_keys,
    _AGREEING: _agreeing_partitions,
    _BUILT: _all_built,
}


def check_language(rules: str) -> tuple[list[LawResult], list[Failure]]:
    """Check build-1, and other rules about the two forms of the API."""
    laws: list[LawResult] = []
    failures: list[Failure] = []
    for law in LANGUAGE_LAWS:
        if not fits(law.rule, rules):
            continue
        if law in _BUILDS:
            answers = [_BUILDS[law]()]
        else:
            answers = [_problem(name, *mistake) for name, mistake in _REFUSALS[law].items()]
        problems = [problem for problem in answers if problem]
        status: Status = "broken" if problems else "kept"
        kept = len(answers) - len(problems)
        laws.append(law.result(status, kept))
        failures += [Failure((law,), None, text=problem) for problem in problems]
    return laws, failures
