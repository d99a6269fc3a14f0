"""A notebook: cells of a main program that has no file, on the reference engine and on Spark."""

import os
import sys

import pytest
from running import ran

CELLS = '''
import sys

cells = [
"""
import signal
import wallaroo
from wallaroo import testing

def own(*_):
    "What Ctrl-C does here; PySpark would put something of its own in its place."

signal.signal(signal.SIGINT, own)
""",
"""
suffix = "!"

class Count:
    def __init__(self):
        self.count = 0

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()

@wallaroo.computation(name="shout")
def shout(word):
    return word.upper() + suffix

@wallaroo.state_computation(name="count")
def count(word, state):
    state.count += 1
    return (word, state.count), True

@wallaroo.encoder
def encode(pair):
    return "%s %d" % pair
""",
"""
application = (
    wallaroo.ApplicationBuilder("notebook")
    .new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    .to(shout)
    .to_state_partition(count, Count, "counts", wallaroo.partition(lambda word: word))
    .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 1, encode))
    .build()
)
for engine in ("reference", "spark"):
    print(testing.run(application, {"p": [b"a", b"a"]}, engine=engine).output)
print(signal.getsignal(signal.SIGINT) is own)
""",
]
for number, cell in enumerate(cells):
    exec(compile(cell, f"<ipython-input-{number}>", "exec"), vars(sys.modules["__main__"]))
'''


@pytest.mark.alone
def test_cells_run_on_both_engines_and_the_start_of_spark_is_told():
    environment = {name: text for name, text in os.environ.items() if "PYTEST" not in name}
    done = ran([sys.executable, "-"], env=environment, input=CELLS)
    assert done.stdout.splitlines() == [*["[b'A! 1', b'A! 2']"] * 2, "True"], done.stderr
    assert done.stderr == "Spark is starting, once for this process; it takes some seconds\n"
