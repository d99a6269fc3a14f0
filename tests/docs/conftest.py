"""The documents' site, built once: as pages to read, and with what runs examples in a browser."""

import functools
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from wallaroo_docs.site import build
from webdriver import Browser


@pytest.fixture(scope="session")
def site_and_said(tmp_path_factory):
    """The folder the site is in, and what the command said that built it.

    The build refuses links that lead nowhere.
    """
    directory = tmp_path_factory.mktemp("built") / "the site"
    tool = Path(__file__).parents[2] / "docs" / "tools" / "build_site.py"
    command = [sys.executable, str(tool), "--plain", str(directory)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return directory, said


@pytest.fixture
def site(site_and_said):
    """The folder the site is in."""
    return site_and_said[0]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """Where the whole site is served: by a plain file server, under a path of its own."""
    served = tmp_path_factory.mktemp("served")
    build(served / "some" / "path")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=served))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/some/path"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def browser():
    """A browser that reaches this machine and no other."""
    with Browser() as browser:
        yield browser
