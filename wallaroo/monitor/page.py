"""The live page: one document that needs nothing else, with the application's own picture in it."""

from __future__ import annotations

from functools import lru_cache
from html import escape
from importlib.resources import files
from string import Template

from wallaroo.drawing.svg import svg
from wallaroo.text import escaped
from wallaroo.topology import Application

_ASSETS = files("wallaroo.monitor") / "assets"


def page(application: Application, nonce: str) -> str:
    """Return the page.

    Args:
        application: what runs.
        nonce: what the server's Content-Security-Policy asks of scripts.
    """
    return Template(_asset("page.html")).substitute(
        name=escape(escaped(application.name)),
        nonce=nonce,
        plot_style=_asset("uPlot.min.css"),
        style=_asset("page.css"),
        picture=svg(application, marked=True),
        plot_script=_asset("uPlot.iife.min.js"),
        script=_asset("page.js"),
    )


@lru_cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
