"""Timed cases out of JSON: every name must be in the catalogue, every number in its range."""

from __future__ import annotations

from typing import Any, get_args

from wallaroo.errors import WallarooError
from wallaroo_conformance.cases.timed.building import application_of
from wallaroo_conformance.cases.timed.case import (
    FORMAT,
    SOURCES,
    Entry,
    SourceSpec,
    TimedCase,
    TimedStep,
    What,
    WindowSpec,
)


def timed_case_from_json(form: Any) -> TimedCase:
    """Return the case whose `to_json` is `form`.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is not such a form, or its application
            cannot be built.
    """
    rest = {name: value for name, value in form.items() if name != "format"}
    if form["format"] != FORMAT:
        raise ValueError(f"format {form['format']!r}; expected {FORMAT!r}")
    rest["sources"] = tuple(SourceSpec(**source) for source in form["sources"])
    rest["steps"] = tuple(_step(step) for step in form["steps"])
    rest["inputs"] = tuple(
        Entry(what, source, at, payload.encode("latin-1"))
        for what, source, at, payload in form["inputs"]
    )
    rest["batches"] = None if form["batches"] is None else tuple(form["batches"])
    case = TimedCase(**rest)
    found = _problem(case)
    if found is not None:
        raise ValueError(found)
    try:
        application_of(case)
    except WallarooError as error:
        raise ValueError(f"its application cannot be built: {error}") from error
    return case


def _step(form: dict[str, Any]) -> TimedStep:
    window = form["window"]
    return TimedStep(**{**form, "window": None if window is None else WindowSpec(**window)})


def _problem(case: TimedCase) -> str | None:
    if not 1 <= len(case.sources) <= len(SOURCES):
        return f"{len(case.sources)} sources; there are 1 to {len(SOURCES)}"
    if case.form not in ("pipelines", "builder"):
        return f"no form of the API is {case.form!r}"
    for entry in case.inputs:
        if entry.what not in get_args(What):
            return f"no record is a {entry.what!r}"
        if not 0 <= entry.source < len(case.sources):
            return f"a record of source {entry.source} of {len(case.sources)}"
        if type(entry.at) is not int or entry.at < 0:
            return f"an arrival time is an int of 0 or more, not {entry.at!r}"
    if any(size < 1 for size in case.batches or ()):
        return "a batch of less than 1"
    if case.isolation not in ("isolated", "trusting") or case.on_error not in ("skip", "stop"):
        return f"no isolation is {case.isolation!r}, or no on_error {case.on_error!r}"
    return None
