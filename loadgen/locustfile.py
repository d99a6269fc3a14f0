"""Load tests led by Locust; see loadgen/README.md.

    locust -f loadgen/locustfile.py --workload word_count --to 127.0.0.1:7010
    python loadgen/locustfile.py --help

Locust's own `--help` ends before it has read this file, so it cannot show our options; this file
as a program is the same command with them.
"""

import sys

from wallaroo_loadgen.with_locust.runs import LoadUser, install

install()

if __name__ == "__main__":
    from locust.main import main

    sys.argv[1:1] = ["-f", __file__]
    main()  # type: ignore[no-untyped-call] # Locust types what its users call only

__all__ = ["LoadUser"]
