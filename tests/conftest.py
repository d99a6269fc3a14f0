"""What all tests share: how long Hypothesis looks, and small applications to look at.

`HYPOTHESIS_PROFILE` chooses among *dev* (a quick look, new examples each time), *ci* (the same
examples each time; taken when ``CI`` is ``true``), *nightly* (a long look, and what it finds is
kept for the next) and *brief* (few examples, the same each time: for the other versions of Python,
since more examples would tell more about our code and not about the version).
"""

import contextlib
import gc
import os
import signal
from pathlib import Path

import pytest
from failing_disk import Disk
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from receiving import Receiver

import wallaroo
from wallaroo.transport import input_log

# Machines that are shared stand still now and then: time says nothing about a property.
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile(
    "ci", deadline=None, max_examples=100, derandomize=True, database=None, print_blob=True
)
settings.register_profile(
    "nightly",
    deadline=None,
    max_examples=5_000,
    database=DirectoryBasedExampleDatabase(
        os.environ.get("HYPOTHESIS_DATABASE", Path(".hypothesis") / "nightly")
    ),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "brief", deadline=None, max_examples=5, derandomize=True, database=None, print_blob=True
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") == "true" else "dev")
)

# A shell starts its background jobs with Ctrl-C ignored, and so would be every process of a test
# that presses it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test turns the power off. Whether all is synced that must be, simulations find out, on disks of
# their own; a real disk would only be waited for, a third of the time of some tests.
os.fsync = lambda fd: None

# Tests make much that lives shortly and in no circles: looking for those less often takes a tenth
# of the processor's time away.
gc.set_threshold(20_000, 50, 100)


_WAITING = tuple(
    str(Path(__file__).parent / folder) + os.sep
    for folder in ("examples", "wallaroo/cli")  # not loadgen: it measures time
)


def pytest_collection_modifyitems(items):
    """Tests that mostly wait come first: Spark's, which begin too, have work for all cores then.

    Those marked `nightly` are skipped by day, with the reason that the mark gives.
    """
    items.sort(key=lambda item: not str(item.path).startswith(_WAITING))
    if settings.get_current_profile_name() == "nightly":
        return
    for item in items:
        if mark := item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.skip(reason=f"run at night: {mark.args[0]}"))


def pytest_terminal_summary(terminalreporter):
    """Say which broker Kafka's tests had."""
    ran = [one for some in ("passed", "failed") for one in terminalreporter.getreports(some)]
    if any("kafka" in report.nodeid for report in ran):
        from kafka_broker import which

        terminalreporter.write_line(f"Kafka's broker here: {which().name}")


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_text(payload):
    return payload.decode("utf-8")


@wallaroo.encoder
def encode_repr(message):
    return f"{message!r};"


def _build(*steps, decoder=decode_text, encoder=encode_repr, sinks=1, name="p"):
    builder = wallaroo.ApplicationBuilder("app")
    return _add(builder, *steps, decoder=decoder, encoder=encoder, sinks=sinks, name=name).build()


def _add(builder, *steps, decoder=decode_text, encoder=encode_repr, sinks=1, name="p"):
    builder.new_pipeline(name, wallaroo.TCPSourceConfig("127.0.0.1", 0, decoder))
    for method, *arguments in steps:
        getattr(builder, method)(*arguments)
    if not sinks:
        return builder.done()
    encoders = encoder if isinstance(encoder, list) else [encoder] * sinks
    return builder.to_sinks([wallaroo.TCPSinkConfig("127.0.0.1", 7002, each) for each in encoders])


@pytest.fixture(scope="session")
def app():
    """An application of one pipeline ``p``: ``app(("to", computation), …)``, text in, repr out.

    A list of encoders makes as many sinks; `sinks=0` ends it in ``done()``.
    """
    return _build


@pytest.fixture(scope="session")
def add_pipeline():
    """`app`, for applications of several pipelines: adds one to a builder."""
    return _add


@pytest.fixture(scope="session")
def decode_payload():
    """A decoder that hands on the payload as it is."""

    @wallaroo.decoder(header_length=4, length_fmt=">I")
    def decode(payload):
        return payload

    return decode


@pytest.fixture(scope="session")
def kafka():
    """One broker for all tests that do it no harm; those are of the group ``Kafka``."""
    from kafka_broker import broker

    with broker() as made:
        yield made


@pytest.fixture
def receiver():
    """A sink's peer."""
    with contextlib.closing(Receiver()) as made:
        yield made


@pytest.fixture
def whole_kafka(kafka):
    """`kafka`, if it can do all that a test may need."""
    if kafka.lacks:
        pytest.skip(f"{kafka.name} {kafka.lacks}")
    return kafka


@pytest.fixture
def disk(monkeypatch):
    """The disk under input logs, which can be made full."""
    made = Disk()
    monkeypatch.setattr(input_log, "os", made)
    return made
