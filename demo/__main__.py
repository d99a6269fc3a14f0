"""``python -m demo``: play the acts, from the repository's root."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from demo.acts import ACTS, DifferentError, SkippedError, Stage
from demo.children import ChildFailedError
from demo.interrupts import interrupts
from demo.screen import say, title


def main() -> int:
    """Play the acts; 0 if none failed."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--words", type=int, default=2_000_000, help="how many (2000000)")
    parser.add_argument("--seed", type=int, default=1, help="a text for every number (1)")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder (demo-out)")
    parser.add_argument("--acts", type=int, default=len(ACTS), help="only the first so many")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    stage = Stage(arguments.words, arguments.seed, arguments.out, lines=[])
    started = time.monotonic()
    failed = 0
    for number, (name, act) in enumerate(ACTS[: arguments.acts], 1):
        title(f"{number}. {name}")
        try:
            act(stage)
        except SkippedError as reason:
            say(f"  skipped: {reason}")
        except (ChildFailedError, DifferentError, OSError) as error:
            failed += 1
            say(f"  FAILED: {error}")
    say(f"\n{time.monotonic() - started:.0f} s. Pictures and pages are in {arguments.out}/")
    return 1 if failed else 0


if __name__ == "__main__":
    interrupts.install()
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("\nstopped")
        sys.exit(130)
    except BrokenPipeError:  # the reader of the output has ended; Python flushes once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
