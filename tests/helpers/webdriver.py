"""A person at a browser: chromium led by its chromedriver, in the W3C WebDriver protocol.

A page is looked at and used as a person does. The client library for this protocol brings ten
packages for the dozen requests that are needed here.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name for an element's id
_SELECT_ALL = "\ue009a\ue000"  # Control held, a, released
_SECONDS = 30.0
_ANSWER = 240.0  # seconds: on a busy machine a browser starts slowly


class Browser:
    """One window."""

    def __enter__(self) -> Self:
        assert CHROMIUM is not None, "no chromium on the path, and CHROMIUM is not set"
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._driver.stdout is not None
        for line in self._driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                self._url = f"http://127.0.0.1:{found[1]}/session"
                break
        try:
            self._begin()
        except BaseException:  # nobody else would end it
            self._driver.kill()
            raise
        return self

    def _begin(self) -> None:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,2400"]
        arguments.append("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        options = {"binary": CHROMIUM, "args": arguments}
        always = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "WARNING"}}
        capabilities = {"capabilities": {"alwaysMatch": always}}
        self._url += "/" + self._ask("POST", "", capabilities)["sessionId"]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._ask("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait(30)
            assert self._driver.stdout is not None
            self._driver.stdout.close()

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise LookupError(json.load(error)["value"]["message"]) from None

    def open(self, url: str) -> None:
        """Go to a page, and wait until it is loaded."""
        self._ask("POST", "/url", {"url": url})

    def script(self, text: str) -> Any:
        """Return what JavaScript in the page returns."""
        return self._ask("POST", "/execute/sync", {"script": text, "args": []})

    def text(self) -> str:
        """Return what a person can read on the page."""
        return str(self.script("return document.body.innerText"))

    def complaints(self) -> list[str]:
        """Return what the browser's console has been told since the last call: errors, warnings."""
        told = self._ask("POST", "/se/log", {"type": "browser"})
        return [str(entry["message"]) for entry in told]

    def picture(self) -> bytes:
        """Return what the window shows, as a PNG."""
        return base64.b64decode(self._ask("GET", "/screenshot"))

    def looks(self, *, dark: bool = False, width: int = 1300, height: int = 2400) -> None:
        """Make the window so large, and let the system's colours be light or dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        media = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": [scheme]}}
        self._ask("POST", "/goog/cdp/execute", media)
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        size = {"cmd": "Emulation.setDeviceMetricsOverride", "params": screen}
        self._ask("POST", "/goog/cdp/execute", size)

    def keys(self, text: str) -> None:
        """Press keys, wherever the focus is."""
        element = self._ask("GET", "/element/active")[_ELEMENT]
        self._ask("POST", f"/element/{element}/value", {"text": text})

    def click(self, xpath: str) -> None:
        """Press a button."""
        self._use(xpath, "click", {})

    def fill(self, xpath: str, text: str) -> None:
        """Put text into a field, in the place of what is there."""
        self._use(xpath, "value", {"text": _SELECT_ALL + text})

    def names(self, xpath: str) -> list[str]:
        """Return the `name` attributes of all elements that an XPath finds."""
        found = self._ask("POST", "/elements", {"using": "xpath", "value": xpath})
        return [self._ask("GET", f"/element/{item[_ELEMENT]}/attribute/name") for item in found]

    def row(self, first: str) -> list[str]:
        """Return the cells of the table row that begins with a text; none when there is no row."""
        cells = "Array.from(document.querySelectorAll('tr'), row => "
        cells += "Array.from(row.cells, cell => cell.innerText))"
        rows: list[list[str]] = self.script(f"return {cells}")
        return next((row for row in rows if row and row[0] == first), [])

    def _use(self, xpath: str, what: str, body: dict[str, Any]) -> None:
        """Do something with an element, as soon as it is there and can be used."""
        form = {"using": "xpath", "value": xpath}

        def done() -> bool:
            try:
                element = self._ask("POST", "/element", form)[_ELEMENT]
                self._ask("POST", f"/element/{element}/{what}", body)
            except LookupError:  # not there, hidden, or moving
                return False
            return True

        self.wait(done, f"{xpath} cannot be used")

    def wait(self, true: Callable[[], bool], message: str, *, seconds: float = _SECONDS) -> None:
        """Wait until something holds on the page."""
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, f"{message}; the page says:\n{self.text()}"
            time.sleep(0.1)
