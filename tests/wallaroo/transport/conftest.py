import pytest
import receiving
from listening import Edge

from wallaroo.transport.input_log import InputLog
from wallaroo.transport.threads import LoopThread


@pytest.fixture
def log(tmp_path):
    """An input log of one mebibyte at most."""
    made = InputLog.open(tmp_path / "log", max_bytes=1 << 20)
    yield made
    made.close()


@pytest.fixture
def loop_thread():
    thread = LoopThread("test")
    thread.start()
    yield thread
    assert thread.stop(60)


@pytest.fixture
def eventually():
    return receiving.eventually


@pytest.fixture
def edge(loop_thread):
    edges = []

    def make(*names, **options):
        edges.append(Edge(loop_thread, *(names or ["a"]), **options))
        return edges[-1]

    yield make
    for each in edges:
        each.close()
