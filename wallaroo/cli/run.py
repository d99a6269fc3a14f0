"""``wallaroo run``: runs an application on an engine until it is stopped."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, NoReturn, TextIO

from wallaroo.cli.application import load_named_application
from wallaroo.cli.arguments import (
    APP_HELP,
    add_on_error,
    add_progress,
    count,
    endpoint,
    option_strings,
    own_address,
    seconds,
)
from wallaroo.cli.logs import application_output, results_on
from wallaroo.cli.main import CommandParser, Subparsers
from wallaroo.cli.summary import print_counts, print_summary
from wallaroo.cli.terminal import progress_display
from wallaroo.engine import MAX_CONNECTIONS, Engine, Handle, ServeOptions, engine_names, load_engine
from wallaroo.errors import EngineNotFoundError, ExtraMissingError, UsageError
from wallaroo.topology import Application
from wallaroo.transport.identity import IDENTITY
from wallaroo.user_code.slips import slips_logged

if TYPE_CHECKING:
    from wallaroo.metrics.registry import Registry
    from wallaroo.monitor.otel import Exporter

_USAGE = "wallaroo run APP [options] [engine's options] [application arguments]"

_EXAMPLES = """\
Ctrl-C, SIGTERM and the end of --stdin stop in order: what was received is processed and delivered,
a summary is printed, and the exit code is 0 if all was delivered, else 1. A second Ctrl-C stops at
once. An option that is not listed here goes to the application if its code names it; all that
follows a -- goes there.

examples:
  wallaroo run word_count.py --in 127.0.0.1:7010 --out 127.0.0.1:7002
  wallaroo run word_count.py --stdin --stdout < LICENSE
  wallaroo run word_count.py --isolated --dead-letters dead.jsonl --stdin --stdout < LICENSE
  wallaroo run word_count.py --engine spark --in 127.0.0.1:7010 --out 127.0.0.1:7002
  wallaroo run word_count.py --metrics 127.0.0.1:9090 --in 127.0.0.1:7010 --out 127.0.0.1:7002
  wallaroo run word_count.py --otel http://127.0.0.1:4318 --in 127.0.0.1:7010 --out 127.0.0.1:7002
  wallaroo run --engine spark --help      with that engine's options
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "run",
        help="run an application on an engine",
        description="Run an application: listen on its sources, process what comes, send on what "
        "comes out.",
        usage=_USAGE,
        epilog=_EXAMPLES,
        add_help=False,
    )
    parser.add_argument("app", metavar="APP", help=APP_HELP)
    parser.add_argument(
        "--engine",
        metavar="NAME",
        default="reference",
        help="the engine (reference); `wallaroo engines` lists all",
    )
    parser.add_argument(
        "--isolated",
        action="store_true",
        help="keep every rule for every application, at the cost of copies; report findings",
    )
    parser.add_argument(
        "--partitions",
        metavar="N",
        type=count,
        help="number of partitions, on an engine that has them (the engine's choice)",
    )
    edges = parser.add_argument_group("input and output")
    edges.add_argument(
        "--stdin", action="store_true", help="read lines in place of the application's only source"
    )
    edges.add_argument(
        "--stdout", action="store_true", help="write outputs as lines in place of all sinks"
    )
    edges.add_argument(
        "--dead-letters",
        metavar="FILE",
        type=Path,
        help="append a JSON line to this file for each dead letter; `wallaroo send --dead-letters` "
        "sends them again",
    )
    edges.add_argument(
        "--dead-letter-bytes",
        metavar="N",
        type=count,
        default=ServeOptions.dead_letter_bytes,
        help="size of this file and those rotated beside it, FILE.000001 and so on, from which the "
        f"oldest are deleted ({ServeOptions.dead_letter_bytes >> 20} MiB)",
    )
    edges.add_argument(
        "--max-connections",
        metavar="N",
        type=count,
        default=MAX_CONNECTIONS,
        help=f"connections of senders at once; more are refused ({MAX_CONNECTIONS})",
    )
    edges.add_argument(
        "--idle-timeout",
        metavar="SECONDS",
        type=seconds,
        help="close a sender's connection after this many seconds without a byte (never)",
    )
    add_on_error(parser)
    parser.add_argument(
        "--stop-timeout",
        metavar="SECONDS",
        type=seconds,
        default=10.0,
        help="how long a stop by a signal may take (10)",
    )
    add_progress(parser)
    parser.add_argument(
        "--metrics",
        metavar="HOST:PORT",
        type=own_address,
        help="serve a live page, and figures for programs, there; port 0 takes a free one",
    )
    parser.add_argument(
        "--otel",
        metavar="URL",
        type=endpoint,
        help="send figures, and traces of single messages, to this endpoint of OpenTelemetry "
        "(OTLP over HTTP)",
    )
    parser.add_argument(
        "-h",
        "--help",
        action=_Help,
        nargs=0,
        help="show this, with the options of the engine that is named before it",
    )
    parser.set_defaults(run=run, passes_arguments=True)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    engine = load_engine(options.engine)
    read = options.app_arguments[: len(options.app_arguments) - len(options.unread_arguments)]
    engine_parser = _engine_parser(engine)
    own, rest = engine_parser.parse_known_args(read)
    _refuse_absent_checkpoint(own)
    stopper = _Stopper()
    with (
        stopper.listening(),
        results_on(sys.stdout) if options.stdout else nullcontext() as results,
        application_output() as steps,
        ExitStack() as stack,
    ):
        application = load_named_application(
            options,
            rest,
            placeholders=options.stdin or options.stdout,
            further=option_strings(engine_parser),
            hint=_other_engine,
        )
        steps.know(application)
        application = slips_logged(application, pairs=False)
        stopper.starts()
        metrics = stack.enter_context(_metrics_of(application, engine.name, options))
        handle = engine.serve(application, _serve_options(options, own, results, metrics, stopper))
        gc.collect()
        gc.freeze()  # modules and the topology live to the end: the collector can skip them
        stopper.serves(handle)
        as_json = options.log_json or options.progress == "json"
        try:
            with progress_display(options.progress, sys.stderr) as show, stopper.raising():
                while (summary := handle.wait(show.interval)) is None:
                    show(handle.progress())
        except _StopsAtOnce as stop:
            print_counts(application, handle.progress(), sys.stderr, as_json=as_json)
            os._exit(stop.code)  # without waiting for user code, which may never return
    print_summary(application, engine.name, summary, sys.stderr, as_json=as_json)
    return summary.exit_code


def _refuse_absent_checkpoint(own: argparse.Namespace) -> None:
    """Refuse ``--resume`` and ``--skip-record`` where there is nothing to go on from.

    Raises:
        UsageError: the directory holds no checkpoint, or none is named.
    """
    skip = getattr(own, "skip_record", [])
    if not getattr(own, "resume", False) and not skip:
        return
    if own.checkpoint is None:
        name = "--skip-record" if skip else "--resume"
        raise UsageError(f"{name} goes with --checkpoint DIR, the directory to go on from")
    if isinstance(own.checkpoint, Path) and not (own.checkpoint / IDENTITY).exists():
        raise UsageError(
            f"{own.checkpoint} holds no checkpoint: it has no {IDENTITY}. Look at the path; to "
            "begin anew, leave --resume and --skip-record out"
        )


def _serve_options(
    options: argparse.Namespace,
    own: argparse.Namespace,
    results: IO[bytes] | None,
    metrics: Registry | None,
    stopper: _Stopper,
) -> ServeOptions:
    return ServeOptions(
        isolation="isolated" if options.isolated else "trusting",
        on_error=options.on_error,
        dead_letters=options.dead_letters,
        dead_letter_bytes=options.dead_letter_bytes,
        stdin=_unbuffered(sys.stdin) if options.stdin else None,
        stdout=results,
        stop_timeout=options.stop_timeout,
        max_connections=options.max_connections,
        idle_timeout=options.idle_timeout,
        partitions=options.partitions,
        metrics=metrics,
        options=vars(own),
        interruptible=stopper.interruptible,
    )


@contextmanager
def _metrics_of(
    application: Application, engine: str, options: argparse.Namespace
) -> Iterator[Registry | None]:
    """Yield the run's figures, served and sent until the end of the block; `None`: not wanted.

    Raises:
        MetricsAddressError: they cannot be served there.
        ExtraMissingError: the packages that send them are not installed.
    """
    if options.metrics is None and options.otel is None:
        yield None
        return
    from wallaroo.metrics.registry import Registry

    registry = Registry(application, engine, partitions=options.partitions or 1)
    with ExitStack() as stack:
        if options.otel is not None:
            exporter = _exporter(registry, options.otel)
            exporter.start()
            stack.callback(exporter.close)
        if options.metrics is not None:
            from wallaroo.monitor.server import Monitor  # an HTTP server, only where it is wanted

            monitor = Monitor(registry, *options.metrics)
            # One write: print makes two, and another thread's log could come between them.
            sys.stderr.write(f"metrics at {monitor.url}\n")
            sys.stderr.flush()
            monitor.start()
            stack.callback(monitor.close)
        yield registry


def _exporter(registry: Registry, url: str) -> Exporter:
    try:
        from wallaroo.monitor.otel import Exporter
    except ModuleNotFoundError as error:
        raise ExtraMissingError(
            f"--otel needs the OpenTelemetry SDK, and {error.name} is not installed; "
            "try: pip install 'wallaroo-streams[otel]'"
        ) from error
    return Exporter(registry, url)


def _unbuffered(stream: TextIO) -> IO[bytes]:
    """Return the unbuffered stream: at exit a blocked thread would hold the buffer's lock."""
    return getattr(stream.buffer, "raw", stream.buffer)


def _engine_parser(engine: Engine) -> argparse.ArgumentParser:
    parser = CommandParser(prog=f"wallaroo run --engine {engine.name}", add_help=False)
    engine.add_arguments(parser.add_argument_group(f"options of the {engine.name} engine"))  # type: ignore[arg-type]  # a group takes arguments like its parser
    return parser


def _other_engine(word: str) -> str:
    """Return the end of an error about an option that another engine has, or ""."""
    for name in engine_names():
        with suppress(EngineNotFoundError):
            if word.partition("=")[0] in option_strings(_engine_parser(load_engine(name))):
                return f"; the {name} engine has it: --engine {name}"
    return ""


class _Help(argparse.Action):
    """Shows the help, with the options of the engine named before it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> NoReturn:
        try:
            load_engine(namespace.engine).add_arguments(
                parser.add_argument_group(f"options of the {namespace.engine} engine")  # type: ignore[arg-type]  # as above
            )
        except EngineNotFoundError as error:
            parser.epilog = f"{parser.epilog}\n{error}"
        parser.print_help()
        parser.exit()


class _StopsAtOnce(BaseException):
    """A second signal has come.

    Args:
        code: what the process exits with.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class _Stopper:
    """Stops the run in order at the first signal, and at once at the second (stop-1)."""

    def __init__(self) -> None:
        self._handle: Handle | None = None
        self._starting = False
        self._signalled = False
        self._raises = False

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise `_StopsAtOnce` at a second signal inside the block; the next ends the process."""
        self._raises = True
        try:
            yield
        finally:
            self._raises = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM inside the block."""
        before = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def starts(self) -> None:
        """From now on a signal stops the run in order; before, it ends the process."""
        self._starting = True

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let a signal end the process inside the block, and one that has come end it now."""
        if self._signalled:
            raise KeyboardInterrupt
        self._starting = False
        try:
            yield
        finally:
            self._starting = True

    def serves(self, handle: Handle) -> None:
        """Set the run to stop; stop it if a signal came while it started."""
        self._handle = handle
        if self._signalled:
            handle.stop()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self._starting:
            raise KeyboardInterrupt
        if self._signalled:
            code = 128 + number  # the exit code that shells use for a signal
            if self._raises:
                self._raises = False
                raise _StopsAtOnce(code)
            os._exit(code)
        self._signalled = True
        _say("stopping; once more to stop at once\n", 2)
        if self._handle is not None:
            self._handle.stop()


def _say(text: str, descriptor: int) -> None:
    """Write from a signal handler, without the streams, which may be in use at that moment."""
    try:
        os.write(descriptor, text.encode())
    except OSError:  # the stream is closed
        return
