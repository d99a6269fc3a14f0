"""``python -m wallaroo_conformance.worker ENGINE``: an engine of Python behind a pipe.

Any object with the methods of `Adapter` is made such a process by two lines::

    if __name__ == "__main__":
        serve(MyEngine())

Standard output belongs to the protocol. So what user code and libraries print goes to standard
error: file descriptor 1 is pointed there, and the protocol keeps a duplicate.
"""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Mapping
from typing import Any, Protocol

from wallaroo.engine import Capabilities, Case, load_engine
from wallaroo.errors import UnsupportedTopology
from wallaroo.topology import Application
from wallaroo.trace import Trace
from wallaroo.user_code.failure import describe_error
from wallaroo_conformance.cases.either import engine_case, from_json
from wallaroo_conformance.pipe.protocol import (
    PROTOCOL,
    capabilities_message,
    from_line,
    to_line,
)
from wallaroo_conformance.pipe.streams import take_over_standard_streams

_FRAMES = 8  # the innermost frames of a crash's traceback are sent


class Adapter(Protocol):
    """The methods of an engine that a process behind a pipe needs; it may have a ``version``."""

    @property
    def name(self) -> str:
        """The engine's name."""

    def capabilities(self) -> Capabilities:
        """Return what it can do."""

    def check(self, application: Application) -> None:
        """Raise `UnsupportedTopology` for an application that it cannot run."""

    def run(self, case: Case) -> Trace:
        """Run one case."""


def serve(engine: Adapter) -> None:
    """Answer what comes over standard input, until it ends."""
    requests, write = take_over_standard_streams()

    def send(message: Mapping[str, Any]) -> None:
        write(to_line(message))

    for line in requests:
        message = from_line(line)
        if message["type"] == "hello":
            send(
                {
                    "type": "hello",
                    "protocol": PROTOCOL,
                    "name": engine.name,
                    "version": getattr(engine, "version", ""),
                    "capabilities": capabilities_message(engine.capabilities()),
                }
            )
        elif message["type"] == "ping":
            send({"type": "pong", "ping": message["ping"]})
        elif message["type"] == "job":
            for case in message["cases"]:
                send({"job": message["job"], "id": case["id"], **_answer(engine, case)})
            send({"type": "done", "job": message["job"]})


def _answer(engine: Adapter, message: Mapping[str, Any]) -> dict[str, Any]:
    try:
        case = engine_case(from_json(message["case"]), options=message.get("options"))
        engine.check(case.application)
        return {"type": "trace", "trace": engine.run(case).to_json()}
    except UnsupportedTopology as refusal:
        said = {"rule": refusal.rule, "step": refusal.step, "why": refusal.reason}
        return {"type": "refusal", **said}
    except BaseException as error:  # noqa: BLE001 - whatever an engine raises is its answer
        frames = traceback.format_tb(error.__traceback__)[-_FRAMES:]
        said = {"error": f"{type(error).__name__}: {describe_error(error)}"}
        return {"type": "crash", **said, "traceback": "".join(frames)}


def main() -> None:
    """Serve an installed engine."""
    parser = argparse.ArgumentParser(
        prog="python -m wallaroo_conformance.worker",
        description="An installed engine behind a pipe, for wallaroo conform --engine-command.",
    )
    parser.add_argument("engine", metavar="ENGINE", help="its name, as wallaroo engines lists it")
    serve(load_engine(parser.parse_args().engine))


if __name__ == "__main__":
    main()
