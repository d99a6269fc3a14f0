"""A sender's connection on real sockets: frames in order, how it ends, senders that misbehave."""

import asyncio
import socket
import threading

import pytest
from listening import PAYLOADS, STREAM, closed_by_peer, told_that_all_is_taken


def test_frame_4_a_half_closed_connection_stays_until_all_before_is_sequenced(
    loop_thread, edge, eventually
):
    closings = []
    e = edge(when_sequenced=closings.append)
    with e.connect() as sock:
        sock.sendall(STREAM)
        sock.shutdown(socket.SHUT_WR)
        eventually(lambda: closings)
        assert e.of("a") == PAYLOADS
        sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        loop_thread.post(closings[0])
        sock.settimeout(60)
        assert closed_by_peer(sock)


def test_frame_4_only_what_is_sequenced_is_closed_in_order(loop_thread, edge, eventually):
    closings = []
    e = edge(when_sequenced=closings.append)
    with e.connect() as taken, e.connect() as open_still, e.connect() as waiting:
        for number, sock in enumerate((taken, waiting), 1):
            sock.sendall(STREAM)
            sock.shutdown(socket.SHUT_WR)
            eventually(lambda number=number: len(closings) == number)
        open_still.sendall(STREAM)
        eventually(lambda: len(e.order) == 3 * len(PAYLOADS))
        loop_thread.call(closings[0])
        e.close()
        loop_thread.call(closings[1])  # it comes too late
        assert told_that_all_is_taken(taken)
        assert not told_that_all_is_taken(waiting)
        assert not told_that_all_is_taken(open_still)


def test_frame_4_a_stop_closes_in_order_once_all_is_sequenced(loop_thread, edge, eventually):
    closings = []
    e = edge(when_sequenced=closings.append)
    with e.connect() as sock, e.connect() as silent:
        sock.sendall(STREAM + b"\0")
        eventually(lambda: len(e.order) == len(PAYLOADS))
        stopping = threading.Thread(target=loop_thread.run, args=(e.listener.stop(),))
        stopping.start()
        eventually(lambda: len(closings) == 2)
        assert stopping.is_alive(), "it waits until what it has read is sequenced"
        for close in closings:
            loop_thread.call(close)
        stopping.join()
        assert told_that_all_is_taken(sock)
        assert told_that_all_is_taken(silent)


def test_frame_4_a_stop_that_is_given_up_resets(loop_thread, edge, eventually):
    closings = []
    e = edge(when_sequenced=closings.append)
    with e.connect() as sock:
        sock.sendall(STREAM)
        eventually(lambda: len(e.order) == len(PAYLOADS))
        stopping = asyncio.run_coroutine_threadsafe(e.listener.stop(), loop_thread._loop)
        eventually(lambda: closings)
        stopping.cancel()
        e.close()
        assert not told_that_all_is_taken(sock)


def test_one_connection_too_many_is_reset_and_the_others_go_on(edge, eventually, caplog):
    e = edge("a", "b", max_connections=2)
    with e.connect() as one, e.connect("b") as two:
        eventually(lambda: len(e.listener.connections) == 2)
        with pytest.raises(ConnectionResetError), e.connect() as three:
            three.recv(1)
        one.sendall(STREAM)
        two.close()
        eventually(lambda: len(e.order) == len(PAYLOADS))
        eventually(lambda: len(e.listener.connections) == 1)
        with e.connect() as four:
            four.sendall(STREAM)
            eventually(lambda: len(e.order) == 2 * len(PAYLOADS))
    assert e.listener.refused == {"a": 1, "b": 0}
    assert caplog.messages == [
        "source a: a connection is refused: 2 are open, the most it takes (--max-connections)"
    ]


def test_dead_peers_are_noticed(edge, eventually):
    e = edge()
    with e.connect() as sock:
        sock.sendall(STREAM)
        eventually(lambda: e.order)
        (connection,) = e.listener.connections
        accepted = connection._transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60


def test_frame_4_an_idle_connection_is_closed_and_makes_room(edge, eventually, caplog):
    # So long that nobody who sends at once is idle, on a machine with much other work too.
    e = edge(max_connections=1, idle_timeout=1.0)
    with e.connect() as silent:
        silent.sendall(STREAM + b"\0\0")
        assert told_that_all_is_taken(silent)
        eventually(lambda: not e.listener.connections)
        with e.connect() as healthy:
            healthy.sendall(STREAM)
            healthy.shutdown(socket.SHUT_WR)
            assert told_that_all_is_taken(healthy)
    assert e.of("a") == 2 * PAYLOADS
    assert e.dropped == {"a": 1}
    assert "has sent nothing for 1 s; the connection is closed (--idle-timeout)" in caplog.text
    assert "its 2 bytes are dropped (frame-4)" in caplog.text
