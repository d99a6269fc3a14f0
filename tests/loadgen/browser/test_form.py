"""Locust's page as a person uses it: fill the form, press start, see the figures.

And as a page of somebody else would like to use it, in the same browser.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from load_runs import locusts_page, locusts_stats
from ports import free_port
from webdriver import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

FOREIGN = """<!doctype html><title>waiting</title><iframe name=frame></iframe>
<form method=post target=frame action="TARGET/swarm">
<input name=user_count value=1><input name=spawn_rate value=1><input name=rate value=7></form>
<script>
const fields = new URLSearchParams({user_count: 1, spawn_rate: 1, rate: 7});
const read = path => fetch("TARGET" + path).then(answer => answer.text());
(async () => {
  await fetch("TARGET/swarm", {method: "POST", mode: "no-cors", body: fields});
  const loaded = new Promise(done => document.querySelector("iframe").onload = done);
  document.forms[0].submit();
  await loaded;
  window.figures = await read("/wallaroo/figures").catch(error => String(error));
  document.title = "done";
})();
</script>"""


def page(target: int, listen: int, web: int) -> Any:
    options = f"--workload echo --to 127.0.0.1:{target} --warmup 0.3 --duration 60"
    return locusts_page(web, f"{options} --listen 127.0.0.1:{listen}")


@contextmanager
def foreign(url: str) -> Iterator[str]:
    """Serve a page of another origin that wants Locust to start a run."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(FOREIGN.replace("TARGET", url).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_rate_and_duration_are_set_in_the_form(start_target: Callable[..., int]) -> None:
    listen = free_port()
    target = start_target(listen)
    with page(target, listen, free_port()) as url, Browser() as browser:
        browser.open(url)
        browser.click("//button[.//p[text()='Custom parameters']]")
        for name, value in (("rate", "300"), ("duration", "2")):
            browser.fill(f"//input[@name='{name}']", value)
        fields = set(browser.names("//form//input[@name]"))
        locusts = {"userCount", "spawnRate", "host", "runTime", "profile"}
        ours = {"rate", "duration", "warmup", "cooldown", "schedule", "seed", "slo"}
        assert fields == locusts | ours
        browser.click("//button[@type='submit']")
        browser.wait(lambda: "600" in browser.row("latency"), "no 600 outputs in the table")
        browser.wait(lambda: "STOPPED" in browser.text(), "the run does not end by itself")
        browser.open(f"{url}/?tab=wallaroo")
        browser.wait(lambda: "99.99" in browser.text(), "no percentiles in our tab")


def test_the_page_says_why_a_value_is_refused() -> None:
    with page(1, 0, web := free_port()) as url, Browser() as browser:
        browser.open(url)
        browser.click("//button[.//p[text()='Custom parameters']]")
        browser.fill("//input[@name='rate']", "-5")
        browser.click("//button[@type='submit']")
        browser.wait(lambda: "a number above 0, not -5" in browser.text(), "nothing is said")
        assert locusts_stats(web)["state"] == "ready"


def test_a_page_of_another_origin_starts_nothing() -> None:
    with page(1, 0, web := free_port()) as url, foreign(url) as other, Browser() as browser:
        browser.open(other)
        browser.wait(lambda: browser.script("return document.title") == "done", "not done")
        assert "refused: the request comes from a page of" in browser.script(
            "return window.figures"
        )
        now = locusts_stats(web)
        assert (now["state"], now["user_count"]) == ("ready", 0)
