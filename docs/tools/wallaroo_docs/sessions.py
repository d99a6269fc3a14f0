"""Live examples: an application served by an engine, with real sockets on both sides.

What a `session` block can use::

    with serve(application_setup) as engine:
        engine.send("words", frame(b"one"))     # on a connection of its own, until it is taken
        connection = engine.connect("words")    # or step by step: a socket
    engine.received                             # what the sink was sent
    engine.connections                          # the same, connection by connection
    engine.summary                              # `wallaroo.engine.Summary`
    engine.log                                  # what the engine logged, ports replaced
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import re
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from wallaroo_conformance.live.peers import SinkPeer, wait_until

from wallaroo.engine import Engine, Handle, ServeOptions, Summary, load_engine
from wallaroo.topology import Application
from wallaroo_docs.performing import NotPromisedError, isolation_of

_PATIENCE = 120.0  # seconds until an example that waits for something has failed
_PORT = re.compile(r"(127\.0\.0\.1):\d+")


class Session:
    """A served application, as an example sees it.

    Args:
        handle: the engine's.
        sink: where its sinks connect to.
        log: what it logs.
    """

    def __init__(self, handle: Handle, sink: SinkPeer, log: _Log) -> None:
        self.summary: Summary | None = None
        self._handle = handle
        self._sink = sink
        self._log = log

    @property
    def received(self) -> bytes:
        """The bytes that the sinks sent."""
        return b"".join(self._sink.brought)

    @property
    def connections(self) -> list[bytes]:
        """What the sinks sent, connection by connection."""
        return self._sink.brought

    @property
    def log(self) -> list[str]:
        """What the engine logged as warnings or worse, with ports replaced."""
        return self._log.lines

    def connect(self, source: str) -> socket.socket:
        """Return a connection to a source."""
        return socket.create_connection(self._handle.addresses[source], timeout=_PATIENCE)

    def send(self, source: str, data: bytes) -> bytes:
        """Send on a connection of its own, half-close, and return what comes until its end."""
        with self.connect(source) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(4096), b""))

    def sink_comes(self) -> None:
        """Let the sink listen, after `serve(…, away=True)` or `sink_goes`."""
        self._sink.come_back()

    def sink_goes(self, *, after: bytes) -> None:
        """End the sink's connections and let it listen no more, once it has received `after`."""
        self._until(lambda: after in self.received)
        self._sink.go_away()

    def until(self, *, pending: int = 0, received: int = 0) -> None:
        """Wait until so many outputs are made and not delivered, so many frames received."""
        self._until(lambda: self._handle.progress().pending >= pending)
        self._until(lambda: self._handle.progress().received >= received)

    def _until(self, happened: Callable[[], bool]) -> None:
        if not wait_until(happened, _PATIENCE):
            raise TimeoutError(f"{self._handle.progress()}, received {self.received!r:.200}")

    def kill(self) -> None:
        """End the engine as kill -9 would."""
        self._handle.kill()

    def restart(self) -> None:
        """Start it again from its checkpoint."""
        self._handle = self._handle.restart()

    def stop(self) -> Summary:
        """Stop in order, and return the summary."""
        if self.summary is None:
            self._handle.stop()
            self.summary = self._handle.wait(_PATIENCE)
            if self.summary is None:
                raise TimeoutError(f"the engine has not stopped within {_PATIENCE:g} s")
            self._until(lambda: self._sink.idle)  # all that has come is read
        return self.summary


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    @contextlib.contextmanager
    def attached(self) -> Iterator[_Log]:
        """Collect the engines' log inside the block."""
        logger = logging.getLogger("wallaroo")
        logger.addHandler(self)
        try:
            yield self
        finally:
            logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(_PORT.sub(r"\1:PORT", record.getMessage()))


def serve(engine: str) -> Callable[..., contextlib.AbstractContextManager[Session]]:
    """Return the function `serve` of an example that runs on the engine of that name."""

    @contextlib.contextmanager
    def serve_application(
        application_setup: Callable[[list[str]], Application],
        *,
        away: bool = False,
        remembers: bool = False,
        recovery: bool = False,
        checkpoint: Path | None = None,
        **options: Any,
    ) -> Iterator[Session]:
        """Serve an application with one source address and one sink address.

        Args:
            application_setup: describes it, given ``--in`` and ``--out``.
            away: the sink does not listen until `Session.sink_comes`.
            remembers: it says at each connection how many bytes it has kept (sink-9).
            recovery: the example kills and restarts.
            checkpoint: a directory for a checkpoint that outlives the block; implies `recovery`.
            options: more of `wallaroo.engine.ServeOptions`.
        """
        chosen = load_engine(engine)
        if not chosen.capabilities().live:
            raise NotPromisedError(f"the {engine} engine does not run live")
        recovery = recovery or checkpoint is not None
        if recovery and not chosen.capabilities().recovery:
            raise NotPromisedError(f"the {engine} engine does not claim recovery")
        with contextlib.ExitStack() as stack:
            sink = stack.enter_context(contextlib.closing(SinkPeer(remembers=remembers)))
            if away:
                sink.go_away()
            log = stack.enter_context(_Log().attached())
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="wallaroo-docs-"))
            place = ["--checkpoint", str(checkpoint or directory)]
            own = _own_options(chosen, place if recovery else [])
            out = "{}:{}".format(*sink.address)
            application = application_setup(["--in", "127.0.0.1:0", "--out", out])
            handle = chosen.serve(
                application,
                ServeOptions(
                    **{
                        "isolation": isolation_of(engine),
                        "options": own,
                        "stop_timeout": _PATIENCE,
                        **options,
                    }
                ),
            )
            session = Session(handle, sink, log)
            try:
                yield session
                session.stop()
            except BaseException:
                session.kill()
                raise

    return serve_application


def _own_options(engine: Engine, arguments: list[str]) -> dict[str, Any]:
    """Return an engine's own options, as ``wallaroo run`` finds them in these arguments."""
    parser = argparse.ArgumentParser()
    engine.add_arguments(parser)
    return vars(parser.parse_args(arguments))
