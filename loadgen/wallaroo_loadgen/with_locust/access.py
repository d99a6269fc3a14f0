"""Lets Locust's page refuse requests from elsewhere, and forms with forbidden fields."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from flask import Response, jsonify, request

from wallaroo.access import refusal
from wallaroo_loadgen.with_locust.options import FieldError, check_form

if TYPE_CHECKING:  # importing Locust changes Python's sockets and threads for the whole process
    from locust.web import WebUI


_REMEDY = "start Locust with --web-name, and with --web-host to listen to more than this machine"


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
