"""Locust's page: the requests that it refuses, and a tab with our figures.

The tab is the live page of `wallaroo load`, shown in a frame whenever the tab is the one looked at.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from flask import Response, jsonify, request
from locust import runners
from locust.web import WebUI

from wallaroo.access import refusal
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.presentation.pages import live_figures, live_page
from wallaroo_loadgen.with_locust.options import FieldError, check_form

_REMEDY = "start Locust with --web-name, and with --web-host to listen to more than this machine"
_TAB = "wallaroo"


def check_requests(web_ui: WebUI, options: argparse.Namespace) -> None:
    """Let a page refuse requests from elsewhere (403), and forms with forbidden fields."""
    app: Any = web_ui.app  # there is one once Locust has started
    bound = "" if options.web_host == "*" else options.web_host
    names = {name.strip().lower() for name in (options.web_name or "").split(",") if name.strip()}

    def check() -> Response | None:
        refused = refusal(request.host, request.headers.get("Origin"), bound, names, _REMEDY)
        if refused is None and request.endpoint == "locust.swarm":
            try:
                wrong = check_form(options, request.form)
            except FieldError as error:
                refused = str(error)
            else:
                return None if wrong is None else jsonify({"success": False, "message": wrong})
        if refused is None:
            return None
        return Response(f"refused: {refused}\n", 403, mimetype="text/plain")

    def protect(response: Response) -> Response:
        response.headers["X-Frame-Options"] = "SAMEORIGIN"  # no other page may show ours as its own
        return response

    app.before_request(check)
    app.after_request(protect)


def add_tab(web_ui: WebUI, result: Callable[[], Result | None], base_path: str) -> None:
    """Add the tab.

    Args:
        web_ui: Locust's.
        result: gives the figures so far, or None before the first run.
        base_path: the beginning of every path of the page, by `--web-base-path`.
    """
    app: Any = web_ui.app  # there is one once Locust has started
    private: Any = web_ui.auth_required_if_enabled
    web_ui.template_args["extended_tabs"] = [{"title": "Latency and load", "key": _TAB}]
    templates = files("wallaroo_loadgen.with_locust") / "templates"
    plots = live_page()
    script = (templates / "tab.js").read_text(encoding="utf-8")

    def extend(response: Response) -> Response:
        if request.endpoint == "locust.request_stats" and response.is_json:
            stats = response.get_json()
            if stats["state"] == runners.STATE_CLEANUP:  # the page would show it for ever: it asks
                stats["state"] = runners.STATE_RUNNING  # again only while a test is running
            response.set_data(json.dumps(stats))
        elif request.endpoint == "locust.index" and response.mimetype == "text/html":
            html = response.get_data(as_text=True)
            tag = '<script src="./wallaroo/tab.js"></script></body>'
            response.set_data(html.replace("</body>", tag))
        return response

    app.after_request(extend)
    for name, mimetype, content in (
        ("plots", "text/html", lambda: plots),
        ("tab.js", "text/javascript", lambda: script),
        ("figures", "application/json", lambda: json.dumps(live_figures(result()))),
    ):
        view = private(_view(name, mimetype, content))
        app.add_url_rule(f"{base_path}/wallaroo/{name}", view_func=view)


def _view(name: str, mimetype: str, content: Callable[[], str]) -> Callable[[], Response]:
    def view() -> Response:
        return Response(content(), mimetype=mimetype)

    view.__name__ = f"wallaroo_{name.replace('.', '_')}"  # Flask knows views by their names
    return view
