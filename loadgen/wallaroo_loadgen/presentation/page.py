"""A page that is one file: its plots, the code that draws them and its style are all in it.

It works without a network, from a disk or a CI's list of artifacts. Without JavaScript its tables
are there, and each plot says what is missing.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from wallaroo_loadgen.control.verdict import show
from wallaroo_loadgen.presentation.figures import Figure

_ASSETS = files("wallaroo_loadgen.presentation") / "assets"
_SHARED = files("wallaroo.monitor") / "assets"


def render(template: str, *, nonce: str | None = None, **values: Any) -> str:
    """Return a page.

    Args:
        template: a file of `templates` that extends `page.html`.
        nonce: the nonce of a server's Content-Security-Policy for the scripts; none for a file.
        values: the template's values. A `Figure` among them is drawn with the filter `plot`.
    """
    environment = Environment(
        loader=PackageLoader("wallaroo_loadgen.presentation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["duration"] = show
    environment.filters["plot"] = plot
    environment.globals["asset"] = asset
    environment.globals["nonce_attribute"] = (
        "" if nonce is None else Markup(' nonce="{}"').format(nonce)
    )
    return environment.get_template(template).render(**values)


def plot(figure: Figure) -> Markup:
    """Return a figure as the part of a page that `plots.js` draws when the page is loaded."""
    data = json.dumps(figure.to_json(), separators=(",", ":"))
    # Only `</` can end a script; as JSON, both spellings are the same text.
    safe = Markup(data.replace("<", "\\u003c"))  # noqa: S704 - no `<` is left in it
    return Markup(
        '<figure class="plot"><h3>{}</h3><noscript><p>This plot needs JavaScript.</p></noscript>'
        '<script type="application/json">{}</script></figure>\n'
    ).format(figure.title, safe)


def asset(name: str) -> Markup:
    """Return a script or style of ours, to stand in a page as it is."""
    place = _SHARED if name.startswith("uPlot") else _ASSETS
    return Markup((place / name).read_text(encoding="utf-8"))  # noqa: S704 - our own file
