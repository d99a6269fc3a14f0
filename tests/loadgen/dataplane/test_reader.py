"""The receiver when its process may open no more files."""

from __future__ import annotations

import sys

from running import ran

PROGRAM = """
import os, resource, socket, time
from wallaroo_loadgen.dataplane.reader import Reader

listener = socket.create_server(("127.0.0.1", 0))
reader = Reader(listener)
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
clients = [socket.create_connection(listener.getsockname()) for _ in range(3)]
spare = os.open(os.devnull, os.O_RDONLY)
resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 2, most))  # room for one connection
reader.start()
while reader.problem is None:
    time.sleep(0.01)
print(reader.problem, reader.accepted)
for client in clients:
    client.sendall(b"x")
while not (reads := reader.read_so_far()):  # the one it has is read all the same
    time.sleep(0.01)
print([data for _, _, data in reads])
"""


def test_without_files_it_says_so_and_reads_the_connections_that_it_has() -> None:
    done = ran([sys.executable, "-c", PROGRAM])
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "the receiver cannot accept a connection: Too many open files 1",
        "[b'x']",
    ]
