"""`--metrics HOST:PORT`: the figures of a running application, for browsers and programs.

    /         the live page
    /events   what the page shows, every second, as server-sent events; the first has the history
    /api      the same as JSON; with the last fifteen minutes: /api?history; with the sources'
              latencies whole: /api?histograms
    /metrics  as Prometheus reads them
    /health   200 while the process lives
    /ready    200 while the application takes input, else 503, with the reasons

It answers in threads of its own, so it works while user code keeps the engine's thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from importlib.resources import files
from string import Template

from wallaroo.config import format_address
from wallaroo.drawing.svg import svg
from wallaroo.errors import WallarooError
from wallaroo.metrics.process import ProcessWatch
from wallaroo.metrics.registry import Registry
from wallaroo.metrics.snapshot import snapshot
from wallaroo.metrics.verdict import not_ready
from wallaroo.monitor.families import NEEDS, exposition
from wallaroo.monitor.pages import Answer, Page, PageServer, Request, json_answer, text_answer
from wallaroo.text import escaped, reason

_TICK = 1.0  # seconds
_PROBES = ("/health", "/ready")
_REMEDY = "give it in --metrics HOST:PORT, or make it the host name (of a container: --hostname)"

_log = logging.getLogger("wallaroo.metrics")


class MetricsAddressError(WallarooError):
    """The figures cannot be served at this address; says why."""


def free_address(host: str, port: int) -> tuple[str, int]:
    """Return an address if figures can be served there.

    Raises:
        MetricsAddressError: they cannot.
    """
    _server(host, port, {}).server_close()
    return host, port


class Monitor:
    """Serves the figures of a run, and lets them tick.

    Args:
        registry: the figures.
        host: where to listen.
        port: where to listen; 0 takes a free one.

    Attributes:
        address: where it listens.
        url: the page's address.

    Raises:
        MetricsAddressError: it cannot listen there.
    """

    def __init__(self, registry: Registry, host: str, port: int) -> None:
        self.registry = registry
        self._changed = threading.Condition()
        self._ticks = 0
        self._event = b""
        self._closed = threading.Event()
        pages: dict[str, Page] = {
            "/": self._page,
            "/api": self._api,
            "/metrics": self._metrics,
            "/health": lambda _: json_answer({"alive": True, "state": registry.state}),
            "/ready": self._ready,
            "/events": self._events,
        }
        self._server = _server(host, port, pages)
        self.address, self.url = self._server.address, self._server.url
        self._process = ProcessWatch()
        self._thread = threading.Thread(target=self._tick_on, name="wallaroo-metrics", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        self._server.start()

    def close(self) -> None:
        """End; open pages get no more events."""
        self._closed.set()
        with self._changed:
            self._changed.notify_all()
        self._server.close()
        self._thread.join(_TICK)
        self._process.close()

    def tick(self) -> None:
        """Take the figures of another second."""
        self.registry.process = self._process.look()
        self.registry.tick()
        with self._changed:
            self._ticks += 1
            self._event = b""  # made when somebody wants it
            self._changed.notify_all()

    def _tick_on(self) -> None:
        due = time.monotonic()
        while not self._closed.wait(max(0.0, due - time.monotonic())):
            try:
                self.tick()
            except Exception:  # noqa: BLE001 - a bug of ours must end neither figures nor run
                _log.exception("the figures of this second are missing; this is a bug")
            due = max(due + _TICK, time.monotonic())

    def _page(self, request: Request) -> Answer:
        """Return the live page: one document, with the application's own picture in it."""
        application = self.registry.application
        page = Template(_asset("page.html")).substitute(
            name=escape(escaped(application.name)),
            nonce=request.nonce,
            plot_style=_asset("uPlot.min.css"),
            style=_asset("page.css"),
            picture=svg(application, marked=True),
            plot_script=_asset("uPlot.iife.min.js"),
            script=_asset("page.js"),
        )
        return Answer(200, "text/html", page.encode())

    def _api(self, request: Request) -> Answer:
        wanted = {field.partition("=")[0] for field in request.query.split("&")}
        history, histograms = "history" in wanted, "histograms" in wanted
        return json_answer(snapshot(self.registry, history=history, histograms=histograms))

    def _metrics(self, request: Request) -> Answer:
        try:
            content, kind = exposition(self.registry, request.accept)
        except ModuleNotFoundError:
            return text_answer(NEEDS, 501)
        return Answer(200, kind, content)

    def _ready(self, _: Request) -> Answer:
        reasons = not_ready(self.registry)
        return json_answer({"ready": not reasons, "reasons": reasons}, 503 if reasons else 200)

    def _events(self, _: Request) -> Iterator[bytes]:
        """Yield the figures every second until the run ends; the first have the history."""
        seen = max(self._ticks, 1)
        whole = json_answer(snapshot(self.registry, history=True)).content
        yield b"event: history\ndata: " + whole + b"\n\n"
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed.is_set() or self._ticks > seen)  # noqa: B023 - it waits here
                if self._closed.is_set():
                    return
                if not self._event:
                    content = json_answer(snapshot(self.registry)).content
                    self._event = b"data: " + content + b"\n\n"
                seen, event = self._ticks, self._event
            yield event


def _server(host: str, port: int, pages: dict[str, Page]) -> PageServer:
    try:
        return PageServer(host, port, pages, _REMEDY, probes=_PROBES)
    except OSError as error:
        raise MetricsAddressError(
            f"the figures cannot be served at {format_address(host, port)}: {reason(error)}. "
            "Write another address: --metrics HOST:PORT"
        ) from error


@lru_cache
def _asset(name: str) -> str:
    return (files("wallaroo.monitor") / "assets" / name).read_text(encoding="utf-8")
