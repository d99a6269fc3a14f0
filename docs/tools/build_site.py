"""Build the documents' site: ``python docs/tools/build_site.py site``.

Exits 1 if a page cannot be built or a link leads nowhere. Needs Node 20 or newer with npm, except
with ``--plain``.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from wallaroo_docs.browser_parts import BrowserPartsError
from wallaroo_docs.site import SiteError, build


def main() -> int:
    """Build it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "directory", type=Path, help="directory of the site; its contents are replaced"
    )
    parser.add_argument(
        "--plain", action="store_true", help="only pages to read: examples do not run in them"
    )
    arguments = parser.parse_args()
    try:
        build(arguments.directory, runnable=not arguments.plain)
    except (SiteError, BrowserPartsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    index = (arguments.directory / "index.html").resolve()
    print(f"the site is at {index.as_uri()}")
    if not arguments.plain:
        directory = shlex.quote(str(arguments.directory))
        print(f"its examples run if a server shows it: python3 -m http.server -d {directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
