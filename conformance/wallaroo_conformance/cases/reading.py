"""Cases out of JSON: every name must be in the catalogue, every number in its range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args

from wallaroo.errors import WallarooError
from wallaroo.kafka_records import PARTITION_END
from wallaroo_conformance.cases.building import build
from wallaroo_conformance.cases.case import (
    FIRST_STEP,
    FORMAT,
    PARTITIONS,
    TOPICS_READ,
    TOPICS_WRITTEN,
    ConformanceCase,
    Form,
    Input,
    PartitionSpec,
    Shape,
    SinkSpec,
    SourceSpec,
    StepSpec,
    What,
    WindowSpec,
    fitting,
)
from wallaroo_conformance.cases.operators import (
    AGGREGATIONS,
    BUILDERS,
    DECODERS,
    ENCODERS,
    EVENT_TIMES,
    GRAPH,
    KEYS,
    ROUTES,
    STATEFUL,
    STEPS,
    Trait,
    key_lists,
)

_FIELDS = {"format", *[field.name for field in fields(ConformanceCase)]}


class BadCaseError(ValueError):
    """A file that does not hold a case."""


def case_from_json(form: Any) -> ConformanceCase:
    """Return the case whose `to_json` is `form`.

    Raises:
        BadCaseError: `form` is not such a form, names something that is not in the catalogue, or
            its application cannot be built.
    """
    try:
        if form["format"] != FORMAT:
            raise BadCaseError(f"format {form['format']!r}; expected {FORMAT!r}")
        if unknown := sorted(form.keys() - _FIELDS):
            raise BadCaseError(
                f"no case of this version: it knows no {' and no '.join(map(repr, unknown))}; "
                "find the case anew (wallaroo conform), or remove what is unknown from the file"
            )
        given = {name: form[name] for name in _FIELDS - {"format"}}
        given["sources"] = tuple([SourceSpec(**source) for source in form["sources"]])
        given["steps"] = tuple(map(_step, form["steps"]))
        given["sinks"] = tuple([SinkSpec(**sink) for sink in form["sinks"]])
        given["partitions"] = tuple([PartitionSpec(**spec) for spec in form["partitions"]])
        given["inputs"] = tuple(
            [
                Input(source, payload.encode("latin-1"), *rest)
                for source, payload, *rest in form["inputs"]
            ]
        )
        given["batches"] = None if form["batches"] is None else tuple(form["batches"])
        case = ConformanceCase(**given)
        for problem in _problems(case):
            raise BadCaseError(f"no case: {problem}")
        build(case)
    except BadCaseError:
        raise
    except KeyError as error:
        raise BadCaseError(f"no case: {error} is missing") from error
    except WallarooError as error:
        raise BadCaseError(f"no case: its application cannot be built: {error}") from error
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise BadCaseError(f"no case: {type(error).__name__}: {error}") from error
    return case


def _step(form: dict[str, Any]) -> StepSpec:
    window = None if form["window"] is None else WindowSpec(**form["window"])
    return StepSpec(**{**form, "origins": tuple(form["origins"]), "window": window})


def _problems(case: ConformanceCase) -> Iterator[str]:
    """Yield what is wrong with a case; what comes later may fail if something was wrong before."""
    if not case.sources:
        yield "it has no source"
    if not 1 <= len(case.partitions) <= len(PARTITIONS):
        yield f"{len(case.partitions)} state partitions; there are 1 to {len(PARTITIONS)}"
    for what, value, allowed in _values(case):
        if value not in allowed:
            yield f"no {what} is called {value!r}"
    nodes: set[int] = set()
    for source in case.sources:
        if source.id in nodes or not 0 <= source.id < FIRST_STEP:
            yield f"a source's number is 0 to {FIRST_STEP - 1}, and its own, not {source.id}"
        nodes.add(source.id)
    for step in case.steps:
        yield from _step_problems(case, step, nodes)
        nodes.add(step.id)
    if lost := {sink.origin for sink in case.sinks} - nodes:
        yield f"a sink of node {min(lost)}, which there is not"
    if case.form == "builder":
        rows = [[source.id, *[step.id for step in case.row(source.id)]] for source in case.sources]
        if any(sink.origin in row[:-1] for row in rows for sink in case.sinks):
            yield "in the builder's form a pipeline has its sinks at its end"
        if [node for row in rows for node in row[1:]] != [step.id for step in case.steps]:
            yield "in the builder's form steps stand in rows, row by row"
    yield from _run_problems(case)


def _values(case: ConformanceCase) -> Iterator[tuple[str, Any, Any]]:
    """Yield what is named in a case, the name, and what could be named there."""
    for source in case.sources:
        own = [name for name in DECODERS if source.topic or not DECODERS.has(name, Trait.OF_TOPIC)]
        values = DECODERS.having(Trait.OF_VALUES)
        yield "decoder", source.decoder, values if source.generator else own
        yield "number of partitions read", source.topic, (0, *TOPICS_READ)
        yield "event time", source.event_time, (None, *EVENT_TIMES)
    for spec in case.partitions:
        yield "shape", spec.shape, get_args(Shape)
        yield "builder", spec.builder, BUILDERS
        yield (
            f"list of keys for a {spec.shape} partition",
            spec.keys,
            (None, *key_lists(spec.shape)),
        )
    for step in case.steps:
        yield "operator", step.operator, (*STEPS, *AGGREGATIONS, *KEYS, *GRAPH)
        yield "partition function", step.route, (None, *ROUTES)
    for sink in case.sinks:
        yield "encoder", sink.encoder, ENCODERS
        yield "number of partitions written to", sink.topic, (0, *TOPICS_WRITTEN)
    for entry in case.inputs:
        yield "record", entry.what, get_args(What)
    yield "form", case.form, get_args(Form)
    yield "isolation", case.isolation, ("isolated", "trusting")
    yield "on_error", case.on_error, ("skip", "stop")


def _step_problems(case: ConformanceCase, step: StepSpec, before: set[int]) -> Iterator[str]:
    sides = 2 if step.operator == "merge" else 1
    if len(step.origins) != sides or not before.issuperset(step.origins):
        yield f"step {step.id} takes messages from {sides} of the nodes before it"
    if step.id in before or step.id < FIRST_STEP:
        yield f"a step's number is {FIRST_STEP} or more, and its own, not {step.id}"
    if (step.window is not None) is not (step.operator in AGGREGATIONS):
        yield f"step {step.id}: an aggregation has a window, nothing else has"
    if step.operator in STATEFUL:
        if not 0 <= step.partition < len(case.partitions):
            yield f"state partition {step.partition} of {len(case.partitions)}"
        if case.form == "pipelines" and not STATEFUL.has(step.operator, Trait.OF_STEP):
            yield f"{step.operator!r} is a state computation of the builder's form"
        if step.route is None:
            yield f"step {step.id} has no partition function"
    if case.form == "builder" and (step.operator in KEYS or step.operator in GRAPH):
        yield f"the builder's form has no {step.operator!r}"


def _run_problems(case: ConformanceCase) -> Iterator[str]:
    for entry in case.inputs:
        if entry.source not in [source.id for source in case.sources] and entry.what != "tick":
            yield f"a record of source {entry.source}, which there is not"
        if type(entry.at) is not int or entry.at < 0:
            yield f"an arrival time is an int of 0 or more, not {entry.at!r}"
        if fitting(entry, case.sources).what == "frame" != entry.what:
            yield f"source {entry.source} has no topic, which a {entry.what} stands in"
        elif entry.what == "frame" and fitting(entry, case.sources) != entry:
            yield f"no value for the generator {entry.source}: {entry.payload!r}"
        if type(entry.partition) is not int or not 0 <= entry.partition < PARTITION_END:
            yield f"no partition has the number {entry.partition!r}"
    if any(size < 1 for size in case.batches or ()):
        yield "a batch of less than 1"
    if case.number is not None and case.number < 1:
        yield f"{case.number} partitions"
    for name in ("ended", "codec", "small"):
        if type(getattr(case, name)) is not bool:
            yield f"{name} is true or false, not {getattr(case, name)!r}"
