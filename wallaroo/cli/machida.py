"""``machida``: the command of the published tutorials, as a way into ``wallaroo run``.

Their command lines work as they stand. What they say about clusters, metrics and the runtime of
the original has no meaning here; it is accepted, and named on stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from wallaroo.cli.main import CommandParser
from wallaroo.cli.main import main as wallaroo
from wallaroo.text import escaped

_WITH_VALUE = (
    ("--metrics", "-m"),
    ("--control", "-c"),
    ("--data", "-d"),
    ("--my-control",),
    ("--my-data",),
    ("--external", "-e"),
    ("--name", "--worker-name", "-n"),
    ("--worker-count", "-w"),
    ("--join", "-j"),
    ("--phone-home", "-p"),
    ("--resilience-dir", "-r"),
    ("--event-log-file-size", "-l"),
    ("--stop-pause", "-s"),
    ("--time-boundary",),
    ("--ponythreads",),
    ("--ponymaxthreads",),
    ("--ponyminthreads",),
    ("--ponysuspendthreshold",),
    ("--ponycdinterval",),
    ("--ponycdmin",),
    ("--ponycdmax",),
    ("--ponycdconf",),
    ("--ponygcinitial",),
    ("--ponygcfactor",),
)
_WITHOUT_VALUE = (
    ("--cluster-initializer", "--topology-initializer", "-t"),
    ("--log-rotation",),
    ("--resilience-disable-io-journal",),
    ("--resilience-no-local-file-io",),
    ("--run-with-resilience",),
)
_OTHER_RUNTIME_OPTIONS = "--pony"  # --ponynoblock, --ponypinasio and whatever more there is

_EXAMPLES = """\
All other arguments go to the application. For more than this, see: wallaroo run --help

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
    parser = _parser()
    try:
        options, rest = parser.parse_known_args(argv)
    except SystemExit as end:  # argparse has printed why
        return end.code if isinstance(end.code, int) else 2
    given = vars(options)
    module = given.pop("application_module")
    ignored = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None]
    ignored += [item for item in rest if item.startswith(_OTHER_RUNTIME_OPTIONS)]
    if ignored:
        print(f"machida: no meaning here, ignored: {escaped(', '.join(ignored))}", file=sys.stderr)
    passed = [item for item in rest if not item.startswith(_OTHER_RUNTIME_OPTIONS)]
    return wallaroo(["run", module, "--", *passed])


def _parser() -> argparse.ArgumentParser:
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
    ignored = parser.add_argument_group("accepted, without meaning here")
    for names in _WITH_VALUE:
        ignored.add_argument(*names, metavar="…")
    for names in _WITHOUT_VALUE:
        ignored.add_argument(*names, action="store_const", const=True)
    return parser


if __name__ == "__main__":
    sys.exit(main())
