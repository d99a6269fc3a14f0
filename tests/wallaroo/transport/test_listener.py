"""The listener on real sockets: who may connect where, flow control, stopping."""

import asyncio
import gc
import io
import socket

import pytest
from listening import STREAM, Received, closed_by_peer, source, told_that_all_is_taken
from small_steps import decode

import wallaroo
from wallaroo.errors import UnsupportedTopology
from wallaroo.topology import Source
from wallaroo.transport.listener import Listener, ListenError, listening_sources


def test_stop_1_connections_being_accepted_at_the_end_are_closed(loop_thread):
    listener = Listener({"a": source()}, Received())
    socks = [socket.create_connection(listener.addresses["a"]) for _ in range(50)]

    async def end_while_accepting():
        stopping = asyncio.ensure_future(listener.stop())
        await asyncio.sleep(0)
        listener.close()
        await stopping

    loop_thread.run(end_while_accepting())
    gc.collect()  # what was not closed warns now
    assert all(closed_by_peer(sock) for sock in socks)
    for sock in socks:
        sock.close()


def test_while_paused_nobody_is_idle(loop_thread, edge):
    e = edge(idle_timeout=0.01)
    loop_thread.call(e.listener.pause)
    with e.connect() as sock:
        sock.sendall(STREAM)
        sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        loop_thread.call(e.listener.resume)
        sock.settimeout(60)
        assert told_that_all_is_taken(sock)


def test_a_port_in_use_is_one_line_and_closes_the_others(edge):
    e = edge()
    host, port = e.listener.addresses["a"]
    free = source()
    taken = wallaroo.TCPSourceConfig(host, port, decode)
    message = f"source b cannot listen on {host}:{port}: Address already in use"
    with pytest.raises(ListenError, match=message):
        Listener({"c": free, "b": taken}, Received())


def test_a_host_that_is_unknown_is_one_line():
    config = wallaroo.TCPSourceConfig("no such host", 0, decode)
    with pytest.raises(ListenError, match="source a cannot listen on no such host:0: "):
        Listener({"a": config}, Received())


def test_a_name_is_listened_on_and_announced(edge):
    config = wallaroo.TCPSourceConfig("localhost", 0, decode)
    listener = Listener({"my\x1b[31m source": config}, Received())
    port = listener.addresses["my\x1b[31m source"][1]
    stream = io.StringIO()
    listener.announce(stream)
    assert stream.getvalue() == f"source my\\x1b[31m source listening on 127.0.0.1:{port}\n"
    listener._stop_listening()


def test_sources_stay_where_they_were_if_asked_to(edge):
    e = edge()
    addresses = dict(e.listener.addresses)
    e.close()
    again = edge(addresses=addresses)
    assert again.listener.addresses == addresses


def test_build_2_a_source_that_is_not_over_tcp_is_refused():
    class Queue:
        pass

    with pytest.raises(UnsupportedTopology, match="there is no listener for a Queue"):
        listening_sources({"a": Source("a", Queue())})
