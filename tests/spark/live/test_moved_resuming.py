"""A sink whose peer remembers, on a checkpoint written for another engine (sink-9, scale-1)."""

import pytest
from counted import line, send, text
from live_on_spark import PATIENCE, served_here
from receiving import eventually
from wallaroo_conformance.live.peers import SinkPeer
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.options import CheckpointOptions
from wallaroo_reference.serving import server as reference
from wallaroo_spark.jvm.session import session

import wallaroo
from wallaroo.cli.main import main
from wallaroo.engine import ServeOptions


def application(port):
    source = wallaroo.TCPSourceConfig("127.0.0.1", 0, text)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", port, line, resume=True)
    return wallaroo.build_application("kept", wallaroo.source("p", source).to_sink(sink))


def application_setup(args):
    return application(1)


@pytest.mark.xdist_group("spark")
def test_sink_9_the_peer_is_ahead_by_what_a_killed_run_on_the_other_engine_has_sent(
    spark_engine, tmp_path
):
    session()
    peer = SinkPeer(remembers=True)
    app = application(peer.address[1])
    directory, moved = tmp_path / "reference", tmp_path / "spark"
    handle = reference.Server(
        app,
        lambda: Compiled(app, keeps=True),
        ServeOptions(),
        checkpoint=CheckpointOptions.given({"checkpoint": directory, "checkpoint_interval": 600}),
    )
    sent = [f"{number:02} {'x' * 200}" for number in range(4)]
    outputs = [f"{message}\n".encode() for message in sent]
    for message in sent:
        send(handle, message)
    eventually(lambda: not peer.missing(outputs))
    handle.kill()
    anew = ["--to", "spark", "--app", __file__, "-o", str(moved)]
    assert main(["checkpoint", str(directory), *anew]) == 0
    again, _ = served_here(app, moved, partitions=None, batch_bytes=500)
    send(again, "new")
    again.stop()
    assert again.wait(PATIENCE).exit_code == 0
    assert peer.missing([*outputs, b"new\n"]) == ""
    peer.close()
