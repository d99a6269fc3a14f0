"""``machida`` and ``machida3``: the published commands, which start ``wallaroo run``.

Their command lines work unchanged. The live page is served at `--metrics HOST:PORT`; in the
original this was the address of the metrics page. The options about clusters and the original's
runtime are accepted without effect, and named once on stderr. A command line that starts another
worker of a cluster is refused, since one process does the work of all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from wallaroo.cli.arguments import own_address
from wallaroo.cli.main import CommandParser
from wallaroo.cli.main import main as wallaroo
from wallaroo.config import format_address
from wallaroo.text import escaped

# Each option with its other names.
_WITH_VALUE = """
--control -c, --data -d, --my-control, --my-data, --external -e, --name --worker-name -n,
--worker-count -w, --join -j, --phone-home -p, --resilience-dir -r, --time-between-checkpoints,
--event-log-file-size -l, --file -f, --token -k, --stop-pause, --time-boundary, --ponythreads
"""
_WITHOUT_VALUE = """
--cluster-initializer --topology-initializer -t, --log-rotation, --run-with-resilience,
--resilience-disable-io-journal, --resilience-enable-io-journal, --resilience-no-local-file-io,
--ponynoblock, --ponypinasio, --ponynoyield, --ponynoscale, --ponypin
"""
_WITH_OR_WITHOUT_VALUE = "-s, -u, -x, -y"  # versions differ
_FAMILIES = ("--pony", "--resilience-", "--spike-", "--stop-world")  # beginnings of options

_ALL_WORK = "one process does the work of all workers here"
_EXAMPLES = """\
All other arguments, and everything after a --, go to the application. For more than this, see:
wallaroo run --help

example:
  machida --application-module word_count --in 127.0.0.1:7010 --out 127.0.0.1:7002 \\
    --metrics 127.0.0.1:5001 --control 127.0.0.1:6000 --data 127.0.0.1:6001 \\
    --name worker-name --external 127.0.0.1:5050 --cluster-initializer --ponythreads=1
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line of the tutorials and return its exit code.

    Args:
        argv: the arguments, without the program's name; by default the process's.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    unread: list[str] = []
    if "--" in arguments:
        separator = arguments.index("--")
        arguments, unread = arguments[:separator], arguments[separator + 1 :]
    parser, names = _parser()
    try:
        options, rest = parser.parse_known_args(arguments)
        module = options.application_module
        if _is_one_more_worker(options):
            parser.error(
                f"this starts one more worker of a cluster. {_ALL_WORK[0].upper()}{_ALL_WORK[1:]}: "
                "start the first worker only, the one with --cluster-initializer. "
                f"{_scaling_hint(module)}"
            )
    except SystemExit as end:  # argparse has printed why
        return end.code if isinstance(end.code, int) else 2
    given = [name for dest, name in names.items() if getattr(options, dest) is not None]
    more, passed = _without_families(rest)
    if ignored := [*given, *more]:
        _say(f"accepted, no effect here: {', '.join(ignored)}")
    if _workers(options) > 1:
        _say(f"{_ALL_WORK}: do not start another. {_scaling_hint(module)}")
    if any("resilience" in name or "checkpoint" in name for name in ignored):
        _say(f"to keep state through a crash: wallaroo run {module} --checkpoint DIR")
    own = [] if options.metrics is None else _metrics(options.metrics)
    return wallaroo(["run", module, *own, "--", *passed, *unread])


def _metrics(text: str) -> list[str]:
    """Return the arguments that serve the live page; if it cannot be served, none.

    It then says so on stderr: the tutorials start several applications with one address, and all of
    them must run.
    """
    from wallaroo.monitor.server import MetricsAddressError, free_address

    try:
        return ["--metrics", format_address(*free_address(*own_address(text)))]
    except (argparse.ArgumentTypeError, MetricsAddressError) as error:
        _say(f"there is no live page: {error}")
        return []


def _is_one_more_worker(options: argparse.Namespace) -> bool:
    """Return whether this is the command line of a worker that is not the first."""
    if options.join is not None:
        return True
    named = options.name is not None or _workers(options) > 1
    return named and not options.cluster_initializer


def _workers(options: argparse.Namespace) -> int:
    text = options.worker_count or ""
    return int(text) if text.isascii() and text.isdigit() else 1


def _scaling_hint(module: str) -> str:
    return f"For more cores or machines: wallaroo run {module} --engine spark"


def _without_families(rest: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names of options of the families, and the arguments left for the application."""
    named: list[str] = []
    passed: list[str] = []
    items = list(reversed(rest))
    while items:
        item = items.pop()
        if not item.startswith(_FAMILIES):
            passed.append(item)
            continue
        name, equals, _ = item.partition("=")
        named.append(name)
        if not equals and items and not items[-1].startswith("-"):
            items.pop()  # its value
    return named, passed


def _say(text: str) -> None:
    print(f"machida: {escaped(text)}", file=sys.stderr)


def _parser() -> tuple[argparse.ArgumentParser, dict[str, str]]:
    """Return the parser, and the names of the options without effect, by their destinations."""
    parser = CommandParser(
        prog="machida",
        description="Run an application by the command lines of the published tutorials.",
        usage="machida --application-module MODULE --in HOST:PORT --out HOST:PORT [arguments]",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "--application-module",
        metavar="MODULE",
        required=True,
        help="the application's module, on the current directory or PYTHONPATH",
    )
    parser.add_argument(
        "--metrics", "-m", metavar="HOST:PORT", help="serve a live page of the application there"
    )
    ignored = parser.add_argument_group("accepted, without effect here")
    kinds: list[tuple[str, dict[str, Any]]] = [
        (_WITH_VALUE, {"metavar": "…"}),
        (_WITHOUT_VALUE, {"action": "store_const", "const": True}),
        (_WITH_OR_WITHOUT_VALUE, {"metavar": "…", "nargs": "?", "const": True}),
    ]
    actions = [
        ignored.add_argument(*names.split(), **settings)
        for options, settings in kinds
        for names in options.split(",")
    ]
    return parser, {action.dest: action.option_strings[0] for action in actions}


if __name__ == "__main__":
    sys.exit(main())
