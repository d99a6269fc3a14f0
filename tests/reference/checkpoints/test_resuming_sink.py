"""A checkpoint whose sink's peer remembers, in some runs and not in others (sink-9)."""

import contextlib

from counted import line, send, text
from receiving import Receiver, eventually
from wallaroo_conformance.live.peers import SinkPeer

import wallaroo


def application(port, *, resume):
    source = wallaroo.TCPSourceConfig("127.0.0.1", 0, text)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", port, line, resume=resume)
    return wallaroo.build_application("app", wallaroo.source("p", source).to_sink(sink))


def run(serve, app, message):
    handle = serve(app)
    send(handle, message)
    handle.stop()
    assert handle.wait(60).exit_code == 0


def test_sink_9_a_run_without_resume_ends_the_stream_so_that_nothing_is_missing_unseen(
    serve, caplog
):
    with contextlib.closing(SinkPeer(remembers=True)) as peer:
        on = application(peer.address[1], resume=True)
        run(serve, on, "a")
        run(serve, application(Receiver().port, resume=False), "b")
        handle = serve(on)
        send(handle, "c")
        eventually(lambda: "it has kept 2 bytes, and 0 of the sink's stream" in caplog.text)
        assert peer.missing([b"a\n"]) == ""
        handle.kill()
    with contextlib.closing(SinkPeer(remembers=True)) as peer:
        run(serve, application(peer.address[1], resume=True), "d")
        assert peer.missing([b"c\n", b"d\n"]) == ""


def test_sink_9_a_run_whose_sources_have_ended_waits_until_a_peer_has_all_again(serve):
    """A peer that is killed may lose what only its system has acknowledged."""
    made = wallaroo.GenSourceConfig(Two())
    with contextlib.closing(SinkPeer(remembers=True)) as peer:
        sink = wallaroo.TCPSinkConfig("127.0.0.1", peer.address[1], line, resume=True)
        app = wallaroo.build_application("app", wallaroo.source("p", made).to_sink(sink))
        peer.hold()
        assert serve(app).wait(60).exit_code == 0
        with contextlib.suppress(OSError):  # the connection may have ended by itself
            peer.break_off()
        peer.read_on()
        assert serve(app).wait(60).exit_code == 0
        eventually(lambda: peer.missing([b"a\n", b"b\n"]) == "")


class Two:
    """Gives two messages."""

    def initial_value(self):
        return "a"

    def apply(self, last):
        return "b" if last == "a" else None
