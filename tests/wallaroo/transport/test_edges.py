"""All sources and sinks of a run, as one."""

import asyncio
from types import MappingProxyType

from counted import counting

from wallaroo.engine import ServeOptions
from wallaroo.transport.edges import Edges
from wallaroo.transport.interfaces import Source
from wallaroo.transport.threads import LoopThread


class Reading(Source):
    """A source that says whether it is read."""

    reads = True
    received = MappingProxyType({})

    def start(self):
        pass

    async def stop(self):
        pass

    def pause(self):
        self.reads = False

    def resume(self):
        self.reads = True

    def close(self):
        pass


class Nobody:
    def sinks_have_room(self):
        pass


def test_sink_3_sources_are_held_back_until_every_reason_is_gone():
    source = Reading()

    async def changed():
        parts = counting(7002), ServeOptions(), LoopThread("test"), Nobody()
        edges = Edges(*parts, of_kafka={"t": source})
        for change in (edges.pause, edges.resume):
            for reason in ("sinks", "disk"):
                change(reason)
                yield source.reads
        edges.close()

    async def seen():
        return [reads async for reads in changed()]

    assert asyncio.run(seen()) == [False, False, False, True]
