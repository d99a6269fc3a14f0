"""An application to serve on the reference engine, and its senders."""

import socket

import pytest
from counted import line, text
from receiving import hand_over

import wallaroo

BOTH = pytest.mark.parametrize("isolation", ["trusting", "isolated"])


@wallaroo.computation(name="shout")
def shout(message):
    return message.upper()


def application(port, *steps, decoder=text, encoder=line, sinks=1, **options):
    builder = wallaroo.ApplicationBuilder("app").new_pipeline(
        "p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decoder, **options)
    )
    for method, *arguments in steps:
        getattr(builder, method)(*arguments)
    return builder.to_sinks([wallaroo.TCPSinkConfig("127.0.0.1", port, encoder)] * sinks).build()


def connect(handle, source="p"):
    return socket.create_connection(handle.addresses[source], timeout=60)


def send(handle, data, source="p"):
    hand_over(handle.addresses[source], data)


def stopped(handle):
    handle.stop()
    summary = handle.wait(60)
    assert summary is not None
    return summary


def raising(*_):
    raise ValueError("no")


def if_bad(result):
    """Return a function that does `result(message)` for the message "bad"."""

    def function(message):
        return result(message) if message == "bad" else message

    return function
