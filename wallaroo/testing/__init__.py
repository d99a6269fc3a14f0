r"""Run an application in a test or a notebook: payloads in, outputs out, no ports.

>>> import wallaroo
>>> from wallaroo import testing
>>> @wallaroo.decoder(header_length=4, length_fmt=">I")
... def decode(payload):
...     return payload.decode("utf-8")
>>> @wallaroo.computation(name="shout")
... def shout(text):
...     return text.upper()
>>> @wallaroo.encoder
... def encode(text):
...     return text + "\n"
>>> application = (
...     wallaroo.ApplicationBuilder("shouting")
...     .new_pipeline("words", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
...     .to(shout)
...     .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
...     .build()
... )
>>> testing.run(application, {"words": [b"hello", b"\xff"]}).outputs
{('words', 0): [b'HELLO\n']}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wallaroo.engine import Case, Isolation, OnError, load_engine
from wallaroo.kafka_records import Produced
from wallaroo.testing.input import Payloads, input_log_of, refuse_unknown
from wallaroo.testing.results import EntityError, Result, result_of
from wallaroo.testing.session import Session
from wallaroo.topology import Application
from wallaroo.user_code.slips import slips_logged

__all__ = ["EntityError", "Produced", "Result", "Session", "run"]


def run(
    application: Application,
    payloads: Payloads = (),
    *,
    end: bool = True,
    engine: str = "reference",
    isolation: Isolation = "isolated",
    on_error: OnError = "skip",
    partitions: int | None = None,
    batches: Sequence[int] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Result:
    """Run `application` on payloads (frames without their headers) and return what it did.

    Args:
        application: what `ApplicationBuilder.build` returned.
        payloads: the payloads of each source, by its pipeline's name; all of the first source come
            before all of the second. Or pairs (source, payload), in the order received. A payload
            may be a pair (nanoseconds, payload), which says when it arrives; the sources' payloads
            are then in order of time. Or records (`wallaroo.records`). Generator sources give what
            they give by themselves. For a Kafka source a payload is a `wallaroo.KafkaRecord`, or
            its value; offsets that are left out are counted.
        end: whether the sources end when their input does, so that all windows fire (time-5).
        engine: an installed engine's name.
        isolation: `isolated` keeps every rule and reports findings; `trusting` is fast.
        on_error: ``stop`` ends the run at the first dead letter (dead-4).
        partitions: number of partitions; the engine's choice unless given.
        batches: sizes of micro-batches, in records, for engines that have them.
        options: the engine's own, such as thresholds.

    Raises:
        WallarooParameterError: the application has no such source, a payload is not bytes, or
            there is no such `isolation` or `on_error`.
        EngineNotFoundError: there is no such engine.
        UnsupportedTopology: the engine cannot run this application (build-2).
        KeyboardInterrupt: Ctrl-C came while user code ran; the engine has ended the run (dead-3).
    """
    refuse_unknown(isolation, on_error)
    if options is None:
        # The reference engine's own option: look for findings at every call.
        options = {"thorough": True} if engine == "reference" else {}
    chosen = load_engine(engine)
    chosen.check(application)
    case = Case(
        slips_logged(application, pairs=isolation == "trusting"),
        input_log_of(application, payloads, end=end),
        batches=batches,
        partitions=partitions,
        isolation=isolation,
        on_error=on_error,
        options=options,
    )
    trace = chosen.run(case)
    if trace.ended is not None and trace.ended.error_type == KeyboardInterrupt.__name__:
        raise KeyboardInterrupt(f"in {trace.ended.step or trace.ended.pipeline}")
    return result_of(application, trace)
