"""``python -m wallaroo`` is the command ``wallaroo``."""

import sys

from wallaroo.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
