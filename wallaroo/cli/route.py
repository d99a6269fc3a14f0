"""``wallaroo route``: which partition number each key has (route-4)."""

from __future__ import annotations

import argparse

from wallaroo.cli.application import load_named_application
from wallaroo.cli.arguments import APP_HELP, KEY_HELP, count, key_of, literal_key
from wallaroo.cli.logs import application_output
from wallaroo.cli.main import Subparsers
from wallaroo.cli.terminal import print_table
from wallaroo.errors import WallarooError
from wallaroo.keys import (
    SINGLE_KEY,
    Key,
    encode_key,
    is_u64,
    partition_number,
    respelling_hint,
)

_EXAMPLES = f"""\
{KEY_HELP} With --literal every KEY is a Python literal: 5, "a", b"\\x00", (1, "a").
Without a KEY, the keys the application lists are shown.

examples:
  wallaroo route word_count.py a b '!' --partitions 4
  wallaroo route market_spread.py int:1094787104 --partitions 16
  wallaroo route my_app.py "('eu', 7)" --literal --partitions 8
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "route",
        help="tell which partition number each key has",
        description="Tell which partition number each key has, in each state partition.",
        usage="wallaroo route APP [KEY …] --partitions N [--literal] [-- application arguments]",
        epilog=_EXAMPLES,
    )
    parser.add_argument("app", metavar="APP", help=APP_HELP)
    parser.add_argument("keys", metavar="KEY", nargs="*", help="a key, see below")
    parser.add_argument(
        "--partitions", metavar="N", type=count, required=True, help="number of partitions"
    )
    parser.add_argument("--literal", action="store_true", help="every KEY is a Python literal")
    parser.set_defaults(run=route, passes_arguments=True)


def route(options: argparse.Namespace) -> int:
    """Run the command: 0 if each key has a place in some state partition."""
    read = literal_key if options.literal else key_of
    keys = [read(text) for text in options.keys]
    with application_output():
        application = load_named_application(options, placeholders=True)
    if not application.partitions:
        raise WallarooError(
            f"application {application.name!r} has no state partitions, so no key has a number"
        )
    rows: list[list[str]] = []
    placed = [False] * len(keys)
    for partition in application.partitions:
        if partition.keys == (SINGLE_KEY,):
            number = str(partition_number(SINGLE_KEY, options.partitions))
            rows.append([partition.name, "its one entity", number])
            placed = [True] * len(keys) if len(application.partitions) == 1 else placed
            continue
        listed = partition.keys
        listed_keys = None if listed is None else {encode_key(key) for key in listed}
        if not keys and listed is None:
            rows.append([partition.name, "any key", "give a KEY to see its number"])
        for position, key in enumerate(keys or listed or ()):
            problem = _problem(key, listed_keys, u64=partition.u64)
            if problem is None:
                number = str(partition_number(key, options.partitions))
                rows.append([partition.name, repr(key), number])
                if keys:
                    placed[position] = True
            else:
                rows.append([partition.name, repr(key), problem])
    print_table(["state partition", "key", "partition number"], rows)
    return 0 if all(placed) else 1


def _problem(key: Key, listed_keys: set[bytes] | None, *, u64: bool) -> str | None:
    """Return the dead letter a message with this key would be, and why (route-2, -3, -5)."""
    if u64 and not is_u64(key):
        return "bad-key: keys are ints from 0 to 2**64 - 1 (write int:5)"
    if listed_keys is not None and encode_key(key) not in listed_keys:
        hint = respelling_hint(key, lambda other: encode_key(other) in listed_keys)
        return f"unknown-key: not one of its {len(listed_keys)} keys{hint}"
    return None
