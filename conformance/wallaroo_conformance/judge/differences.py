"""How a trace differs from what it should be: the kinds of difference, and the first of each."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

from wallaroo.errors import UnsupportedTopology
from wallaroo.trace import Trace, canonical_json
from wallaroo.user_code.failure import describe_error

Kind: TypeAlias = Literal[
    "crash", "ended", "missing", "extra", "changed", "order", "letters", "letter fields",
    "lineage", "entities", "existence", "keys", "numbers", "windows", "late",
]  # fmt: skip
"""Of outputs: `missing`, `extra`, `changed` (neither more nor fewer), `order`. Of dead letters:
`letters` (others), `lineage` and `letter fields` (the same with other ones), `order`. Of entities:
`existence` (more or fewer), `keys` (as many, with other keys), `entities` (in another state),
`numbers`. `windows`: of open windows; `keys` if nothing but their keys differs. `late`: of the
numbers of late messages."""

KINDS: frozenset[Kind] = frozenset(get_args(Kind))

_FIELDS = ("key", "error_type", "payload", "source", "step", "sink", "pipeline")
"""A dead letter's fields, besides lineage and reason."""

_FRAMES = 8  # the innermost frames of a crash's traceback are kept


class CrashError(Exception):
    """An engine in another process has failed on a case.

    Args:
        error: what it did.
        report: its own traceback, or the end of what it has written to its standard error.
    """

    def __init__(self, error: str, report: str = "") -> None:
        super().__init__(error)
        self.report = report


class NoMoreAnswersError(Exception):
    """An engine in another process has not answered all cases of a job.

    Args:
        why: the engine's fault; empty: the check's time is over.
        answers: to the first of the cases.
        gone: it will never answer again.
    """

    def __init__(
        self, why: str, answers: Sequence[Trace | Exception] = (), *, gone: bool = False
    ) -> None:
        super().__init__(why)
        self.answers = [*answers]
        self.gone = gone


class Crash:
    """Takes the place of a trace when an engine raised instead of giving one.

    Args:
        error: the exception's type and text.
        traceback: where it was raised, innermost frame last; empty if there is none.
        refusal: what it said if it was `UnsupportedTopology`, for an application that `check`
            accepts; else empty.
    """

    def __init__(self, error: str, traceback: str = "", *, refusal: str = "") -> None:
        self.error = error
        self.traceback = traceback
        self.refusal = refusal

    @classmethod
    def of(cls, error: BaseException) -> Crash:
        """Return what takes the place of a trace when an engine raised an error."""
        if isinstance(error, CrashError):
            return cls(str(error), error.report)
        text = f"{type(error).__name__}: {describe_error(error)}"
        refusal = str(error) if isinstance(error, UnsupportedTopology) else ""
        frames = "".join(traceback.format_tb(error.__traceback__)[-_FRAMES:])
        return cls(text, frames, refusal=refusal)

    def comparable(self) -> dict[str, Any]:
        """Return something no trace is equal to."""
        return {"crash": self.error}


Result: TypeAlias = Trace | Crash


def differences(expected: Trace, actual: Result) -> frozenset[Kind]:
    """Return the kinds of difference between two traces; none: they agree."""
    if isinstance(actual, Crash):
        return frozenset({"crash"})
    # By their JSON forms, never by ==: to Python the keys 1 and True are equal.
    one, other = expected.comparable(), actual.comparable()
    if one == other:
        return frozenset()
    kinds: set[Kind] = set()
    if one["ended"] != other["ended"]:
        kinds.add("ended")
    if one["outputs"] != other["outputs"]:
        kinds |= _output_kinds(one["outputs"], other["outputs"])
    if one["dead_letters"] != other["dead_letters"]:
        kinds.add(_letter_kind(one["dead_letters"], other["dead_letters"]))
    if one["entities"] != other["entities"]:
        numberless = [
            [{**entity, "number": 0} for entity in form["entities"]] for form in (one, other)
        ]
        kinds.add(_entity_kind(*numberless))
    if one["windows"] != other["windows"]:
        keyless = [[{**window, "key": None} for window in form["windows"]] for form in (one, other)]
        kinds.add("keys" if keyless[0] == keyless[1] else "windows")
    if one["late"] != other["late"]:
        kinds.add("late")
    return frozenset(kinds)


def readable(trace: Trace) -> Result:
    """Return an engine's trace; if it holds what a trace cannot hold, a `Crash` that says what."""
    try:
        form = trace.comparable()
        Trace.from_json(form)
        canonical_json(form)
    except Exception as error:  # noqa: BLE001 - an engine may have put anything into its trace
        name = "" if type(error) is ValueError else f"{type(error).__name__}: "
        return Crash(f"it gave what cannot be compared: {name}{error}")
    return trace


def says_something(trace: Trace) -> bool:
    """Whether anything came of a run: if not, an engine that does nothing agrees with it."""
    listed = (trace.dead_letters, trace.entities, trace.ended, trace.windows, trace.late)
    return any(trace.outputs.values()) or any(listed)


def _entity_kind(wanted: list[Any], given: list[Any]) -> Kind:
    if wanted == given:
        return "numbers"
    stateless = [[{**entity, "state": None} for entity in one] for one in (wanted, given)]
    if stateless[0] == stateless[1]:
        return "entities"
    return "keys" if len(wanted) == len(given) else "existence"


def _output_kinds(expected: list[Any], actual: list[Any]) -> set[Kind]:
    """Compare outputs by their JSON forms: an engine may give values that cannot be hashed."""
    kinds: set[Kind] = set()
    by_sink = [
        {(form["pipeline"], form["sink"]): form["outputs"] for form in forms}
        for forms in (expected, actual)
    ]
    for sink in by_sink[0].keys() | by_sink[1].keys():
        wanted, given = by_sink[0].get(sink), by_sink[1].get(sink)
        if wanted is None or given is None:
            kinds.add("extra" if wanted is None else "missing")
        elif wanted != given:
            counts = [Counter(map(canonical_json, one)) for one in (wanted, given)]
            lost, more = counts[0] - counts[1], counts[1] - counts[0]
            if not lost and not more:
                kinds.add("order")
            elif len(wanted) == len(given):
                kinds.add("changed")
            else:
                kinds.add("missing" if len(wanted) > len(given) else "extra")
    return kinds


def _letter_kind(wanted: list[Any], given: list[Any]) -> Kind:
    def without(letters: list[Any], *fields: str) -> list[str]:
        return sorted(
            canonical_json({name: letter[name] for name in letter if name not in fields})
            for letter in letters
        )

    if without(wanted) == without(given):
        return "order"
    if without(wanted, "lineage") == without(given, "lineage"):
        return "lineage"
    same = without(wanted, *_FIELDS) == without(given, *_FIELDS)
    return "letter fields" if same else "letters"
