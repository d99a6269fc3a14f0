"""What has been read while the disk takes nothing is counted, and nothing is said to be taken."""

import asyncio
import errno
from unittest.mock import Mock

from wallaroo_reference.checkpoints.on_disk import FromTopic
from wallaroo_reference.serving.journal import Journal

from wallaroo.kafka_records import KafkaRun
from wallaroo.records import Tick
from wallaroo.transport.input_log import InputLog


class AtOnce:
    """Does jobs at once, in place of a thread."""

    def submit(self, job, done):
        done(job())


def test_frame_4_a_connection_is_closed_once_all_that_was_read_is_on_disk(
    tmp_path, disk, monkeypatch
):
    monkeypatch.setattr("wallaroo.transport.appending._RETRY", 0.001)
    log = InputLog.open(tmp_path / "log", 1 << 20)
    closed = []

    async def run():
        on_disk = Mock(log=log, whole=False, sync=log.sync)
        journal = Journal(on_disk, Mock(), Mock(), Mock(), AtOnce(), {}, None, failed=closed.append)
        disk.problem = errno.ENOSPC
        journal.receive("p", [b"a", b"b"], 1)
        journal.receive_run(FromTopic("k", KafkaRun(0, 5, 7, []), 1))
        journal.receive_records([Tick(2)])
        journal.when_sequenced(lambda: closed.append(log.durable_sequence))
        assert (journal.waiting, closed) == (6, [])
        disk.problem = None
        while journal.waiting:
            await asyncio.sleep(0)
        assert closed == [6]

    asyncio.run(run())
    log.close()
