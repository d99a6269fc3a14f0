"""The live page in a real browser: under load, with a stalled sink, with failing messages."""

import re
import socket
import threading
import time
from pathlib import Path

import pytest
from counted import line, text
from receiving import Receiver
from wallaroo_reference.engine import ReferenceEngine
from webdriver import Browser

import wallaroo
from wallaroo.engine import ServeOptions, load_engine
from wallaroo.frames import frames
from wallaroo.metrics.registry import Registry
from wallaroo.metrics.verdict import duration
from wallaroo.monitor.server import Monitor
from wallaroo.trace import DeadLetter, Reason

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NASTY = "</script><img src=x onerror=window.run=1> \"'`\n\x1b[31m"


@wallaroo.computation(name=NASTY)
def nasty(message):
    if message == "bad":
        raise ValueError(NASTY)
    return message


@wallaroo.computation(name="look up")
def look_up(message):
    return message


class Count:
    def __init__(self):
        self.count = 0


@wallaroo.state_computation(name="count")
def count(message, state):
    return message, True


@wallaroo.partition
def itself(message):
    return message


class Live:
    """A run with its page, to which messages are sent until its end."""

    def __init__(self, port, engine=None, **options):
        application = (
            wallaroo.ApplicationBuilder("Looked at")
            .new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
            .to(nasty)
            .to_state_partition(count, Count, "counts", itself)
            .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", port, line))
            .build()
        )
        engine = engine or ReferenceEngine()
        self.registry = Registry(application, engine.name)
        self.monitor = Monitor(self.registry, "127.0.0.1", 0)
        self.monitor.start()
        self.handle = engine.serve(application, ServeOptions(metrics=self.registry, **options))
        self._over = threading.Event()

    def send(self, payloads):
        (address,) = self.handle.addresses.values()
        with socket.create_connection(address) as sock:
            sock.settimeout(0.5)
            while not self._over.is_set():
                time.sleep(0.02)
                if self.registry.backlog > 1000:
                    continue  # all of it must be processed before the run ends, however slowly
                try:
                    sock.sendall(frames(payloads))
                except TimeoutError:
                    return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._over.set()
        self.handle.stop()
        self.handle.wait(120)
        self.monitor.close()


@pytest.fixture
def sending():
    threads = []

    def sending(live, payloads):
        threads.append(threading.Thread(target=live.send, args=(payloads,)))
        threads[-1].start()

    yield sending
    for thread in threads:
        thread.join(60)


LOOKS = ({}, {"dark": True}, {"width": 390, "height": 1600}, {"width": 390, "dark": True})

UNREADABLE = """
const light = (colour) => {
  const linear = (one) => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
  const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((one) => linear(one / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (one) => {
  for (; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (!/, 0\\)$|transparent/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
};
const found = [];
const texts = "h1, h2, h3, p, dt, dd, th, td, a, summary, figcaption, svg text";
for (const one of document.querySelectorAll(texts)) {
  if (!one.getClientRects().length || !one.textContent.trim()) continue;
  const style = getComputedStyle(one), drawn = one instanceof SVGElement;
  const paper = drawn && one.closest("svg").querySelector("rect");
  const under = drawn ? getComputedStyle(paper).fill : behind(one);
  const both = [light(drawn ? style.fill : style.color), light(under)];
  if ((Math.max(...both) + 0.05) / (Math.min(...both) + 0.05) < 4.5)
    found.push(one.textContent.trim().slice(0, 40));
}
return found;
"""
"""Texts whose contrast is below what WCAG asks for (AA, 4.5 to 1)."""

COVERED = """
const kinds = ["rate", "live", "dead", "name"].map((one) => "#picture ." + one).join();
const texts = [...document.querySelectorAll(kinds)].filter((one) => one.textContent)
  .map((one) => [one.textContent, one.getBoundingClientRect()]);
const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3
  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
return texts.flatMap(([text, a], at) =>
  texts.slice(at + 1).filter(([, b]) => over(a, b)).map(([other]) => text + " / " + other));
"""
"""Texts in the picture that lie on one another."""

TOO_WIDE = """
return [...document.querySelectorAll("#plots figure")]
  .filter((one) => one.querySelector(".uplot").offsetWidth > one.clientWidth + 1)
  .map((one) => one.querySelector("figcaption").textContent);
"""
"""Plots that run out of their columns."""


def looks_well(browser):
    """Nothing runs out of the window, or over something else, and all of it can be read."""
    for look in LOOKS:
        browser.looks(**look)
        time.sleep(0.3)
        assert len(browser.picture()) > 25_000
        wide = "return document.documentElement.scrollWidth <= innerWidth"
        assert browser.script(wide), look
        assert browser.script(UNREADABLE) == [], look
        assert browser.script(COVERED) == [], look
    browser.looks()


def test_an_operator_sees_what_happens_on_any_screen(sending):
    receiver = Receiver()
    with Live(receiver.port) as live, Browser() as browser:
        sending(live, [b"one", b"two", b"two", b"bad"])
        browser.open(live.monitor.url)
        browser.wait(lambda: "Messages fail at step" in browser.text(), "no verdict")
        browser.wait(lambda: len(browser.row("count")) > 3, "no steps")
        assert browser.row("p")[12:] == [browser.row("p")[12], "0"]
        browser.wait(
            lambda: browser.script("return document.querySelectorAll('#plots canvas').length") == 4,
            "no lines",
        )
        assert browser.script(TOO_WIDE) == []
        rates = "return [...document.querySelectorAll('#picture .rate')].map(t => t.textContent)"
        browser.wait(lambda: all(browser.script(rates)), "no rates in the picture")
        hot = "return document.querySelector('#partitions td').innerText"
        assert browser.script(hot) == "'two'"
        assert browser.script("return window.run") is None
        looks_well(browser)
        receiver.close()


def test_the_picture_of_six_steps_is_whole_and_dates_are_written_in_one_way():
    builder = wallaroo.ApplicationBuilder("six")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
    for _ in range(6):
        builder.to(look_up)
    builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 1, line))
    registry = Registry(builder.build(), "reference")
    registry.add_dead_letters(
        [DeadLetter((1,), "p", "p", "look up", 0, None, None, Reason.RAISED, "E", "bad", b"x")]
    )
    monitor = Monitor(registry, "127.0.0.1", 0)
    monitor.start()
    cut = "const one = document.querySelector('#picture'); return one.scrollWidth > one.clientWidth"
    more = "return !document.querySelector('#more').hidden"
    with Browser() as browser:
        browser.open(monitor.url)
        browser.wait(lambda: browser.row("look up (step 6 of p)"), "steps are not told apart")
        assert not browser.script(cut)
        assert not browser.script(more)
        letter = browser.script("return document.querySelector('summary').innerText")
        assert re.match(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d · ", letter)
        assert browser.script("return [0.01, 200, 9000, 2.3e7, -200].map(duration)") == [
            duration(one) for one in (0.01, 200, 9000, 2.3e7, -200)
        ]
        looks_well(browser)
        browser.looks(width=390)
        browser.wait(lambda: browser.script(more), "that there is more is not said")
    monitor.close()


def test_the_page_is_used_by_keyboard_and_goes_on_after_it_was_closed(sending):
    receiver = Receiver()
    with Live(receiver.port) as live, Browser() as browser:
        sending(live, [b"bad"])
        browser.open(live.monitor.url)
        browser.wait(lambda: browser.script("return !!document.querySelector('details')"), "none")
        browser.keys("\ue004")  # Tab: to the link that leads past the picture
        assert browser.script("return document.activeElement.className") == "skip"
        browser.script("document.querySelector('summary').focus()")
        browser.keys(" ")
        time.sleep(2.5)  # other letters come meanwhile, and this one stays
        assert browser.script("return document.querySelector('details').open")
        times = "return lines.times.length ? lines.times[0] : 0"
        first = browser.script(times)
        assert first
        browser.open("about:blank")
        browser.open(live.monitor.url)
        browser.wait(lambda: browser.script(times) == first, "the history is not there")
        receiver.close()


def test_a_stalled_sink_is_named_and_the_end_of_the_run_is_said(sending):
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        Live(listener.getsockname()[1], stop_timeout=0.2) as live,
        Browser() as browser,
    ):
        peer, _ = listener.accept()
        sending(live, [b"x" * 30_000] * 150)
        browser.open(live.monitor.url)
        browser.wait(
            lambda: (
                "Sink p/0 is slow" in browser.text() and "sources are held back" in browser.text()
            ),
            "the stall is not told",
        )
        slow = "return document.querySelector('#picture .slow').dataset.node"
        assert browser.script(slow) == "3"
        live.__exit__()
        browser.wait(lambda: "the figures are old" in browser.text(), "the end is not told")
        peer.close()


@pytest.fixture(scope="module")
def spark():
    from wallaroo_spark.jvm.session import close_session

    yield load_engine("spark")
    close_session()


def test_the_same_page_shows_a_run_on_spark(sending, spark):
    receiver = Receiver()
    own = {"checkpoint": None}
    with Browser() as browser, Live(receiver.port, spark, stop_timeout=60, options=own) as live:
        sending(live, [b"one", b"two", b"two", b"bad"])
        browser.open(live.monitor.url)
        failing = "Messages fail at step"
        browser.wait(lambda: failing in browser.text(), "no verdict", seconds=300)
        browser.wait(lambda: browser.row("driver"), "no executors", seconds=300)
        browser.wait(lambda: browser.row("addBatch"), "no phases", seconds=300)
        hot = "return document.querySelector('#partitions td')?.innerText"
        browser.wait(lambda: browser.script(hot) == "'two'", "no hot key", seconds=300)
        looks_well(browser)
    receiver.close()


def test_the_pictures_command_makes_a_small_one(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "docs" / "tools")
    from picture_of_the_page import take

    take(tmp_path / "page.png", seconds=3)
    content = (tmp_path / "page.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert 30_000 < len(content) < 150_000
