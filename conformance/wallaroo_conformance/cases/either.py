"""Functions for cases of both kinds: those of the rules' first part, and timed ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from wallaroo.engine import Case
from wallaroo.topology import Application
from wallaroo_conformance.cases import building, readable, reducing
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.crossing import crossed
from wallaroo_conformance.cases.reading import BadCaseError, case_from_json
from wallaroo_conformance.cases.timed.building import application_of
from wallaroo_conformance.cases.timed.case import FORMAT as TIMED_FORMAT
from wallaroo_conformance.cases.timed.case import TimedCase
from wallaroo_conformance.cases.timed.crossing import timed_crossed
from wallaroo_conformance.cases.timed.readable import (
    timed_application_text,
    timed_input_text,
    timed_readable,
)
from wallaroo_conformance.cases.timed.reading import timed_case_from_json
from wallaroo_conformance.cases.timed.reducing import (
    timed_projections,
    timed_reductions,
    timed_size,
)

AnyCase: TypeAlias = ConformanceCase | TimedCase


@dataclass(frozen=True, kw_only=True)
class GeneratedCase(Case):
    """A case for an engine, with the generated case it was made from, which is sent as JSON."""

    made_from: AnyCase


def assemble(case: AnyCase) -> Application:
    """Return the case's application."""
    return application_of(case) if isinstance(case, TimedCase) else building.assemble(case)


def engine_case(
    case: AnyCase,
    application: Application | None = None,
    options: Mapping[str, Any] | None = None,
) -> Case:
    """Return the case as an engine takes it.

    Args:
        case: what to run.
        application: the case's application, if it has been made already.
        options: thresholds of the engine.
    """
    return GeneratedCase(
        application=application or assemble(case),
        input_log=case.input_log,
        batches=case.batches,
        partitions=case.number,
        isolation=case.isolation,
        on_error=case.on_error,
        options=options or {},
        made_from=case,
    )


def size(case: AnyCase) -> tuple[int, ...]:
    """Return how complicated a case is; compares as tuples do."""
    return timed_size(case) if isinstance(case, TimedCase) else reducing.size(case)


def reductions(case: AnyCase) -> list[AnyCase]:
    """Return every case that is one step simpler, simplest first."""
    if isinstance(case, TimedCase):
        return [*timed_reductions(case)]
    return [*reducing.reductions(case)]


def cross(one: AnyCase, other: AnyCase, rng: Random) -> AnyCase:
    """Return a case made of parts of two cases of one kind.

    Raises:
        TypeError: they are of different kinds.
    """
    if isinstance(one, TimedCase) and isinstance(other, TimedCase):
        return timed_crossed(one, other, rng)
    if isinstance(one, ConformanceCase) and isinstance(other, ConformanceCase):
        return crossed(one, other, rng)
    raise TypeError("a timed case cannot be crossed with another kind of case")


def projections(case: AnyCase) -> list[AnyCase]:
    """Return small parts of a case, simplest first."""
    if isinstance(case, TimedCase):
        return [*timed_projections(case)]
    return [*reducing.projections(case)]


def application_text(case: AnyCase) -> str:
    """Return the application as a user could have written it, for people who know the rest."""
    if isinstance(case, TimedCase):
        return timed_application_text(case)
    return readable.application_text(case)


def input_text(case: AnyCase) -> str:
    """Return the input, a record a line."""
    return timed_input_text(case) if isinstance(case, TimedCase) else readable.input_text(case)


def module_text(case: AnyCase, heading: str = "") -> str:
    """Return the case as the text of a Python module."""
    if isinstance(case, TimedCase):
        return timed_readable(case, heading)
    return readable.readable(case, heading)


def run_text(case: AnyCase) -> str:
    """Return how the case is run, as far as it is not the default."""
    parts = [f"{case.isolation} mode"]
    if case.batches is not None:
        parts.append(f"batches of {', '.join(map(str, case.batches))} and the rest")
    if case.number is not None:
        parts.append(f"{case.number} partition{'' if case.number == 1 else 's'}")
    if case.on_error == "stop":
        parts.append("--on-error stop")
    if case.small:
        parts.append("small thresholds")
    return ", ".join(parts)


def from_json(form: Any) -> AnyCase:
    """Return the case whose `to_json` is `form`.

    Raises:
        BadCaseError: `form` is not such a form, or names something that is not in the catalogue.
    """
    if isinstance(form, dict) and form.get("format") == TIMED_FORMAT:
        try:
            return timed_case_from_json(form)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadCaseError(f"no case: {type(error).__name__}: {error}") from error
    return case_from_json(form)
