"""What a flow does with a message at a sink: it encodes it, and keeps the output."""

from __future__ import annotations

from typing import Any

from wallaroo.judging import producing, written_of
from wallaroo.kafka import KafkaSinkConfig
from wallaroo.kafka_records import Produced
from wallaroo.topology import Sink
from wallaroo.trace import Reason
from wallaroo_spark.wire.lineages import Lineage
from wallaroo_spark.wire.outbox import Outputs
from wallaroo_spark.worker.calls import Calls
from wallaroo_spark.worker.nodes import TakeMessage


def sink_node(calls: Calls, index: int, sink: Sink) -> TakeMessage:
    """Return the function of a sink."""
    if isinstance(sink.config, KafkaSinkConfig):
        return _kafka_encoder(calls, index, sink.config)
    place, printer, failed = calls.program.places[index], calls.printer, calls.failed
    name, call = place.name, calls.reported(sink.config.encoder.call, place)
    lineages: list[Lineage] = []
    outputs: list[bytes] = []
    calls.outbox.finished.outputs.append(Outputs(index, lineages, outputs))
    add_lineage, add_output = lineages.append, outputs.append

    def take(lineage: Lineage, value: Any, _: Any) -> None:
        printer.step = name
        try:
            output = call(value)
            if output is None:
                return
            if type(output) is str:
                try:
                    output = output.encode()
                except UnicodeEncodeError:
                    output = written_of(output)  # says what is wrong
            elif type(output) is not bytes:
                output = written_of(output)
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            failed(place, lineage, Reason.ENCODE, error)
            return
        add_lineage(lineage)
        add_output(output)

    return take


def _kafka_encoder(calls: Calls, index: int, config: KafkaSinkConfig[Any]) -> TakeMessage:
    """Return the function of a Kafka sink (kafka-13)."""
    place, printer, failed = calls.program.places[index], calls.printer, calls.failed
    name, call = place.name, calls.reported(config.encoder.call, place)
    judge, partitions = producing(config), calls.topics.get(index, config.partitions)
    outputs = calls.outbox.finished.outputs
    runs: dict[int | None, tuple[list[Lineage], list[Produced]]] = {}

    def take(lineage: Lineage, value: Any, _: Any) -> None:
        printer.step = name
        try:
            result = call(value)
            if result is None:
                return
            assert calls.times is not None  # outputs have a timestamp
            output = judge(result, calls.times.time, lineage[0], partitions)
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            failed(place, lineage, Reason.ENCODE, error)
            return
        columns = runs.get(output.partition)
        if columns is None:
            columns = runs[output.partition] = ([], [])
            outputs.append(Outputs(index, *columns, output.partition))
        columns[0].append(lineage)
        columns[1].append(output)

    return take
