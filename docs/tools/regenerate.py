"""Rewrite what the documents show: the specification's results and guards, pictures, figures.

``python docs/tools/regenerate.py`` rewrites; with ``--check`` it only says what would change, and
exits 1 if anything would. With ``--dump`` it prints the specification's examples as JSON, for the
test suites of others.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from wallaroo_docs.blocks import chapters, dumped, examples
from wallaroo_docs.figures import with_figures
from wallaroo_docs.guards import guarded, page
from wallaroo_docs.matrix import with_matrix
from wallaroo_docs.pages import DOCS
from wallaroo_docs.pictures import pictures
from wallaroo_docs.running import rewritten


def main() -> int:
    """Rewrite or check every chapter, picture and figure."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--check", action="store_true", help="change nothing; exit 1 if stale")
    arguments.add_argument("--dump", action="store_true", help="print the examples as JSON")
    options = arguments.parse_args()
    if options.dump:
        print(json.dumps(dumped(), indent=1))
        return 0
    check = options.check
    stale = 0
    for path, new in _current():
        old = path.read_text("utf-8") if path.exists() else ""
        if new == old:
            continue
        stale += 1
        lines = difflib.unified_diff(
            old.splitlines(keepends=True), new.splitlines(keepends=True), path.name, "regenerated"
        )
        sys.stdout.writelines(lines)
        if not check:
            path.write_text(new, "utf-8")
    return 1 if check and stale else 0


def _current() -> Iterator[tuple[Path, str]]:
    """Yield each file that is written by this command, and what it should hold."""
    for path in chapters():
        if path.name == "guards.md":
            yield path, page()
        else:
            own = [example.parsed for example in examples(path, lambda _: None)]
            yield path, guarded(rewritten(path, own))
    yield from pictures()
    for path in sorted(DOCS.glob("*.md")):
        yield path, with_matrix(with_figures(path.read_text("utf-8")))


if __name__ == "__main__":
    sys.exit(main())
