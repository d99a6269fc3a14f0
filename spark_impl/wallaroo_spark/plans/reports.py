"""What the driver received, in order: outputs, dead letters, the call at which the run ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol, TypeAlias, TypedDict, cast

import wallaroo.trace
from wallaroo.kafka_records import Output
from wallaroo.keys import decode_key
from wallaroo.records import Consumed, Frame, Record, Tick
from wallaroo.topology import Application, Sink, SinkId, Step
from wallaroo.trace import DeadLetter, Ended, Reason
from wallaroo_spark.wire.lineages import NO_SINK, Lineage, Order, order_of
from wallaroo_spark.wire.outbox import End, Finished, Letter, Outputs, in_order, outputs_in_order

Numbered: TypeAlias = Callable[[Lineage], wallaroo.trace.Lineage]
"""See `wallaroo_spark.wire.lineages.numbering`."""


class RecordsByNumber(Protocol):
    """Records by their sequence numbers."""

    def __getitem__(self, number: int, /) -> Record:
        """Return a record."""


class _Where(TypedDict):
    pipeline: str
    step: str | None


def first_end(finished: Finished) -> End | None:
    """Return the call at which the run ended.

    Each shard stops at the first such call that it makes, independently of the other shards. The
    earliest of these calls in order ended the run: no call before it was affected by a stop.
    """
    return min(finished.ends, key=lambda end: end.order, default=None)


def outputs_of(
    application: Application, finished: Finished, end: Order | None = None
) -> dict[SinkId, Sequence[Output]]:
    """Return each sink's outputs in their order (order-1); only those before `end` if given."""
    runs: dict[int, list[Outputs]] = {}
    for run in finished.outputs:
        runs.setdefault(run.node, []).append(run)
    outputs: dict[SinkId, Sequence[Output]] = dict.fromkeys(application.sinks, ())
    for node, some in runs.items():
        sink = cast("Sink", application.nodes[node])
        if end is None:
            outputs[sink.id] = in_order(some)
            continue
        outputs[sink.id] = [
            output
            for lineage, output in outputs_in_order(some)
            if order_of(lineage, node, sink.index) < end
        ]
    return outputs


def dead_letters_of(
    application: Application,
    letters: Iterable[Letter],
    records: RecordsByNumber,
    numbered: Numbered,
) -> tuple[DeadLetter, ...]:
    """Return the dead letters in their order, with the records they came from.

    Args:
        application: the application.
        letters: the letters.
        records: those that the letters came from.
        numbered: puts the numbers of windows into lineages.
    """
    return tuple(
        [
            DeadLetter(
                lineage=numbered(letter.lineage),
                source=_source(records[letter.lineage[0]]),
                **_where(application, letter.node),
                position=application.position(application.nodes[letter.node]),
                sink=None if letter.sink == NO_SINK else letter.sink,
                key=None if letter.key is None else decode_key(letter.key),
                reason=Reason(letter.reason),
                error_type=letter.error_type,
                error=letter.error,
                payload=None if letter.given else _payload(records[letter.lineage[0]]),
                record=_place(records[letter.lineage[0]]),
                where=letter.failure.where,
                causes=letter.failure.causes,
            )
            for letter in sorted(letters, key=lambda letter: letter.order)
        ]
    )


def ended_of(application: Application, end: End, numbered: Numbered) -> Ended:
    """Return an end in the form that a trace has; `numbered` as in `dead_letters_of`."""
    _, node, sink = end.order
    return Ended(
        cast("Literal['on-error', 'exit']", end.kind),
        **_where(application, node),
        lineage=numbered(end.lineage),
        error_type=end.error_type,
        sink=None if sink == NO_SINK else sink,
    )


def _source(record: Record) -> str | None:
    return None if isinstance(record, Tick) else record.source


def _payload(record: Record) -> bytes | None:
    if isinstance(record, Consumed):
        return record.record.value
    return record.payload if isinstance(record, Frame) else None


def _place(record: Record) -> tuple[str, int, int] | None:
    """Return where a record of Kafka stands."""
    if not isinstance(record, Consumed):
        return None
    return record.record.topic, record.record.partition, record.record.offset


def _where(application: Application, index: int) -> _Where:
    """Return the pipeline of a node, and its name if it is a step."""
    node = application.nodes[index]
    return {"pipeline": node.pipeline, "step": node.name if isinstance(node, Step) else None}
