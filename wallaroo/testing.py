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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from wallaroo.engine import Case, Isolation, OnError, load_engine
from wallaroo.errors import WallarooError, WallarooParameterError
from wallaroo.failure import describe_error
from wallaroo.keys import Key, show_key
from wallaroo.readable import trace_text
from wallaroo.topology import Application, SinkId
from wallaroo.trace import DeadLetter, Entity, Finding, InputLog, Trace


class EntityError(WallarooError):
    """A state entity cannot be read back in this process; says which, why, and what to use."""


@dataclass(frozen=True, repr=False)
class Result:
    """What a run did, in the form that tests need.

    Args:
        outputs: for each sink, (pipeline, index), its outputs in order.
        dead_letters: the dead letters, in order.
        structures: for each state partition its entities by key, as canonical structure
            (`wallaroo.canonical`), the form in which engines are compared.
        findings: the findings of `isolated` mode about the application.
        trace: the whole trace, as conformance compares it.
    """

    outputs: dict[SinkId, list[bytes]]
    dead_letters: list[DeadLetter]
    structures: dict[str, dict[Key, Any]]
    findings: list[Finding]
    trace: Trace

    def __repr__(self) -> str:
        return trace_text(self.trace)

    @cached_property
    def entities(self) -> dict[str, dict[Key, Any]]:
        """For each state partition its entities by key, as objects of the application's classes.

        Raises:
            EntityError: one of them cannot be read back in this process.
        """
        entities: dict[str, dict[Key, Any]] = {name: {} for name in self.structures}
        for entity in self.trace.entities:
            entities[entity.partition][entity.key] = _loaded(entity)
        return entities

    @property
    def output(self) -> list[bytes]:
        """The outputs of the application's only sink.

        Raises:
            ValueError: it has none, or several.
        """
        if len(self.outputs) != 1:
            raise ValueError(f"the application has {len(self.outputs)} sinks: use outputs[SINK]")
        return next(iter(self.outputs.values()))


def run(
    application: Application,
    payloads: Mapping[str, Sequence[bytes]] | Iterable[tuple[str, bytes]],
    *,
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
            before all of the second. Or pairs (source, payload), in the order received.
        engine: an installed engine's name.
        isolation: `isolated` keeps every rule and reports findings; `trusting` is fast.
        on_error: ``stop`` ends the run at the first dead letter (dead-4).
        partitions: number of partitions; the engine's choice unless given.
        batches: sizes of micro-batches, in messages, for engines that have them.
        options: the engine's own, such as thresholds.

    Raises:
        WallarooParameterError: the application has no such source, or a payload is not bytes.
        EngineNotFoundError: there is no such engine.
        UnsupportedTopology: the engine cannot run this application (build-2).
        KeyboardInterrupt: Ctrl-C came while user code ran; the engine has ended the run (dead-3).
    """
    if options is None:
        # The reference engine's own option: look for findings at every call.
        options = {"thorough": True} if engine == "reference" else {}
    chosen = load_engine(engine)
    chosen.check(application)
    case = Case(
        application,
        _input_log(application, payloads),
        batches=batches,
        partitions=partitions,
        isolation=isolation,
        on_error=on_error,
        options=options,
    )
    trace = chosen.run(case)
    if trace.ended is not None and trace.ended.error_type == KeyboardInterrupt.__name__:
        raise KeyboardInterrupt(f"in {trace.ended.step or trace.ended.pipeline}")
    structures: dict[str, dict[Key, Any]] = {name: {} for name in application.partition}
    for entity in trace.entities:
        structures[entity.partition][entity.key] = entity.state
    return Result(
        outputs={sink: list(trace.outputs.get(sink, ())) for sink in application.sinks},
        dead_letters=list(trace.dead_letters),
        structures=structures,
        findings=list(trace.findings),
        trace=trace,
    )


def _loaded(entity: Entity) -> Any:
    which = f"entity {show_key(entity.key)} of state partition {entity.partition!r}"
    if entity.load is None:
        raise EntityError(f"{which}: this engine gives no objects. Use result.structures")
    try:
        return entity.load()
    except Exception as error:
        raise EntityError(
            f"{which} cannot be unpickled in this process: "
            f"{type(error).__name__}: {describe_error(error)}. Use result.structures, which has "
            "its contents"
        ) from error


def _input_log(
    application: Application,
    payloads: Mapping[str, Sequence[bytes]] | Iterable[tuple[str, bytes]],
) -> InputLog:
    if isinstance(payloads, Mapping):
        for source, items in payloads.items():
            if isinstance(items, (bytes, str)):
                raise WallarooParameterError(
                    f"source {source!r}: expected a list of payloads, "
                    f"not one {type(items).__name__}"
                )
        log = [(source, payload) for source, items in payloads.items() for payload in items]
    else:
        log = list(payloads)
    for source, payload in log:
        if source not in application.sources:
            known = ", ".join(repr(name) for name in application.sources)
            raise WallarooParameterError(
                f"application {application.name!r} has no source {source!r}; it has {known}"
            )
        if type(payload) is not bytes:
            raise WallarooParameterError(
                f"source {source!r}: a payload is bytes, "
                f"not {type(payload).__name__} {payload!r:.60}"
            )
    return log
