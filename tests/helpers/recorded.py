"""Recordings and applications for the tests of `wallaroo rerun` and `wallaroo explain`."""

import json
from dataclasses import replace

from wallaroo.cli.main import main
from wallaroo.loading import load_application
from wallaroo.records import Frame, Value
from wallaroo.transport.identity import identity_of
from wallaroo.transport.input_log import InputLog
from wallaroo.transport.logged import encoded
from wallaroo.transport.recording import Recording
from wallaroo.transport.stamps import UNSTAMPED

VOTES = """
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()

@wallaroo.computation_multi(name="split")
def split(text):
    return text.split()

class Count:
    def __init__(self):
        self.count = 0

@wallaroo.state_computation(name="count")
def count(word, state):
    if word == "bad":
        raise ValueError("a bad word")
    state.count += 1
    return f"{word} {state.count}", True

@wallaroo.partition
def first(word):
    return word[0]

@wallaroo.encoder
def encode(message):
    return message

def application_setup(args):
    (source,), (sink,) = (
        wallaroo.tcp_parse_input_addrs(args), wallaroo.tcp_parse_output_addrs(args)
    )
    return (
        wallaroo.ApplicationBuilder("votes")
        .new_pipeline("words", wallaroo.TCPSourceConfig(*source, decode))
        .to(split)
        .to_state_partition(count, Count, "counts", first)
        .to_sink(wallaroo.TCPSinkConfig(*sink, encode))
        .build()
    )
"""


def record(directory, application, records, *, engine="reference", **options):
    """Write a recording as a run does; a pair is (source, payload)."""
    found = [Frame(*one) if isinstance(one, tuple) else one for one in records]
    identity = identity_of(engine, application, 1, UNSTAMPED)
    recording = Recording(directory, identity, application, checkpoint=None)
    log = InputLog.open(recording.input_log, 1 << 30, recording=recording.input_log, **options)
    for one in found:
        if isinstance(one, Value):
            one = replace(one, value=encoded(one.value))
        log.append_records([one])
    log.sync()
    log.close()
    recording.close()
    return directory


def voted(folder, *lines, **options):
    """Write the application votes.py and a recording of it; return their paths as text."""
    app = folder / "votes.py"
    app.write_text(VOTES)
    application = load_application(app, placeholders=True)
    frames = [("words", line.encode()) for line in lines]
    return str(record(folder / "r", application, frames, **options)), str(app)


def called(capfd, *arguments):
    """Run a command; return its exit code, stdout and stderr."""
    code = main([str(one) for one in arguments])
    out, err = capfd.readouterr()
    return code, out, err


def lines_of(capfd, *arguments):
    """Return what `wallaroo rerun --json` prints, by kind."""
    code, out, err = called(capfd, "rerun", *arguments, "--json")
    assert code == 0, err
    found = {}
    for line in map(json.loads, out.splitlines()):
        for kind, form in line.items():
            found.setdefault(kind, []).append(form)
    return found
