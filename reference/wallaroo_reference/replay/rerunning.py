"""Runs an application on a recorded log, and writes its outputs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from wallaroo.errors import WallarooError
from wallaroo.kafka_records import Produced
from wallaroo.overriding import override
from wallaroo.text import escaped
from wallaroo.topology import Application, SinkId
from wallaroo.trace import DeadLetter, output_to_json, sorted_entities, sorted_windows
from wallaroo_reference.replay.feeding import Input, feed

_AT_ONCE = 64  # frames that are fed before what came out is taken


class ResultWriter:
    """Writes the results of a rerun; a subclass writes outputs, dead letters, or both.

    Attributes:
        each: it wants to be called after each record.
    """

    each = False

    def outputs(self, record: int, sink: SinkId, first: int, outputs: Sequence[bytes]) -> None:
        """Take outputs of a sink, numbered from `first`; `record` made them, if it wants `each`."""
        return

    def letters(self, first: int, letters: Sequence[DeadLetter]) -> None:
        """Take dead letters, numbered from `first`."""
        return


class Rerun:
    """An application on a recorded log.

    Args:
        application: what to run.
        given: the log.
        on_error: ``stop`` ends the run at the first dead letter (dead-4).

    Attributes:
        machine: what runs it.
        records: number of records that have been processed.
        outputs: number of outputs by sink.
        dead_letters: number of dead letters by (pipeline, step, reason).
        first_letters: the first of each.
    """

    def __init__(self, application: Application, given: Input, *, on_error: str) -> None:
        self.machine = given.interpreter(application, on_error=on_error)
        self.records = 0
        self.outputs: dict[SinkId, int] = dict.fromkeys(application.sinks, 0)
        self.dead_letters: Counter[tuple[str, str | None, str]] = Counter()
        self.first_letters: dict[tuple[str, str | None, str], DeadLetter] = {}
        self._letters = 0
        self._application = application
        self._given = given

    @property
    def made(self) -> int:
        """Number of outputs of all sinks."""
        return sum(self.outputs.values())

    @property
    def letters(self) -> int:
        """Number of dead letters."""
        return self._letters

    def run(self, writers: Sequence[ResultWriter], progress: Callable[[], None]) -> None:
        """Run it to its end.

        Args:
            writers: write the results.
            progress: called after some records.

        Raises:
            WallarooError: the log cannot be read, or does not fit the application.
        """
        machine = self.machine
        at_once = 1 if any(writer.each for writer in writers) else _AT_ONCE
        for number in feed(self._application, self._given, machine, at_once=at_once):
            self.records = number - self._given.start
            for sink, outputs in machine.outputs.items():
                if outputs:
                    shown = [one if type(one) is bytes else _in_json(one) for one in outputs]
                    for writer in writers:
                        writer.outputs(number - 1, sink, self.outputs[sink], shown)
                    self.outputs[sink] += len(outputs)
                    outputs.clear()
            if machine.dead_letters:
                self._take_letters(writers)
            progress()

    def _take_letters(self, writers: Sequence[ResultWriter]) -> None:
        letters = self.machine.dead_letters
        for writer in writers:
            writer.letters(self._letters, letters)
        self._letters += len(letters)
        for letter in letters:
            kind = letter.pipeline, letter.step, letter.reason.value
            self.dead_letters[kind] += 1
            self.first_letters.setdefault(kind, letter)
        letters.clear()


def _in_json(output: Produced) -> bytes:
    """Return an output of a Kafka sink as JSON; what is not UTF-8 is escaped."""

    def text(data: bytes | None) -> str | None:
        return None if data is None else data.decode("utf-8", "backslashreplace")

    headers = [[name, text(value)] for name, value in output.headers]
    form = {**output._asdict(), "value": text(output.value), "key": text(output.key)}
    return json.dumps({**form, "headers": headers}, ensure_ascii=False).encode()


class Lines(ResultWriter):
    """Outputs as lines on a stream; one that does not end in a newline gets one.

    Args:
        stream: where.
        only: the sink whose outputs are wanted; `None`: those of all.
    """

    def __init__(self, stream: IO[bytes], only: SinkId | None) -> None:
        self._stream = stream
        self._only = only

    @override
    def outputs(self, record: int, sink: SinkId, first: int, outputs: Sequence[bytes]) -> None:
        if self._only in (None, sink):
            write = self._stream.write
            for output in outputs:
                write(output if output.endswith(b"\n") else output + b"\n")


class Files(ResultWriter):
    """The bytes that each sink's peer would get, in a file for each sink. `close` it.

    Args:
        directory: it is made if it is missing; files in it are replaced.
        sinks: the sinks.
    """

    def __init__(self, directory: Path, sinks: Sequence[SinkId]) -> None:
        if len({file_name(sink) for sink in sinks}) < len(sinks):
            raise WallarooError(f"two sinks would share a file in {directory}: use --json instead")
        directory.mkdir(parents=True, exist_ok=True)
        with ExitStack() as up:
            self._files = {
                sink: up.enter_context((directory / file_name(sink)).open("wb")) for sink in sinks
            }
            self.close = up.pop_all().close

    @override
    def outputs(self, record: int, sink: SinkId, first: int, outputs: Sequence[bytes]) -> None:
        self._files[sink].write(b"".join(outputs))


class LetterFile(ResultWriter):
    """Dead letters as lines of JSON, as ``wallaroo run --dead-letters`` writes them. `close` it.

    Args:
        path: the file, which is replaced.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="ascii")
        self.close = self._file.close

    @override
    def letters(self, first: int, letters: Sequence[DeadLetter]) -> None:
        for letter in letters:
            print(json.dumps(letter.to_json()), file=self._file)


class JSONLines(ResultWriter):
    """Everything as lines of JSON, in the order in which it came.

    Args:
        stream: where.
    """

    each = True

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    @override
    def outputs(self, record: int, sink: SinkId, first: int, outputs: Sequence[bytes]) -> None:
        for number, output in enumerate(outputs, first):
            form = {"sink": f"{sink[0]}/{sink[1]}", "number": number, "record": record}
            self.line({"output": {**form, "data": output_to_json(output)}})

    @override
    def letters(self, first: int, letters: Sequence[DeadLetter]) -> None:
        for number, letter in enumerate(letters, first):
            self.line({"dead_letter": {"number": number, **letter.to_json()}})

    def line(self, form: Mapping[str, Any]) -> None:
        """Write a line."""
        self._stream.write(json.dumps(form).encode("ascii") + b"\n")

    def end(self, rerun: Rerun) -> None:
        """Write what remains at the end: entities, windows, late messages, findings."""
        machine = rerun.machine
        for entity in sorted_entities(machine.entities()):
            self.line({"entity": entity.to_json()})
        for window in sorted_windows(machine.windows()):
            self.line({"window": window.to_json()})
        for (step, what), number in sorted(machine.late.items()):
            self.line({"late": {"step": step, "what": what, "number": number}})
        for finding in machine.findings:
            self.line({"finding": finding.to_json()})
        ended = machine.ended
        self.line(
            {
                "end": {
                    "records": rerun.records,
                    "outputs": {f"{name}/{index}": n for (name, index), n in rerun.outputs.items()},
                    "dead_letters": rerun.letters,
                    "ended": None if ended is None else ended.to_json(),
                }
            }
        )


def file_name(sink: SinkId) -> str:
    """Return the name of the file of a sink's outputs: ``PIPELINE.INDEX``."""
    name = "".join([letter if letter.isalnum() or letter in " -_." else "_" for letter in sink[0]])
    return f"{name}.{sink[1]}"


def sink_of(text: str, application: Application) -> SinkId:
    """Return the sink that ``PIPELINE/INDEX`` names.

    Raises:
        WallarooError: the application has no such sink.
    """
    for pipeline, index in application.sinks:
        if text in (f"{pipeline}/{index}", escaped(f"{pipeline}/{index}")):
            return pipeline, index
    names = ", ".join([f"{pipeline}/{index}" for pipeline, index in application.sinks])
    raise WallarooError(
        f"application {application.name!r} has no sink {text}; it has {names or 'none'}"
    )
