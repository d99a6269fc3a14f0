"""Build the documents' site: ``python docs/tools/build_site.py site``.

Exits 1 if a page cannot be built or a link leads nowhere.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from wallaroo_docs.site import SiteError, build


def main() -> int:
    """Build it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path, help="where to; what is there is replaced")
    arguments = parser.parse_args()
    try:
        build(arguments.directory)
    except SiteError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
