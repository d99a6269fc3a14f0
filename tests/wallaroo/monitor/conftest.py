"""A monitor whose figures a test sets and lets tick whole."""

from __future__ import annotations

import http.client
import json

import letters
import pytest
from counted import Count, line, whole

import wallaroo
from wallaroo.metrics.registry import Registry
from wallaroo.monitor.server import Monitor

NASTY = "a \"quoted\"\nname </script><script>alert(1)</script> \x1b[31m \ud800 'x' \\"


@wallaroo.decoder(header_length=4, length_fmt=">I")
def text(payload):
    return payload.decode("utf-8", "surrogatepass")


@wallaroo.computation(name=NASTY)
def nasty(message):
    return message


@wallaroo.state_computation(name="count")
def count(message, state):
    return message, True


@pytest.fixture
def application():
    return (
        wallaroo.ApplicationBuilder(NASTY)
        .new_pipeline(NASTY, wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
        .to(nasty)
        .to_state_partition(count, Count, NASTY, whole)
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 1, line))
        .build()
    )


@pytest.fixture
def registry(application):
    registry = Registry(application, "reference", partitions=4)
    registry.state = "running"
    registry.partitions[NASTY].add_visits({NASTY: 3, 7: 1}, 1)
    registry.nodes[1].time.add([5_000_000] * 4)
    registry.add_dead_letters([dead_letter()])
    for sink in registry.sinks.values():
        sink.connected = True
    return registry


def dead_letter(error: str = NASTY, payload: bytes = b"<img src=x onerror=alert(2)>\n"):
    named = dict.fromkeys(("source", "pipeline", "step", "key"), NASTY)
    return letters.dead_letter(lineage=(3,), **named, position=0, error=error, payload=payload)


@pytest.fixture
def monitor(registry):
    monitor = Monitor(registry, "127.0.0.1", 0)
    monitor.start()
    yield monitor
    monitor.close()


@pytest.fixture
def ask(monitor):
    """Ask for a path; returns the status, the headers and the content."""

    def ask(path="/api", method="GET", **headers):
        connection = http.client.HTTPConnection(*monitor.address, timeout=60)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=names)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if answer.headers["Content-Type"] == "application/json":
            content = json.loads(content)
        return answer.status, answer.headers, content

    return ask
