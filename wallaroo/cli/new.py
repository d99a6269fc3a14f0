"""``wallaroo new``: a starting application and its test."""

from __future__ import annotations

import argparse
import keyword
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wallaroo.errors import WallarooError

if TYPE_CHECKING:
    from wallaroo.cli.main import Subparsers

_EXAMPLES = """\
example:
  wallaroo new votes
  pytest test_votes.py
  printf 'ann\\nbob\\nann\\n' | wallaroo run votes.py --stdin --stdout
"""

_APPLICATION = '''\
"""NAME: counts votes. Each message is a candidate's name; each vote goes out as NAME => VOTES.

In a shell pipe:

    printf 'ann\\\\nbob\\\\nann\\\\n' | wallaroo run NAME.py --stdin --stdout

Over TCP, in three terminals:

    wallaroo receive --listen 127.0.0.1:7002
    wallaroo run NAME.py --in 127.0.0.1:7010 --out 127.0.0.1:7002
    printf 'ann\\\\nbob\\\\nann\\\\n' | wallaroo send - --to 127.0.0.1:7010

Its test: pytest test_NAME.py
"""

import wallaroo


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    ab = wallaroo.ApplicationBuilder("NAME")
    ab.new_pipeline("votes", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    ab.to(tidy)
    ab.to_state_partition(count_vote, Votes, "votes by candidate", by_candidate)
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return ab.build()


class Votes:
    """One candidate's votes: there is a Votes for each key that comes."""

    def __init__(self):
        self.count = 0


# A message on the wire is a 4-byte length, big-endian, and that many bytes.
@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode("utf-8")


@wallaroo.computation(name="tidy")
def tidy(line):
    # None filters the message: an empty line is no vote.
    return line.strip().title() or None


@wallaroo.partition
def by_candidate(name):
    return name


@wallaroo.state_computation(name="count vote")
def count_vote(name, votes):
    votes.count += 1
    # What goes on, and whether the state has changed. Send values, not the state itself.
    return (name, votes.count), True


@wallaroo.encoder
def encode(result):
    name, count = result
    return f"{name} => {count}\\n"
'''

_TEST = '''\
"""Tests of NAME: payloads in, bytes out, no ports."""

from pathlib import Path

from wallaroo import testing
from wallaroo.loading import load_application, load_module

NAME = Path(__file__).with_name("NAME.py")


def run(*payloads):
    application = load_application(NAME, placeholders=True)
    return testing.run(application, {"votes": payloads})


def test_votes_are_counted_per_candidate():
    result = run(b"ann", b"bob", b" ANN ")
    assert result.output == [b"Ann => 1\\n", b"Bob => 1\\n", b"Ann => 2\\n"]


def test_an_empty_line_is_no_vote():
    assert run(b"", b"  ").output == []


def test_what_is_no_text_is_a_dead_letter_and_harms_no_other():
    result = run(b"ann", b"\\xff", b"ann")
    assert result.output == [b"Ann => 1\\n", b"Ann => 2\\n"]
    assert [letter.reason for letter in result.dead_letters] == ["decode"]


def test_a_decorated_function_is_tested_like_any_other():
    application = load_module(NAME).module
    assert application.tidy("  eve\\n") == "Eve"


def test_every_rule_is_kept():
    assert run(b"ann", b"bob", b"ann").findings == []
'''


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "new",
        help="write a starting application and its test",
        description="Write NAME.py, a starting application, and test_NAME.py, its test, into the "
        "current directory.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("name", metavar="NAME", help="the application's name, as a module's")
    parser.set_defaults(run=new)


def new(options: argparse.Namespace) -> int:
    """Run the command."""
    name = options.name.removesuffix(".py")
    _check(name)
    files = {
        Path(f"{name}.py"): _APPLICATION.replace("NAME", name),
        Path(f"test_{name}.py"): _TEST.replace("NAME =", "APPLICATION =")
        .replace("(NAME", "(APPLICATION")
        .replace("NAME", name),
    }
    for path in files:
        if path.exists():
            raise WallarooError(f"{path} is there already, and nothing was written")
    for path, text in files.items():
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    print(f"wrote {name}.py and test_{name}.py; try: pytest test_{name}.py")
    return 0


def _check(name: str) -> None:
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        suggestion = "".join([c if c.isascii() and c.isalnum() else "_" for c in name])
        if not suggestion.isidentifier() or keyword.iskeyword(suggestion):
            suggestion = f"my_{suggestion}"
        raise WallarooError(f"{name!r} is no module's name; try: wallaroo new {suggestion}")
    if name in sys.stdlib_module_names or name == "wallaroo":
        # It would run, but `import json` in a file beside it would import it, not the library.
        raise WallarooError(f"{name!r} is the name of a library; try: wallaroo new my_{name}")
