"""What `--metrics` answers, and what it refuses."""

import http.client
import json
import re
import socket
import threading

import pytest
from receiving import eventually

from wallaroo.metrics.registry import Registry
from wallaroo.monitor import pages, server
from wallaroo.monitor.server import Monitor

from .conftest import NASTY, dead_letter


def test_the_figures_are_plain_json(ask):
    status, headers, figures = ask("/api")
    assert status == 200
    assert headers["Cache-Control"] == "no-store"
    assert figures["application"] == NASTY
    assert figures["steps"][0]["name"] == NASTY
    assert figures["steps"][0]["dead_letters"] == {"raised": 1}
    assert figures["steps"][0]["time"]["p50"] == pytest.approx(0.005, rel=0.01)
    assert figures["partitions"][0]["busiest"][0]["visits"] == 3
    assert "history" not in figures
    assert list(ask("/api?history")[2]["history"]) == ["times", "values"]


def test_nothing_of_users_is_markup_on_the_page(ask):
    status, headers, content = ask("/")
    page = content.decode()
    assert status == 200
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert len(re.findall("<script", page)) == 2
    assert "\x1b" not in page
    nonce = re.search("script-src 'nonce-([^']+)'", headers["Content-Security-Policy"])[1]
    assert page.count(f'<script nonce="{nonce}">') == 2
    assert not re.search(r"(src|href)=.?https?:", page)


def test_without_the_package_it_says_what_to_install(ask, monkeypatch):
    def missing(*_):
        raise ModuleNotFoundError

    monkeypatch.setattr(server, "exposition", missing)
    status, _, content = ask("/metrics")
    assert status == 501
    assert b"pip install 'wallaroo-streams[metrics]'" in content


def test_ready_says_why_not(ask, registry):
    assert ask("/ready")[:3:2] == (200, {"ready": True, "reasons": []})
    (sink,) = registry.sinks.values()
    sink.full, sink.connected, sink.waiting = True, False, 12400
    status, _, found = ask("/ready")
    assert status == 503
    assert found["reasons"][0].endswith("is away, and 12,400 outputs wait for it")
    registry.state = "stopping"
    assert ask("/ready")[2] == {"ready": False, "reasons": ["it is stopping"]}
    assert ask("/health")[0] == 200


def test_user_code_that_does_not_return_is_named(ask, registry):
    registry.heard = registry.monotonic() - 12
    registry.thread = threading.get_ident()
    (why,) = ask("/ready")[2]["reasons"]
    assert re.fullmatch(r"user code at .* has not returned for 12 s", why)
    assert ask("/api")[2]["verdict"]["level"] == "bad"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_nothing_can_be_set(ask, method):
    status, headers, _ = ask("/api", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_an_unknown_page_names_those_that_there_are(ask):
    status, _, content = ask("/nothing/../etc")
    assert status == 404
    assert b"/metrics" in content


def test_a_gigabyte_is_not_read(monitor, ask):
    for request in (b"POST /api", b"GET /api"):
        with socket.create_connection(monitor.address, timeout=60) as sock:
            sock.sendall(
                request + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n"
            )
            answer = sock.recv(200)
            assert answer.startswith((b"HTTP/1.1 405", b"HTTP/1.1 413"))
            with pytest.raises(OSError, match=r"reset|Broken"):  # noqa: PT012 - until it is noticed
                for _ in range(1000):
                    sock.sendall(b"x" * 1_000_000)
    assert ask("/health")[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example"])
def test_another_name_is_refused(ask, host):
    status, _, content = ask("/api", Host=host)
    assert status == 403
    assert b"is not a name of this server" in content


def test_on_all_addresses_the_host_name_is_answered_and_how_to_add_another_is_said(
    registry, monkeypatch
):
    monkeypatch.setattr(socket, "gethostname", lambda: "orders")
    monitor = Monitor(registry, "0.0.0.0", 0)
    monitor.start()
    port = monitor.address[1]
    answers = []
    for name in (f"orders:{port}", f"192.0.2.1:{port}", "evil.example"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/health", headers={"Host": name})
        answer = connection.getresponse()
        answers.append((answer.status, answer.read()))
        connection.close()
    monitor.close()
    assert [status for status, _ in answers] == [200, 200, 403]
    assert b"of a container: --hostname" in answers[-1][1]


def test_pages_of_others_are_refused(ask):
    assert ask("/api", Origin="http://evil.example")[0] == 403
    assert ask("/api", Origin="null")[0] == 403
    assert ask("/events", Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="empty")[0] == 403
    assert ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="iframe")[0] == 403
    assert ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="document")[0] == 200
    headers = ask("/")[1]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers


class Reader:
    """An open page."""

    def __init__(self, monitor):
        self.connection = http.client.HTTPConnection(*monitor.address, timeout=60)
        self.connection.request("GET", "/events")
        self.answer = self.connection.getresponse()

    def event(self):
        kind = "message"
        while line := self.answer.readline():
            if line.startswith(b"event: "):
                kind = line[7:].decode().strip()
            if line.startswith(b"data: "):
                return kind, json.loads(line[6:])
        return None

    def close(self):
        self.answer.close()
        self.connection.close()


def test_ten_pages_get_every_second_and_a_reopened_one_its_history(monitor):
    readers = [Reader(monitor) for _ in range(10)]
    assert {page.event()[0] for page in readers} == {"history"}
    monitor.tick()
    events = [page.event() for page in readers]
    assert {kind for kind, _ in events} == {"message"}
    assert len({figures["last"]["time"] for _, figures in events}) == 1
    for page in readers:
        page.close()
    again = Reader(monitor)
    kind, figures = again.event()
    assert kind == "history"
    assert len(figures["history"]["times"]) >= 1
    again.close()


def test_an_open_page_does_not_keep_the_run_from_ending(registry):
    monitor = Monitor(registry, "127.0.0.1", 0)
    monitor.start()
    page = Reader(monitor)
    page.event()
    monitor.close()
    while page.event() is not None:
        pass
    page.close()


def test_there_are_no_more_connections_than_may_be(monitor, ask, monkeypatch):
    monkeypatch.setattr(pages, "_MOST_CONNECTIONS", 3)
    monkeypatch.setattr(pages, "_FOR_PROBES", 2)
    socks = [socket.create_connection(monitor.address, timeout=60) for _ in range(12)]

    def refused(sock):
        sock.setblocking(False)
        try:
            return sock.recv(1) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    eventually(lambda: sum(map(refused, socks)) >= 7)
    assert sum(map(refused, socks)) == 7
    for sock in socks:
        sock.close()


def test_readers_of_the_page_do_not_take_the_probes_away(monitor, ask):
    readers = [Reader(monitor) for _ in range(64)]
    assert ask("/health")[0] == 200
    assert ask("/ready")[0] == 200
    status, _, content = ask("/api")
    assert (status, content) == (
        503,
        b"too many connections; only /health, /ready are answered\n",
    )
    for page in readers:
        page.close()


@pytest.mark.parametrize("path", ["http://[", "http://[::1"])
def test_an_address_that_cannot_be_read_is_refused_without_a_line_in_the_log(
    monitor, ask, caplog, path
):
    with socket.create_connection(monitor.address, timeout=60) as sock:
        sock.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode("latin-1"))
        assert sock.recv(100).startswith(b"HTTP/1.1 400")
    assert ask("/health")[0] == 200
    assert caplog.records == []


def test_a_bug_behind_a_page_is_one_line_in_the_log(monitor, ask, caplog, monkeypatch):
    def broken(*_, **__):
        raise ValueError("no\x1b[31m figures")

    monkeypatch.setattr(server, "snapshot", broken)
    for _ in range(10):
        with pytest.raises(http.client.RemoteDisconnected):
            ask("/api")
    (record,) = caplog.records
    assert "ValueError: no\\x1b[31m figures, at " in record.getMessage()
    assert "\n" not in record.getMessage()
    assert record.exc_info is None


def test_a_request_that_does_not_come_is_not_awaited_for_ever(monitor, monkeypatch):
    monkeypatch.setattr(pages, "_SECONDS", 0.0)
    with socket.create_connection(monitor.address, timeout=60) as sock:
        sock.sendall(b"GET / HTT")
        assert sock.recv(100) == b""


def test_memory_is_bounded_whatever_comes(application):
    registry = Registry(application, "reference")
    for number in range(300):
        registry.add_dead_letters([dead_letter("e" * 2000, b"x" * 1_000_000)] * 30)
        registry.partitions[NASTY].add_visits({(number, one): 1 for one in range(40)}, 1)
        registry.nodes[1].time.add(range(number * 10_000, number * 10_000 + 500))
        registry.tick()
    assert len(registry.letters) == 20
    assert sum(len(letter.payload) for _, _, letter in registry.letters) < 20_000
    assert len(registry.partitions[NASTY].busiest.top(10**6)) < 1500
    assert len(registry.nodes[1].time.buckets) < 3800
