"""``python -m wallaroo_mutants``: which mutants do not fit the engines' source any more?"""

from __future__ import annotations

import sys

from wallaroo_mutants.catalogue import read
from wallaroo_mutants.patching import PatchError


def main() -> int:
    """Print what does not fit; 0: everything does."""
    entries = list(read())
    bad = 0
    for entry in entries:
        try:
            entry.patch.codes()
        except PatchError as error:
            print(error)
            bad += 1
    print(f"{len(entries) - bad} of {len(entries)} fit")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
