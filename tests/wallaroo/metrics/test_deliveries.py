"""Deliveries: what came to its end just before a stop is not forgotten."""

import asyncio

from builder_parts import begun, sink

from wallaroo.metrics.deliveries import Deliveries
from wallaroo.metrics.following import Followed
from wallaroo.metrics.registry import Registry


class Slow:
    """A sink that knows of its delivery only when it is asked, and then not the first time."""

    def __init__(self):
        self.written, self.pending, self.asked = 0, 1, 0

    def look(self):
        self.asked += 1
        if self.asked > 1:
            self.written, self.pending = 1, 0


def test_what_was_delivered_since_the_last_look_counts_at_a_stop():
    application = begun().to_sink(sink()).build()
    registry = Registry(application, "reference")
    ended = []
    registry.on_followed = ended.append

    async def stopped_at_once():
        deliveries = Deliveries(registry, {id_: Slow() for id_ in application.sinks})
        deliveries.came("p", 1)
        deliveries.handed_on(1, Followed("p", 0))
        assert ended == []
        deliveries.close()

    asyncio.run(stopped_at_once())
    [followed] = ended
    assert list(followed.delivered) == list(application.sinks)
    assert registry.sources["p"].latency.whole().count == 1
