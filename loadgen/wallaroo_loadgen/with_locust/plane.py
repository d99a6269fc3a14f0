"""A run for each start of a Locust test: in the process that shows Locust's page.

Users are not messages: an event for each message would measure Locust. However many users there
are, the rate follows the schedule, and the run is over when the schedule is. Without workers this
process has the child processes that send and receive; with workers each of them has a sender, and
the first the receiver too (`workers`). The conductor is that of `wallaroo load`.
"""

from __future__ import annotations

import argparse
import functools
import logging
import signal
from pathlib import Path
from typing import Any

import gevent
from locust import User, argument_parser, events, runners, task
from locust.env import Environment
from rich.console import Console

from wallaroo_loadgen.control import arguments as args
from wallaroo_loadgen.control.conductor import Conductor, RunError, run_here
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.verdict import exit_code, judge
from wallaroo_loadgen.presentation.files import write_hdr, write_json
from wallaroo_loadgen.presentation.pages import write_html
from wallaroo_loadgen.presentation.terminal import print_result
from wallaroo_loadgen.with_locust.access import check_requests
from wallaroo_loadgen.with_locust.options import add_options
from wallaroo_loadgen.with_locust.stats import fill, use_true_percentiles
from wallaroo_loadgen.with_locust.web import add_tab
from wallaroo_loadgen.with_locust.workers import REPORTS, RemoteNode, WorkerSide
from wallaroo_loadgen.workloads.plan import Plan

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
        hooks: Any = environment.events
        hooks.test_start.add_listener(self._start)
        hooks.test_stopping.add_listener(self._stop)
        hooks.quitting.add_listener(self._quit)
        hooks.worker_report.add_listener(self._worker_report)
        runner = environment.runner
        if isinstance(runner, runners.MasterRunner):
            runner.register_message(REPORTS, self._worker_message)

    def result(self) -> Result | None:
        """Return the figures so far."""
        conductor = self.conductor
        if conductor is None:
            return None
        return Result.of(conductor)

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
        try:
            workers = self._workers()
            config = args.config(options, options.workload, processes=max(1, len(workers)))
            slos = args.slos(options)
            conductor = self.conductor = Conductor(Plan(config))
        except args.SETUP_ERRORS as error:
            logger.error("%s", error)  # noqa: TRY400 - one line for the user
            environment.process_exit_code = _USAGE
            self._end()
            return
        failure = None
        filling = gevent.spawn(self._fill_on)
        try:
            if workers:
                self._run_remotely(conductor, workers)
            else:
                run_here(conductor)
        except RunError as error:
            failure = str(error)
        finally:
            filling.kill()
        result = Result.of(conductor, failure)
        judge(result, slos)
        fill(environment.stats, conductor, result)
        self._say(options, result)
        self._end()

    def _workers(self) -> list[str]:
        """Return the workers that take part, the first with the lowest index."""
        runner = self._environment.runner
        if not isinstance(runner, runners.MasterRunner):
            return []
        clients = runner.clients
        ready = [client.id for client in (*clients.ready, *clients.spawning, *clients.running)]
        return sorted(dict.fromkeys(ready), key=runner.get_worker_index)

    def _run_remotely(self, conductor: Conductor, workers: list[str]) -> None:
        runner = self._environment.runner
        config = conductor.plan.config
        receiver = RemoteNode(runner, workers[0], None, config)
        senders = [
            RemoteNode(runner, client, process, config)
            for process, client in enumerate(workers)
            if conductor.plan.streams_of(process)
        ]
        nodes = [receiver, *senders]
        watching = gevent.spawn(self._watch_workers, conductor, nodes)
        try:
            conductor.run(receiver, senders)
        finally:
            watching.kill()
            for node in nodes:
                node.close()

    def _watch_workers(self, conductor: Conductor, nodes: list[RemoteNode]) -> None:
        """Tell the conductor of a worker that is lost, so that it does not wait for it."""
        clients = self._environment.runner.clients
        while True:
            gevent.sleep(1)
            for node in nodes:
                client = clients.get(node.client)
                if client is None or client.state == runners.STATE_MISSING:
                    conductor.inbox(node.name, {"kind": "gone", "code": "its worker is lost"})

    def _worker_report(self, client_id: str, data: dict[str, Any]) -> None:
        self._take(data.get(REPORTS, ()))

    def _worker_message(self, environment: Environment, msg: Any, **_: Any) -> None:
        self._take(msg.data["reports"])

    def _take(self, reports: Any) -> None:
        if self.conductor is not None:
            for name, report in reports:
                self.conductor.inbox(name, report)

    def _fill_on(self) -> None:
        while True:
            gevent.sleep(_FILL_SECONDS)
            if self.conductor is not None:
                fill(self._environment.stats, self.conductor, None)

    def _say(self, options: argparse.Namespace, result: Result) -> None:
        print_result(Console(stderr=True), result)
        if options.load_json:
            write_json(Path(options.load_json), [result])
        if options.load_html:
            write_html(Path(options.load_html), [result])
        if options.load_hdr:
            write_hdr(Path(options.load_hdr), [result])
        self._environment.process_exit_code = exit_code([result])

    def _end(self) -> None:
        """End Locust's test too, and Locust itself when it has no page."""
        runner = self._environment.runner
        options = self._environment.parsed_options
        if options.headless:
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
