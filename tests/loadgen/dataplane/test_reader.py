"""The receiver's reading thread when this process may open no more files."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, resource, socket, sys, threading, time
from wallaroo_loadgen.dataplane.reader import Reader

class Listener(socket.socket):
    "Counts how often a connection is asked for."
    asked = 0
    def accept(self):
        self.asked += 1
        return super().accept()

listener = Listener()
listener.bind(("127.0.0.1", 0))
listener.listen(8)
listener.setblocking(False)
reader = Reader(listener)
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
clients = [socket.create_connection(listener.getsockname()) for _ in range(3)]
spare = os.open(os.devnull, os.O_RDONLY)
resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 2, most))  # room for one connection
thread = threading.Thread(target=reader.run)
thread.start()

def wait(true):
    while not true():
        time.sleep(0.01)

wait(lambda: reader.accept_error is not None)
print(reader.accept_error, reader.accepted)
for client in clients:
    client.sendall(b"x")
reads = []
wait(lambda: reads.extend(reader.read_so_far()) or reads)  # the one it has is read meanwhile
time.sleep(1)
print("asked too often" if listener.asked > 10 else "waits")
resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 20, most))
wait(lambda: reads.extend(reader.read_so_far()) or len(reads) == 3)
print("all", reader.accepted)
reader.stop()
thread.join()
for client in clients:
    client.close()
"""


def test_without_files_it_waits_and_goes_on_when_there_are_some() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "the receiver could not accept a connection: Too many open files 1",
        "waits",
        "all 3",
    ]
