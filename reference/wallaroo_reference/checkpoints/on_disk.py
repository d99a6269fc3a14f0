"""What a run has open on disk: the interface of its checkpoint, and the recording of one without.

`wallaroo_reference.checkpoints.recovery.Recovery` is the checkpoint.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from wallaroo.kafka_records import KafkaRun
from wallaroo.overriding import override
from wallaroo.records import Single
from wallaroo.topology import Application, SinkId
from wallaroo.transport.identity import identity_of
from wallaroo.transport.input_log import InputLog
from wallaroo.transport.kafka.context import Contexts
from wallaroo.transport.kafka.edges import KafkaEdges, KeptOutputs
from wallaroo.transport.logged import LoggedSource
from wallaroo.transport.recording import Recording
from wallaroo.transport.resumption import Stream
from wallaroo.transport.stamps import born

ENGINE = "reference"
"""The engine's name in an identity, and the name of the directory of its part."""


@dataclass(frozen=True)
class FromTopic:
    """A run that a Kafka source has read.

    Args:
        source: the source's name.
        run: the run.
        at: its arrival time, in nanoseconds since 1970.
    """

    source: str
    run: KafkaRun
    at: int


class Frames(NamedTuple):
    """Frames of a source, or records of consecutive offsets of a topic, that arrived together.

    Args:
        source: the source's name.
        payloads: of the frames; of records what a machine is fed.
        at: their arrival time, in nanoseconds since 1970.
        partition: of the topic.
        contexts: where records stand, with the traces that they belong to.
    """

    source: str
    payloads: Sequence[Any]
    at: int
    partition: int | None = None
    contexts: Contexts | None = None


Entry: TypeAlias = Frames | Single
"""What is processed together."""


@dataclass(frozen=True)
class Left:
    """What earlier runs have left besides the machine's cells; by default nothing.

    Args:
        logged: what the log says of sources before the records whose effect is not stored.
        logged_in_all: what it says of generators and Kafka sources after these.
        first_offsets: from where on topics are read again for these, by source and partition.
        outputs: what is kept of the outputs to Kafka, before these.
        streams: of sinks whose peers remember, before these (sink-9).
    """

    logged: Mapping[str, LoggedSource] = field(default_factory=dict)
    logged_in_all: Mapping[str, LoggedSource] = field(default_factory=dict)
    first_offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    outputs: KeptOutputs = field(default_factory=KeptOutputs)
    streams: Mapping[SinkId, Stream] = field(default_factory=dict)


class OnDisk(Protocol):
    """What a run has opened on disk. `close` it.

    Attributes:
        log: the input log.
        whole: what Kafka sources read is kept whole, not only named (kafka-2).
    """

    log: InputLog
    whole: bool

    def sync(self) -> int:
        """Sync the log, and return its `durable_sequence`.

        Raises:
            InputLogError: the system could not.
        """

    def later(self, kafka: KafkaEdges | None = None) -> Iterator[Entry | FromTopic]:
        """Yield the records of the log whose effect is not in the stored state, in order.

        Args:
            kafka: reads again what the log only names (kafka-1); `None`: it names nothing.

        Raises:
            WallarooError: they cannot be read.
        """
        return iter(())

    def close(self) -> None:
        """Close everything, and give up the lock."""


class RecordedRun(OnDisk):
    """A new recording of a run without a checkpoint.

    Args:
        directory: where it is made.
        application: what is run.
        partitions: number of partitions.
        file_bytes: size of a file.

    Attributes:
        log: the input log; it is never full, and nothing of it is deleted.

    Raises:
        CheckpointError: it cannot be made there.
        InputLogError: its input log cannot be made.
    """

    def __init__(
        self, directory: Path, application: Application, *, partitions: int, file_bytes: int
    ) -> None:
        self.whole = True
        stamp = born().next_run()
        identity = identity_of(ENGINE, application, partitions, stamp)
        self._recording = Recording(directory, identity, application, checkpoint=None)
        place = self._recording.input_log
        try:
            self.log = InputLog.open(
                place,
                sys.maxsize,
                file_bytes=file_bytes,
                recording=place,
                admit=lambda log: stamp,
            )
        except BaseException:
            self._recording.close()
            raise

    @override
    def sync(self) -> int:
        durable = self.log.sync()
        self.log.drop_before(durable)  # it forgets the files that are complete; they stay
        return durable

    @override
    def close(self) -> None:
        self.log.close()
        self._recording.close()
