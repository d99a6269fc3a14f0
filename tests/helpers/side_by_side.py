"""Run two commands at the same time: ``python side_by_side.py COMMAND … ::: COMMAND …``.

What the first says is seen at once; what the second says, when both have ended. The exit code is
the first one's, or the second's if the first went well.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

BETWEEN = ":::"


def main(arguments: list[str]) -> int:
    """Run both and return the exit code."""
    at = arguments.index(BETWEEN)
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(arguments[at + 1 :], stdout=said, stderr=subprocess.STDOUT) as second,
        subprocess.Popen(arguments[:at]) as first,
    ):
        codes = [first.wait(), second.wait()]
        said.seek(0)
        sys.stdout.buffer.write(said.read())
    return codes[0] or codes[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
