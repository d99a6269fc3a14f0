"""Import all tests once: ``python imported_once.py ARGUMENT OF PYTEST …``.

Python keeps what it has compiled, and pytest the tests that it has rewritten; of processes that
begin together each would do all of it. Nothing is run here, and what is wrong with a test is told
when it is run.
"""

import subprocess
import sys

if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", *sys.argv[1:]]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
