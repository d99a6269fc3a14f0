"""What an input log holds, record by record."""

from wallaroo.records import Record
from wallaroo.transport.input_log import InputLog


def records_in(log: InputLog, start: int, stop: int) -> list[Record]:
    """Return the records from number `start` to before `stop`; a `Value` is bytes."""
    return [record for run in log.runs(start, stop) for record in run.records()]
