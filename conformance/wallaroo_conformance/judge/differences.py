"""How a trace differs from what it should be: the kinds of difference, and the first of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from wallaroo.trace import Trace, canonical_json
from wallaroo_conformance.judge.window_signs import bounds_of, late_alone, lost_whole, window_signs

Kind: TypeAlias = Literal[
    "crash", "ended", "missing", "extra", "changed", "order", "letters", "letter fields",
    "lineage", "entities", "existence", "keys", "numbers", "windows", "late",
]  # fmt: skip
"""Of outputs: `missing`, `extra`, `changed` (neither more nor fewer), `order`. Of dead letters:
`letters` (others), `lineage` and `letter fields` (the same with other ones), `order`. Of entities:
`existence` (more or fewer), `keys` (as many, with other keys), `entities` (in another state),
`numbers`. `windows`: of open windows; `keys` if nothing but their keys differs. `late`: of the
numbers of late messages."""

KINDS: frozenset[Kind] = frozenset(
    {
        *("crash", "ended", "missing", "extra", "changed", "order"),
        *("letters", "letter fields", "lineage", "entities", "existence", "keys", "numbers"),
        *("windows", "late"),
    }
)


Sign: TypeAlias = str
"""What is special about dead letters, or outputs, that differ.

``more REASON``, ``lost REASON``: the engine has more of this reason, or fewer; a late message that
is dropped counts as one, or that fires a window of its own. ``all lost``: of letters of one step,
sink, reason and error type, it has none. ``told``: a letter that both have differs in a field;
``told of a window``: so does one without a payload, of what a window or a generator gave; ``told of
a pipeline``: it differs in its pipeline.
``outputs lost``: some do not come, and none comes instead. ``window lost``: a window of several
messages does not. ``same bounds``, ``other ends``, ``new bounds``: of windows (`window_signs`).
"""

_FIELDS = ("key", "error_type", "payload", "source", "step", "sink", "pipeline")
"""A dead letter's fields, besides lineage and reason."""


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

    def comparable(self) -> dict[str, Any]:
        """Return something no trace is equal to."""
        return {"crash": self.error}


Result: TypeAlias = Trace | Crash


def differences(expected: Trace, actual: Result) -> frozenset[Kind]:
    """Return the kinds of difference between two traces; none: they agree."""
    if isinstance(actual, Crash):
        return frozenset({"crash"})
    # By their JSON forms, never by ==: to Python the keys 1 and True are equal.
    one = expected.comparable()
    try:
        other = actual.comparable()
    except Exception:  # noqa: BLE001 - an engine may have put anything into its trace
        return frozenset({"crash"})
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


def signs(expected: Trace, actual: Result) -> frozenset[Sign]:
    """Return what is special about the dead letters and outputs in which two traces differ."""
    if isinstance(actual, Crash):
        return frozenset()
    try:
        one, other = expected.comparable(), actual.comparable()
        wanted, given = one["dead_letters"], other["dead_letters"]
        bounds = [bounds_of(trace) for trace in (expected, actual)]
        found = {
            f"{what} {reason}"
            for what, left in zip(("lost", "more"), _unmatched(one, other), strict=True)
            for reason in left
        }
        # The window of a late message fires at once; a count window of one message may stay open,
        # and one that fires in its place is not that of a late message.
        fired = [bounds_of(trace, opened=False) for trace in (expected, actual)]
        if late_alone(bounds[0], fired[1]):
            found.add("more late")
        if late_alone(bounds[1], fired[0]):
            found.add("lost late")
        if one["outputs"] != other["outputs"] or one["windows"] != other["windows"]:
            found |= window_signs(*bounds)
            if lost_whole(expected, bounds[1]):
                found.add("window lost")
        kinds = [Counter(map(_kind_of_letter, letters)) for letters in (wanted, given)]
        if any(kind not in kinds[1] for kind in kinds[0]):
            found.add("all lost")
        if len(wanted) == len(given) and not found:
            for letter, also in zip(wanted, given, strict=True):
                if any(letter[name] != also[name] for name in _FIELDS):
                    found.add(_told(letter, also))
        if one["outputs"] != other["outputs"] and _fewer(one["outputs"], other["outputs"]):
            found.add("outputs lost")
    except Exception:  # noqa: BLE001 - an engine may have put anything into its trace
        return frozenset()
    return frozenset(found)


def _told(letter: Any, also: Any) -> Sign:
    """Return the sign of two dead letters that differ in a field."""
    if letter["pipeline"] != also["pipeline"]:
        return "told of a pipeline"
    return "told of a window" if letter["payload"] is None else "told"


def _fewer(wanted: list[Any], given: list[Any]) -> bool:
    """Whether no sink has an output that it must not have."""
    return len(wanted) == len(given) and all(
        not Counter(other["outputs"]) - Counter(one["outputs"])
        for one, other in zip(wanted, given, strict=True)
    )


def _unmatched(one: Any, other: Any) -> tuple[Counter[str], Counter[str]]:
    """Return how many more dead letters of each reason the one has, and the other."""
    counts = [Counter(letter["reason"] for letter in form["dead_letters"]) for form in (one, other)]
    for count, form in zip(counts, (one, other), strict=True):
        count["late"] += sum(number for _, what, number in form["late"] if what == "dropped")
    return counts[0] - counts[1], counts[1] - counts[0]


def _kind_of_letter(letter: Any) -> tuple[str, ...]:
    return tuple([str(letter[name]) for name in ("step", "sink", "reason", "error_type")])


def end_of(expected: Trace, actual: Result) -> str | None:
    """Return how the run ends early on the reference, or else on the engine; `None`: on neither."""
    ended = expected.ended or (None if isinstance(actual, Crash) else actual.ended)
    return None if ended is None else ended.kind


def readable_result(result: Result) -> Result:
    """Return `result`; if it is a trace with values that a trace cannot hold, a `Crash`."""
    try:
        result.comparable()
    except Exception as error:  # noqa: BLE001 - an engine may have put anything into its trace
        return Crash(f"its trace cannot be read: {type(error).__name__}: {error}")
    return result


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
            lost = Counter(wanted) - Counter(given)
            more = Counter(given) - Counter(wanted)
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
