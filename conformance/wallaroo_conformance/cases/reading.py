"""Cases out of JSON: every name must be in the catalogue, every number in its range."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from wallaroo_conformance.cases.case import (
    FORMAT,
    PARTITIONS,
    PIPELINES,
    ConformanceCase,
    Input,
    PartitionSpec,
    PipelineSpec,
    StepSpec,
)
from wallaroo_conformance.cases.operators import (
    BUILDERS,
    DECODERS,
    ENCODERS,
    KEY_LISTS,
    ROUTES,
    STEPS,
    U64_KEY_LISTS,
)

_FIELDS = {"format", *[field.name for field in fields(ConformanceCase)]}


class BadCaseError(ValueError):
    """A file that does not hold a case."""


def case_from_json(form: Any) -> ConformanceCase:
    """Return the case whose `to_json` is `form`.

    Raises:
        BadCaseError: `form` is not such a form, or names something that is not in the catalogue.
    """
    try:
        if form["format"] != FORMAT:
            raise BadCaseError(f"format {form['format']!r}; expected {FORMAT!r}")
        if unknown := sorted(form.keys() - _FIELDS):
            raise BadCaseError(
                f"no case of this version: it knows no {' and no '.join(map(repr, unknown))}; "
                "find the case anew (wallaroo conform), or remove what is unknown from the file"
            )
        batches = form["batches"]
        case = ConformanceCase(
            pipelines=tuple(
                PipelineSpec(
                    pipeline["decoder"],
                    tuple(StepSpec(**step) for step in pipeline["steps"]),
                    tuple(pipeline["sinks"]),
                )
                for pipeline in form["pipelines"]
            ),
            partitions=tuple(PartitionSpec(**spec) for spec in form["partitions"]),
            inputs=tuple(
                Input(pipeline, payload.encode("latin-1"), connection)
                for pipeline, payload, connection in form["inputs"]
            ),
            batches=None if batches is None else tuple(batches),
            number=form["number"],
            isolation=form["isolation"],
            on_error=form["on_error"],
            small=form["small"],
        )
        found = problem(case)
    except BadCaseError:
        raise
    except KeyError as error:
        raise BadCaseError(f"no case: {error} is missing") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise BadCaseError(f"no case: {type(error).__name__}: {error}") from error
    if found is not None:
        raise BadCaseError(f"no case: {found}")
    return case


def problem(case: ConformanceCase) -> str | None:
    """Return what is wrong with `case`, or `None`."""
    if not 1 <= len(case.pipelines) <= len(PIPELINES):
        return f"{len(case.pipelines)} pipelines; there are 1 to {len(PIPELINES)}"
    if not 1 <= len(case.partitions) <= len(PARTITIONS):
        return f"{len(case.partitions)} state partitions; there are 1 to {len(PARTITIONS)}"
    for spec in case.partitions:
        if (found := _partition_problem(spec)) is not None:
            return found
    for pipeline in case.pipelines:
        if pipeline.decoder not in DECODERS:
            return f"no decoder is called {pipeline.decoder!r}"
        for sink in pipeline.sinks:
            if sink not in ENCODERS:
                return f"no encoder is called {sink!r}"
    for _, _, step in case.steps():
        if (found := _step_problem(step)) is not None:
            return found
    return _run_problem(case)


def _partition_problem(spec: PartitionSpec) -> str | None:
    if spec.shape not in ("single", "keyed", "u64"):
        return f"no state partition is {spec.shape!r}"
    if spec.builder not in BUILDERS:
        return f"no builder is called {spec.builder!r}"
    lists = U64_KEY_LISTS if spec.shape == "u64" else KEY_LISTS
    if spec.keys is not None and spec.keys not in lists:
        return f"no list of keys for a {spec.shape} partition is called {spec.keys!r}"
    return None


def _step_problem(step: StepSpec) -> str | None:
    if step.operator not in STEPS:
        return f"no computation is called {step.operator!r}"
    if step.route not in ROUTES:
        return f"no partition function is called {step.route!r}"
    return None


def _run_problem(case: ConformanceCase) -> str | None:
    for entry in case.inputs:
        if not 0 <= entry.pipeline < len(case.pipelines):
            return f"a frame for pipeline {entry.pipeline} of {len(case.pipelines)}"
    if any(size < 1 for size in case.batches or ()):
        return "a batch of less than 1"
    if case.number is not None and case.number < 1:
        return f"{case.number} partitions"
    if case.isolation not in ("isolated", "trusting"):
        return f"no isolation is {case.isolation!r}"
    if case.on_error not in ("skip", "stop"):
        return f"no on_error is {case.on_error!r}"
    if type(case.small) is not bool:
        return f"small is true or false, not {case.small!r}"
    return None
