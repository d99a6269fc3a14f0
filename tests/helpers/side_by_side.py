"""Run a command beside others: ``python side_by_side.py COMMAND ::: OTHER ::: NEXT OTHER …``.

The others run one after another while the first one runs. What the first says is seen at once; what
the others say, when all have ended. The exit code is the first one's, or if that went well, the
first that is not 0; after it, no further command is started.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from itertools import groupby
from typing import IO

BETWEEN = ":::"


def main(arguments: list[str]) -> int:
    """Run all and return the exit code."""
    split = groupby(arguments, lambda argument: argument == BETWEEN)
    command, *others = [list(one) for between, one in split if not between]
    with tempfile.TemporaryFile() as said, subprocess.Popen(command) as first:
        code = _one_after_another(others, said)
        first_code = first.wait()
        said.seek(0)
        sys.stdout.buffer.write(said.read())
    return first_code or code


def _one_after_another(commands: list[list[str]], said: IO[bytes]) -> int:
    for command in commands:
        if code := subprocess.run(command, stdout=said, stderr=subprocess.STDOUT).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
