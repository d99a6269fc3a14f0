"""The language and the reference engine need the standard library only."""

import sys

from running import ran

PROGRAM = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first not in sys.stdlib_module_names and not first.startswith("wallaroo"):
            raise ModuleNotFoundError(f"{name} is not in the standard library", name=name)

sys.meta_path.insert(0, Refuse())
import wallaroo, wallaroo.testing, wallaroo.loading, wallaroo.drawing
import wallaroo_reference.engine, wallaroo_reference.serving.server, wallaroo.monitor.server
from wallaroo.cli.main import main
sys.exit(main(["engines"]))
"""


def test_the_language_and_the_reference_engine_import_nothing_else() -> None:
    done = ran([sys.executable, "-c", PROGRAM])
    assert done.returncode == 0, done.stderr
    assert "reference" in done.stdout
