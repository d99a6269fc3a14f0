"""The sinks that a live check gives to an engine."""

from __future__ import annotations

import socket

from wallaroo_conformance.live.peers import SinkPeer


def test_a_sink_that_goes_away_keeps_no_connection_that_has_just_come() -> None:
    # One that it kept would take outputs: the engine would be blamed for having none that wait.
    for _ in range(200):
        peer = SinkPeer()
        with socket.create_connection(peer.address):
            peer.go_away()
            assert peer.connections == 0
        peer.close()
