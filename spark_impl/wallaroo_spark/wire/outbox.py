"""What an operator sends: messages for other shards, and finished results for the driver.

It consists of plain values, so workers and the driver can read it without the application's
modules.

An object for each message would cost more, to make and to pickle, than all other work on the
message. So a *run* holds lists of equal length, and when it is pickled its lineages are one array
of numbers (a list, where windows stand in them). A run is in order of lineage: a flow processes
messages in that order, depth first, and appends their results. Several runs have to be merged,
because Spark keeps no order among rows. Lineages are compared by `wallaroo.trace.lineage_order`
everywhere.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, islice, pairwise, repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from wallaroo.kafka_records import Produced
from wallaroo.trace import lineage_order
from wallaroo.transport.byte_strings import ByteStrings
from wallaroo.user_code.failure import Failure
from wallaroo_spark.wire.lineages import Fired, Lineage, Lineages, Order, Turn, order_of
from wallaroo_spark.wire.sorting import sorted_by


class Times(NamedTuple):
    """The times of a message; carried along only in applications where time decides.

    Args:
        arrived: the arrival time of its record.
        time: its event time.
        given: a window gave it, or the message it was made from; its dead letters have no payload.
            A truth value; 0 or 1 after it was sent to another process.
    """

    arrived: int
    time: int
    given: bool


Arrival = tuple[Lineage, int, bytes, Any, Times | None]
"""(lineage, the state step's node, encoded key, frozen message, times)."""


@dataclass(slots=True)
class Messages:
    """Messages on their way to one state step.

    Args:
        node: the state step's index in the topology.
        lineages: the messages' lineages.
        keys: the messages' encoded keys.
        messages: frozen (`wallaroo.copying`).
        times: the messages' times; empty in an application whose results do not depend on time.
    """

    node: int
    lineages: Sequence[Lineage] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    times: list[Times] = field(default_factory=list)

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (self.keys, self.messages, _packed_times(self.times))
        return _messages, (self.node, *_packed(self.lineages), *columns)


@dataclass(slots=True)
class Outputs:
    """Encoded outputs of one sink; of a Kafka sink, those of one partition.

    Args:
        node: the sink's index in the topology.
        lineages: the lineages of the outputs' messages.
        outputs: encoded; of a Kafka sink `wallaroo.kafka_records.Produced`.
        partition: of a Kafka sink the topic's partition, if it is decided (kafka-13).
    """

    node: int
    lineages: Sequence[Lineage] = field(default_factory=list)
    outputs: Sequence[Any] = field(default_factory=list)
    partition: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        outputs = self.outputs
        produced = bool(outputs) and type(outputs[0]) is Produced
        columns = _packed_produced(outputs) if produced else ByteStrings.of(outputs)
        return _outputs, (self.node, self.partition, *_packed(self.lineages), produced, columns)


def arrivals(runs: Iterable[Messages]) -> list[Arrival]:
    """Return the messages of all runs in the order in which an entity meets them (order-1)."""
    ordered = sorted([run for run in runs if run.lineages], key=_first)
    messages = list(
        chain.from_iterable(
            [
                zip(
                    run.lineages,
                    repeat(run.node),
                    run.keys,
                    run.messages,
                    run.times or repeat(None),
                )
                for run in ordered
            ]
        )
    )
    if _overlap(ordered):
        # Nodes stand in topological order: an index orders the steps that a message meets.
        messages.sort(key=itemgetter(0, 1) if _alike(ordered) else _by_lineage_and_node)
    return messages


def in_order(runs: Iterable[Outputs]) -> Sequence[Any]:
    """Return outputs of a sink from all its runs, in their order (order-1)."""
    ordered = sorted([run for run in runs if run.lineages], key=_first)
    outputs = [run.outputs for run in ordered if isinstance(run.outputs, ByteStrings)]
    if len(outputs) == len(ordered):
        if not _overlap(ordered):
            return ByteStrings.joined(outputs)
        lineages = [run.lineages for run in ordered if isinstance(run.lineages, Lineages)]
        if len(lineages) == len(ordered) and _alike(ordered):
            return sorted_by(lineages, outputs)
    return [output for _, output in outputs_in_order(ordered)]


def outputs_in_order(runs: Iterable[Outputs]) -> list[tuple[Lineage, Any]]:
    """Return outputs of a sink from all its runs, in their order (order-1), with their lineages."""
    ordered = sorted([run for run in runs if run.lineages], key=_first)
    outputs = list(
        chain.from_iterable([zip(run.lineages, run.outputs, strict=True) for run in ordered])
    )
    if _overlap(ordered):
        outputs.sort(key=itemgetter(0) if _alike(ordered) else _by_lineage)
    return outputs


def _first(run: Messages | Outputs) -> Lineage:
    return lineage_order(run.lineages[0])


def _by_lineage(output: tuple[Lineage, Any]) -> Lineage:
    return lineage_order(output[0])


def _by_lineage_and_node(arrival: Arrival) -> tuple[Lineage, int]:
    return lineage_order(arrival[0]), arrival[1]


def _alike(runs: Iterable[Messages | Outputs]) -> bool:
    """Whether all lineages have as many numbers, so that they are in order as they are."""
    widths: set[int] = set()
    for run in runs:
        some = run.lineages
        widths.update((some.width,) if isinstance(some, Lineages) else map(len, some))
    return len(widths) == 1


def _overlap(ordered: list[Any]) -> bool:
    return any(
        lineage_order(run.lineages[-1]) >= lineage_order(following.lineages[0])
        for run, following in pairwise(ordered)
    )


_Widths: TypeAlias = "int | array[int]"
"""How many numbers each lineage has; one `int` where all have the same number."""


def _packed(lineages: Sequence[Lineage]) -> tuple[_Widths, Iterable[Any]]:
    """Return lineages as one array of numbers; as a list, where windows stand in them.

    Usually a node's messages have gone through the same multi steps. Behind a merge or a window
    they may have gone through different ones.
    """
    widths = list(map(len, lineages)) or [1]
    same = widths.count(widths[0]) == len(widths)
    items: Iterable[Any]
    try:
        items = array("q", chain.from_iterable(lineages))
    except TypeError:
        items = list(chain.from_iterable(lineages))
    return widths[0] if same else array("q", widths), items


def _packed_times(times: list[Times]) -> Iterable[int]:
    """Return times as one array of numbers; equal ones in a row stand there once."""
    numbers = [number for each, alike in groupby(times) for number in (*each, len(list(alike)))]
    try:
        return array("q", numbers)
    except OverflowError:  # the event time of a message that a window of the far future gives
        return numbers


def _unpacked_times(numbers: Iterable[int]) -> list[Times]:
    return [
        each
        for arrived, time, given, count in _unpacked(len(Times._fields) + 1, numbers)
        for each in repeat(Times(arrived, time, given), count)
    ]


def _packed_produced(outputs: Sequence[Produced]) -> tuple[list[Any], ...]:
    """Return what lineages and partition do not say: a list for each attribute."""
    headers = [output[3] for output in outputs]
    return (
        [output[0] for output in outputs],
        [output[1] for output in outputs],
        headers if any(headers) else [],
        [output[4] for output in outputs],
    )


def _unpacked_produced(
    lineages: Iterable[Lineage], partition: int | None, columns: tuple[list[Any], ...]
) -> list[Produced]:
    values, keys, headers, timestamps = columns
    numbers = map(itemgetter(0), lineages)
    attributes = (values, keys, repeat(partition), headers or repeat(()), timestamps, numbers)
    return list(map(_AS_PRODUCED, zip(*attributes, strict=False)))  # `repeat` has no end


_AS_PRODUCED: Any = partial(tuple.__new__, Produced)
"""As `Produced._make`, which is a function of Python's."""


def _unpacked(widths: _Widths, items: Iterable[Any]) -> Sequence[Lineage]:
    if isinstance(widths, int):
        if isinstance(items, array):
            return Lineages(widths, items)
        return list(zip(*[iter(items)] * widths, strict=True))
    rest = iter(items)
    return [tuple(islice(rest, width)) for width in widths]


def _messages(
    node: int,
    widths: _Widths,
    items: Iterable[Any],
    keys: list[bytes],
    messages: list[Any],
    times: Iterable[int],
) -> Messages:
    return Messages(node, _unpacked(widths, items), keys, messages, _unpacked_times(times))


def _outputs(
    node: int,
    partition: int | None,
    widths: _Widths,
    items: Iterable[Any],
    produced: bool,
    columns: Any,
) -> Outputs:
    lineages = _unpacked(widths, items)
    outputs = _unpacked_produced(lineages, partition, columns) if produced else columns
    return Outputs(node, lineages, outputs, partition)


class Letter(NamedTuple):
    """A dead letter as a worker knows it; the driver adds what it knows of the node and the record.

    `given`: it has no payload, since a window gave the message.
    """

    lineage: Lineage
    node: int
    sink: int
    given: bool
    key: bytes | None
    reason: str
    error_type: str | None
    error: str
    failure: Failure

    @property
    def order(self) -> Order:
        """Its position in the order of calls."""
        return order_of(self.lineage, self.node, self.sink)


class End(NamedTuple):
    """A call at which the run ends (dead-3, dead-4).

    Args:
        order: the call's.
        kind: ``on-error`` or ``exit``.
        error_type: the class name of what user code raised; `None` if it raised nothing.
    """

    order: Order
    kind: str
    error_type: str | None = None

    @property
    def lineage(self) -> Lineage:
        """The lineage of the call's message."""
        return self.order[0][:-1]  # without the number that `lineage_order` appends


@dataclass
class Finished:
    """The finished results of one case, for the driver.

    Args:
        outputs: runs of outputs, each of one sink, or of one partition of a sink's topic.
        letters: dead letters.
        ends: calls at which the run ends; the first in order is the one that counts.
        late: numbers of late messages by (step, what became of them), see `wallaroo.trace.Trace`.
        fired: the windows that fired in their steps' turns, for `wire.lineages.numbering`.
    """

    outputs: list[Outputs] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    late: Counter[tuple[str, str]] = field(default_factory=Counter)
    fired: dict[Turn, list[Fired]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        outputs = any(run.lineages for run in self.outputs)
        return bool(self.letters or self.ends or self.late or self.fired or outputs)

    def add(self, other: Finished) -> None:
        """Add the results of another part."""
        self.outputs += [run for run in other.outputs if run.lineages]
        self.letters += other.letters
        self.ends += other.ends
        self.late += other.late
        for turn, windows in other.fired.items():
            self.fired.setdefault(turn, []).extend(windows)


@dataclass
class Outbox:
    """What an operator sends: runs of messages by (group, partition number), and results."""

    messages: list[tuple[int, int, Messages]] = field(default_factory=list)
    finished: Finished = field(default_factory=Finished)
