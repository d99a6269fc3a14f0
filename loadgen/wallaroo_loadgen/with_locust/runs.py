"""A run for each start of a Locust test: in the process that shows Locust's page.

Users are not messages: an event for each message would measure Locust. However many users there
are, the rate follows the schedule, and the run is over when the schedule is. Without workers this
process has the child processes that send and receive; with workers each of them has a sender, and
the first the receiver too (`workers`). The run itself is a `Session`'s, as in `wallaroo load`.
"""

from __future__ import annotations

import functools
import logging
import signal
from typing import Any

import gevent
from locust import User, argument_parser, events, runners, task
from locust.env import Environment
from rich.console import Console

from wallaroo_loadgen.control import arguments as args
from wallaroo_loadgen.control.conductor import Conductor
from wallaroo_loadgen.control.nodes import ChildNode
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.session import Session
from wallaroo_loadgen.control.verdict import exit_code
from wallaroo_loadgen.presentation.files import write_files
from wallaroo_loadgen.presentation.terminal import print_result
from wallaroo_loadgen.with_locust.options import add_options
from wallaroo_loadgen.with_locust.page import add_tab, check_requests
from wallaroo_loadgen.with_locust.stats import fill, use_true_percentiles
from wallaroo_loadgen.with_locust.workers import Workers, WorkerSide

logger = logging.getLogger("wallaroo.load")

_USAGE = 2
_REPORT_SECONDS = 1.0  # Locust's own 3 would make a slow view
_FILL_SECONDS = 0.5
_PATIENCE = 30.0


class LoadUser(User):
    """A user for Locust to count; it sends nothing."""

    host = "as --to says"  # Locust asks for one

    @task
    def wait_for_the_end(self) -> None:
        """Wait: the schedule sends the messages."""
        gevent.sleep(1)


class Control:
    """In the leading process: one run for each start, figures into Locust, verdict at the end.

    Attributes:
        conductor: the run's that goes on or was the last, or None.
    """

    def __init__(self, environment: Environment) -> None:
        self.conductor: Conductor | None = None
        self._environment: Any = environment  # its runner and options are set by now
        self._running: gevent.Greenlet | None = None
        self._workers: Workers | None = None
        if isinstance(environment.runner, runners.MasterRunner):
            self._workers = Workers(environment)
        hooks: Any = environment.events
        hooks.test_start.add_listener(self._start)
        hooks.test_stopping.add_listener(self._stop)
        hooks.quitting.add_listener(self._quit)

    def result(self) -> Result | None:
        """Return the figures so far."""
        return None if self.conductor is None else Result.of(self.conductor)

    def _start(self, **_: Any) -> None:
        if self._running is None or self._running.ready():
            self._running = gevent.spawn(self._run)

    def _stop(self, **_: Any) -> None:
        if self._running is not None and not self._running.ready() and self.conductor is not None:
            self.conductor.stop()

    def _quit(self, **_: Any) -> None:
        self._stop()
        if self._running is not None:
            self._running.join(_PATIENCE)

    def _run(self) -> None:
        environment = self._environment
        options = environment.parsed_options
        looking = gevent.spawn(self._look_on)
        try:
            processes = 1 if self._workers is None else self._workers.gather()
            config = args.config(options, options.workload, processes=processes)
            session = Session(
                slos=args.slos(options),
                watch=self._watch,
                start_node=ChildNode if self._workers is None else self._workers.start_node,
            )
            result = session.run(config)
        except args.SETUP_ERRORS as error:
            logger.error("%s", error)  # noqa: TRY400 - one line for the user
            environment.process_exit_code = _USAGE
        else:
            assert self.conductor is not None
            fill(environment.stats, self.conductor, result)
            self._report(result)
        finally:
            looking.kill()
        self._end()

    def _watch(self, conductor: Conductor) -> None:
        self.conductor = conductor

    def _look_on(self) -> None:
        """Show the figures while the run goes on, and end it if a worker is lost."""
        while True:
            gevent.sleep(_FILL_SECONDS)
            if self._workers is not None:
                self._workers.report_lost()
            if self.conductor is not None:
                fill(self._environment.stats, self.conductor, None)

    def _report(self, result: Result) -> None:
        options = self._environment.parsed_options
        print_result(Console(stderr=True), result)
        write_files(
            [result], as_json=options.load_json, html=options.load_html, hdr=options.load_hdr
        )
        self._environment.process_exit_code = exit_code([result])

    def _end(self) -> None:
        """End Locust's test too, and Locust itself when it has no page."""
        runner = self._environment.runner
        if self._environment.parsed_options.headless:
            gevent.spawn(runner.quit)
        elif runner.state not in {runners.STATE_STOPPED, runners.STATE_STOPPING}:
            gevent.spawn(runner.stop)


def take_part(environment: Environment, **_: Any) -> None:
    """Set a Locust process up for its role."""
    if isinstance(environment.runner, runners.WorkerRunner):
        WorkerSide(environment)
        return
    control = Control(environment)
    # Python raises KeyboardInterrupt in whatever runs just then. In the greenlet of a run, it would
    # end the run without a report, so it always goes to Locust's own, this one.
    gevent.signal_handler(signal.SIGINT, gevent.kill, gevent.getcurrent(), KeyboardInterrupt)
    if environment.web_ui is not None:
        options: Any = environment.parsed_options
        check_requests(environment.web_ui, options)
        add_tab(environment.web_ui, control.result, options.web_base_path or "")


@functools.cache  # a locustfile that is started as a program is loaded twice
def install() -> None:
    """Add all of this to Locust; a locustfile calls it."""
    runners.WORKER_REPORT_INTERVAL = _REPORT_SECONDS
    # A worker builds Locust's whole parser anew for each option of each message that starts users:
    # for seconds it does nothing else, and on a busy machine it is believed to be lost.
    argument_parser.default_args_dict = functools.cache(argument_parser.default_args_dict)
    use_true_percentiles()
    hooks: Any = events
    hooks.init_command_line_parser.add_listener(add_options)
    hooks.init.add_listener(take_part)


__all__ = ["LoadUser", "install"]
