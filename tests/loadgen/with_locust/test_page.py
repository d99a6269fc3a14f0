"""Locust's page over HTTP: the runs its form starts, and the requests it refuses."""

from __future__ import annotations

import http.client
import json
import re
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from load_runs import locusts_page, locusts_stats
from ports import free_port, listening
from receiving import eventually

pytestmark = pytest.mark.xdist_group("Locust's page")  # which is started once

USERS = {"user_count": 1, "spawn_rate": 1}


class Page:
    """Requests to Locust's page."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, path: str, headers: dict[str, str] | None = None, **form: object) -> Any:
        """Return the status and the body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        body = urllib.parse.urlencode(form) if form else None
        kind = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
        connection.request("POST" if form else "GET", path, body, {**kind, **(headers or {})})
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found

    def get(self, path: str) -> Any:
        status, body = self.ask(path)
        assert status == 200, body
        return json.loads(body)


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, Path]]:
    """A page that may start runs, though none can work, and what its process says."""
    page = Page(free_port())
    log = tmp_path_factory.mktemp("locust") / "log"
    options = "--workload echo --to 127.0.0.1:9 --listen 127.0.0.1:0 --wait 1"
    with locusts_page(page.port, options, log=log):
        yield page, log


def test_runs_started_from_the_form(start_target: Callable[..., int]) -> None:
    listen, master = free_port(), free_port()
    page = Page(free_port())
    options = f"--processes 2 --master-bind-port {master} --master-port {master} --workload echo"
    options += f" --to 127.0.0.1:{start_target(listen)} --listen 127.0.0.1:{listen} -o size=80"
    with locusts_page(page.port, options):
        eventually(lambda: locusts_stats(page.port).get("worker_count") == 2)
        assert listening(master) == ["127.0.0.1"]  # for workers of this machine only
        form = {"duration": 1.5, "warmup": 0.3, "user_count": 2, "spawn_rate": 2}
        for rate in (200, 400):  # the second run against the same application
            status, body = page.ask("/swarm", **form, rate=rate)
            assert status == 200
            assert json.loads(body)["success"]

            def is_done(expected: float = rate * 1.5) -> bool:
                found = locusts_stats(page.port)
                counted = [row["num_requests"] for row in found["stats"][:1]]
                return counted == [expected] and found["state"] in {"stopped", "ready"}

            eventually(is_done)
            (table,) = page.get("/wallaroo/figures")["tables"]
            assert table[0][:3] == ["", "min", "p50"]
            assert table[1][0] == "latency"


def test_without_web_host_the_page_is_for_this_machine_only(idle: tuple[Page, Path]) -> None:
    page, log = idle
    assert f"Starting web interface at http://127.0.0.1:{page.port}," in log.read_text()
    assert listening(page.port) == ["127.0.0.1"]


def test_the_form_has_figures_and_nothing_that_names_a_file_or_address(
    idle: tuple[Page, Path],
) -> None:
    page, _ = idle
    _, html = page.ask("/")
    found = re.search(r"window\.templateArgs = (.*?);?\s*</script>", html, re.DOTALL)
    assert found is not None
    options = json.loads(found[1].split("\n")[0].rstrip(";"))["extra_options"]
    assert set(options) == {"rate", "duration", "warmup", "cooldown", "schedule", "seed", "slo"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8089"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "192.0.2.1"},
        {"Host": "[::1"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Host": "evil.example", "Origin": "http://evil.example"},
    ],
)
def test_a_request_from_elsewhere_is_refused(
    idle: tuple[Page, Path], headers: dict[str, str]
) -> None:
    page, _ = idle
    before = page.get("/stats/requests")
    for path in ("/", "/stats/requests", "/wallaroo/figures", "/no/such"):
        status, body = page.ask(path, headers)
        assert (status, body.startswith("refused: ")) == (403, True), path
    assert page.ask("/swarm", headers, **USERS)[0] == 403
    assert page.ask("/stop", headers, stop="now")[0] == 403
    after = page.get("/stats/requests")
    assert after["state"] == before["state"] == "ready"
    assert after["user_count"] == 0


def test_a_request_of_this_page_or_of_a_program_is_answered(idle: tuple[Page, Path]) -> None:
    page, _ = idle
    for host in (f"127.0.0.1:{page.port}", f"localhost:{page.port}", "[::1]:9000", "LOCALHOST"):
        assert page.ask("/stats/requests", {"Host": host})[0] == 200
        own = {"Host": host, "Origin": f"http://{host}"}
        assert page.ask("/stats/requests", own)[0] == 200


@pytest.mark.parametrize(
    "name", ["workload", "to", "listen", "option", "load_json", "load_html", "load_hdr", "web_name"]
)
def test_what_names_files_and_addresses_is_for_the_command_line(
    idle: tuple[Page, Path], tmp_path: Path, name: str
) -> None:
    page, _ = idle
    file = tmp_path / "file.py"
    file.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    text = file.read_text()
    status, body = page.ask("/swarm", **USERS, **{name: str(file)})
    assert status == 403
    assert f"{name} cannot be set from a page" in body
    assert page.get("/stats/requests")["state"] == "ready"
    assert file.read_text() == text
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"rate": "fast"}, "rate is a number, not 'fast'"),
        ({"rate": "-1"}, "the rate is a number above 0, not -1"),
        ({"duration": "nan"}, "the duration is a number above 0"),
        ({"seed": "-1"}, "--seed is at least 0"),
        ({"schedule": "sometimes"}, "no schedule is called 'sometimes'"),
        ({"slo": "fast"}, "an SLO is a bound on latency"),
    ],
)
def test_a_form_says_why_a_value_is_refused_and_starts_nothing(
    idle: tuple[Page, Path], form: dict[str, str], words: str
) -> None:
    page, _ = idle
    status, body = page.ask("/swarm", **USERS, **form)
    assert status == 200  # as Locust has it
    assert json.loads(body)["success"] is False
    assert words in json.loads(body)["message"]
    assert page.get("/stats/requests")["state"] == "ready"
