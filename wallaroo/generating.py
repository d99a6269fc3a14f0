"""What a generator source makes, as records of the log (graph-4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from wallaroo.components import Generator
from wallaroo.copying import PICKLED
from wallaroo.judging import DeadLetterError
from wallaroo.records import End, Value
from wallaroo.user_code.failure import describe_error


def generate(
    source: str, generator: Generator, clock: Callable[[], int], last: Any = None
) -> Iterator[Value | End]:
    """Yield a source's values and then its end.

    A value is a copy, so what the application does to it does not show in the next.

    Args:
        source: the source's name.
        generator: makes the values.
        clock: returns the arrival time of the next record, in nanoseconds.
        last: the value of the source's last record in a log that goes on; `None`: it begins.
    """
    try:
        value = generator.initial_value() if last is None else generator.call(last)
        while value is not None:
            yield Value(source, _copied(value), clock())
            value = generator.call(value)
    except GeneratorExit:  # nobody wants more values
        raise
    except BaseException as error:  # noqa: BLE001 - user code: the record says what it raised
        ends_run = not isinstance(error, Exception)
        yield End(source, clock(), type(error).__name__, describe_error(error), ends_run)
        return
    yield End(source, clock())


def _copied(value: Any) -> Any:
    try:
        return PICKLED.copied(value)
    except DeadLetterError:  # not portable; the engine says so where the rules want it
        return value
