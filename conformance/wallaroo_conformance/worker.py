"""``python -m wallaroo_conformance.worker ENGINE``: an engine of Python behind a pipe.

Any object with the methods of `Adapter` is made such a process by two lines::

    if __name__ == "__main__":
        serve(MyEngine())

If a job costs it more than a case, it also has ``seconds``, how long a case alone may take, and
``run_many``, as engines have it: that gets all cases of a job at once.

Standard output belongs to the protocol. So what user code and libraries print goes to standard
error: file descriptor 1 is pointed there, and the protocol keeps a duplicate.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from wallaroo.engine import Capabilities, Case, load_engine
from wallaroo.errors import UnsupportedTopology
from wallaroo.topology import Application
from wallaroo.trace import Trace
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.reading import case_from_json
from wallaroo_conformance.judge.differences import Crash
from wallaroo_conformance.pipe.protocol import (
    PROTOCOL,
    capabilities_message,
    from_line,
    take_over_standard_streams,
    to_line,
)


class Adapter(Protocol):
    """The methods of an engine that a process behind a pipe needs.

    It may have a ``version``, and ``seconds`` with ``run_many``: see the module's docstring.
    """

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
            hello = {
                "type": "hello",
                "protocol": PROTOCOL,
                "name": engine.name,
                "version": getattr(engine, "version", ""),
                "capabilities": capabilities_message(engine.capabilities()),
            }
            if hasattr(engine, "seconds"):
                hello["seconds"] = engine.seconds
            send(hello)
        elif message["type"] == "job":
            for number, answer in _answers(engine, message["cases"]):
                send({"job": message["job"], "id": number, **answer})
            send({"type": "done", "job": message["job"]})


def _answers(
    engine: Adapter, messages: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the answer of each case of a job."""
    together = max(len(messages), 1) if hasattr(engine, "seconds") else 1
    for start in range(0, len(messages), together):
        numbers: list[int] = []
        cases: list[Case] = []
        for message in messages[start : start + together]:
            try:
                case = engine_case(case_from_json(message["case"]), options=message.get("options"))
                engine.check(case.application)
            except BaseException as error:  # noqa: BLE001 - whatever an engine raises is its answer
                yield message["id"], _answer(error)
                continue
            numbers.append(message["id"])
            cases.append(case)
        for number, result in zip(numbers, _results(engine, cases), strict=True):
            yield number, _answer(result)


def _results(engine: Any, cases: Sequence[Case]) -> Iterator[Trace | BaseException]:
    """Run cases together and yield what each gives; if that raises, run halves to find the case."""
    if not cases:
        return
    results: Sequence[Trace | BaseException]
    try:
        results = engine.run_many(cases) if len(cases) > 1 else [engine.run(cases[0])]
    except BaseException as error:  # noqa: BLE001 - as above
        if len(cases) == 1:
            yield error
            return
        half = len(cases) // 2
        yield from _results(engine, cases[:half])
        yield from _results(engine, cases[half:])
        return
    yield from results


def _answer(result: Trace | BaseException) -> dict[str, Any]:
    try:
        if isinstance(result, BaseException):
            raise result
        return {"type": "trace", "trace": result.to_json()}
    except UnsupportedTopology as refusal:
        said = {"rule": refusal.rule, "step": refusal.step, "why": refusal.reason}
        return {"type": "refusal", **said}
    except BaseException as error:  # noqa: BLE001 - as above
        crash = Crash.of(error)
        return {"type": "crash", "error": crash.error, "traceback": crash.traceback}


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
