"""``wallaroo new``: a starting application and its test, or the repository of an engine."""

from __future__ import annotations

import argparse
import keyword
import sys
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from wallaroo.cli import new_engine, new_windows
from wallaroo.engine import engine_names
from wallaroo.errors import UsageError, WallarooError

if TYPE_CHECKING:
    from wallaroo.cli.main import Subparsers

_EXAMPLES = """\
examples:
  wallaroo new my_app
  pytest test_my_app.py
  printf 'ann\\nbob\\nann\\n' | wallaroo run my_app.py --stdin --stdout
  wallaroo new my_windows --windows
  wallaroo new --engine my_engine
"""

# The words of the example fit an application of any name.
_APPLICATION = Template('''\
r"""An example to start from: it counts how often each line came. Put your own functions here.

In a shell pipe:

    printf 'ann\\nbob\\nann\\n' | wallaroo run $name.py --stdin --stdout

Over TCP, in three terminals:

    wallaroo receive --listen 127.0.0.1:7002
    wallaroo run $name.py --in 127.0.0.1:7010 --out 127.0.0.1:7002
    printf 'ann\\nbob\\nann\\n' | wallaroo send - --to 127.0.0.1:7010

Its test: pytest test_$name.py
"""

import wallaroo


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    ab = wallaroo.ApplicationBuilder("$name")
    ab.new_pipeline("lines", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    ab.to(tidy)
    ab.to_state_partition(count_line, Count, "counts", by_line)
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return ab.build()


class Count:
    """How often one line came: there is a Count for each key that comes."""

    def __init__(self):
        self.count = 0


# A message on the wire is a 4-byte length, big-endian, and that many bytes.
@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode("utf-8")


@wallaroo.computation(name="tidy")
def tidy(line):
    # None filters the message: an empty line is not counted.
    return line.strip().title() or None


@wallaroo.partition
def by_line(line):
    return line


@wallaroo.state_computation(name="count line")
def count_line(line, state):
    state.count += 1
    # What goes on, and whether the state has changed. Send values, not the state itself.
    return (line, state.count), True


@wallaroo.encoder
def encode(result):
    line, count = result
    return f"{line} => {count}\\n"
''')

_TEST = Template('''\
"""Tests of $name: payloads in, bytes out, no ports."""

from pathlib import Path

from wallaroo import testing
from wallaroo.loading import load_application, load_module

APPLICATION = Path(__file__).with_name("$name.py")


def run(*payloads):
    application = load_application(APPLICATION, placeholders=True)
    return testing.run(application, {"lines": payloads})


def test_each_line_has_its_own_count():
    result = run(b"ann", b"bob", b" ANN ")
    assert result.output == [b"Ann => 1\\n", b"Bob => 1\\n", b"Ann => 2\\n"]


def test_an_empty_line_is_not_counted():
    assert run(b"", b"  ").output == []


def test_what_is_no_text_is_a_dead_letter_and_harms_no_other():
    result = run(b"ann", b"\\xff", b"ann")
    assert result.output == [b"Ann => 1\\n", b"Ann => 2\\n"]
    assert [letter.reason for letter in result.dead_letters] == ["decode"]


def test_a_decorated_function_is_tested_like_any_other():
    module = load_module(APPLICATION).module
    assert module.tidy("  eve\\n") == "Eve"


def test_every_rule_is_kept():
    assert run(b"ann", b"bob", b"ann").findings == []
''')


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "new",
        help="write a starting application and its test, or the repository of an engine",
        description="Write NAME.py, a starting application, and test_NAME.py, its test, into the "
        "current directory. Or the folder NAME: a repository for an engine of your own.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("name", metavar="NAME", help="its name, as a module's")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--windows", action="store_true", help="an application with event times and windows"
    )
    kinds.add_argument(
        "--engine",
        action="store_true",
        help="the repository of an engine: package, entry point, tests, CI files, README",
    )
    parser.set_defaults(run=new)


def new(options: argparse.Namespace) -> int:
    """Run the command."""
    name = options.name.removesuffix(".py")
    _check_form(name, "--engine " if options.engine else "")
    if options.engine:
        return _new_engine(name)
    application, test = _APPLICATION, _TEST
    if options.windows:
        application, test = new_windows.APPLICATION, new_windows.TEST
    files = {
        Path(f"{name}.py"): application.substitute(name=name),
        Path(f"test_{name}.py"): test.substitute(name=name),
    }
    for path in files:
        if path.exists():
            raise WallarooError(f"{path} is there already, and nothing was written")
    _check_free(name)
    for path, text in files.items():
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    print(f"wrote {name}.py and test_{name}.py; try: pytest test_{name}.py")
    return 0


def _new_engine(name: str) -> int:
    """Write the repository of an engine into a folder of its name, which must not be there."""
    if name in engine_names():
        raise UsageError(f"an engine {name!r} is installed already; give yours another name")
    folder = Path(name)
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise WallarooError(f"{folder} is there already, and nothing was written") from error
    for place, text in new_engine.FILES.items():
        path = folder / Template(place).substitute(name=name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.substitute(name=name), encoding="utf-8")
    print(f"wrote {folder}/; {folder / 'README.md'} says how to get its first report")
    return 0


def _check_form(name: str, option: str) -> None:
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        suggestion = "".join([c if c.isascii() and c.isalnum() else "_" for c in name])
        if not suggestion.isidentifier() or keyword.iskeyword(suggestion):
            suggestion = f"my_{suggestion}"
        raise UsageError(
            f"{name!r} cannot be a module's name; try: wallaroo new {option}{suggestion}"
        )


def _check_free(name: str) -> None:
    if name in (*sys.stdlib_module_names, "conftest") or find_spec(name) is not None:
        # It would run, but `import json` in a file beside it would import it, not the library.
        raise UsageError(f"{name!r} is a name that a library uses; try: wallaroo new my_{name}")
