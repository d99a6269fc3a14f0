"""Interpreters with a fault each in what they do with messages, outputs and dead letters."""

# ruff: noqa: D101, D102 - `catalogue` says what each does

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from wallaroo_reference.isolated.copies import freeze, thaw
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.places import Place

from wallaroo.judging import DeadLetterError
from wallaroo.keys import Key
from wallaroo.trace import Lineage, Reason
from wallaroo_mutants.stateful import frozen_again


class SkipsEmpty(Interpreter):
    def feed(self, source: str, payloads: Any, at: int = 0) -> None:
        for payload in payloads:
            if payload:
                super().feed(source, [payload], at)
            else:
                self.sequence += 1


class LeaksHeader(Interpreter):
    def _decode(self, place: Place, payload: bytes, lineage: Lineage) -> None:
        super()._decode(place, payload and payload[:1] + payload, lineage)


class PassesNoneFromDecoder(Interpreter):
    def _decode(self, place: Place, payload: bytes, lineage: Lineage) -> None:
        try:
            filtered = place.call(payload) is None
        except Exception:  # noqa: BLE001 - the call that counts raises it again
            filtered = False
        if filtered:
            self._follow(place, None, lineage)
        else:
            super()._decode(place, payload, lineage)


class PassesNone(Interpreter):
    def _send(self, place: Place, output: Any, lineage: Lineage) -> None:
        if output is None and place.stateful is None:
            self._follow(place, None, lineage)
        else:
            super()._send(place, output, lineage)


class PassesNoneFromState(Interpreter):
    def _send(self, place: Place, output: Any, lineage: Lineage) -> None:
        if output is None and place.stateful is not None:
            self._follow(place, None, lineage)
        else:
            super()._send(place, output, lineage)


class FiltersFalsy(Interpreter):
    def _send(self, place: Place, output: Any, lineage: Lineage) -> None:
        if not place.multi and place.stateful is None and not _plain(output):
            output = None
        super()._send(place, output, lineage)


class FiltersFalsyFromState(Interpreter):
    def _send(self, place: Place, output: Any, lineage: Lineage) -> None:
        if not place.multi and place.stateful is not None and not _plain(output):
            output = None
        super()._send(place, output, lineage)


class FiltersFalsyItems(Interpreter):
    def _send(self, place: Place, output: Any, lineage: Lineage) -> None:
        if place.multi:
            output = [item if _plain(item) else None for item in output]
        super()._send(place, output, lineage)


class FirstItemOnly(Interpreter):
    def _send(self, place: Place, output: Any, lineage: Lineage) -> None:
        super()._send(place, output[:1] if place.multi else output, lineage)


class FirstItemOnlyFromState(Interpreter):
    def _send(self, place: Place, output: Any, lineage: Lineage) -> None:
        only_first = place.multi and place.stateful is not None
        super()._send(place, output[:1] if only_first else output, lineage)


class PassesNoneItems(Interpreter):
    def _send(self, place: Place, output: Any, lineage: Lineage) -> None:
        if not place.multi:
            super()._send(place, output, lineage)
            return
        for index, item in enumerate(output):
            self._follow(place, item, (*lineage, index))


class CountsWithoutGaps(Interpreter):
    def _send(self, place: Place, output: Any, lineage: Lineage) -> None:
        if place.multi:
            output = [item for item in output if item is not None]
        super()._send(place, output, lineage)


class LastItemFirst(Interpreter):
    def _send(self, place: Place, output: Any, lineage: Lineage) -> None:
        if not place.multi:
            super()._send(place, output, lineage)
            return
        for index, item in reversed(list(enumerate(output))):
            if item is not None:
                self._follow(place, item, (*lineage, index))


class ParallelAsReady(Interpreter):
    """Gives results of a parallel step in an order of its own."""

    def __init__(self, application: Any, **options: Any) -> None:
        super().__init__(application, **options)
        self._parallel = {
            (step.pipeline, step.position)
            for step in application.steps
            if getattr(step.operation, "parallel", False)
        }
        self._held: tuple[Place, Any, Lineage] | None = None

    def feed(self, source: str, payloads: Any, at: int = 0) -> None:
        super().feed(source, payloads, at)
        if self._held is not None:
            held, self._held = self._held, None
            super()._send(*held)

    def _send(self, place: Place, output: Any, lineage: Lineage) -> None:
        if (place.pipeline, place.position) in self._parallel and self._held is None:
            self._held = (place, output, lineage)
            return
        super()._send(place, output, lineage)


class BreadthFirst(Interpreter):
    """Takes all items of a multi output one step further before the next step."""

    def __init__(self, application: Any, **options: Any) -> None:
        super().__init__(application, **options)
        self._waiting: list[tuple[Place, Any, Lineage]] = []
        self._running = False

    def _follow(self, place: Place, message: Any, lineage: Lineage) -> None:
        self._waiting.append((place, message, lineage))
        if self._running:
            return
        self._running = True
        try:
            while self._waiting:
                super()._follow(*self._waiting.pop(0))
        finally:
            self._running = False
            self._waiting.clear()


class SharesItems(Interpreter):
    """Sends items of a multi output by reference."""

    def _items(self, place: Place, result: Any) -> tuple[list[Any], list[Any]]:
        items, _ = super()._items(place, result)
        return items, list(items)


class SinksShareMessage(Interpreter):
    def _follow(self, place: Place, message: Any, lineage: Lineage) -> None:
        sinks = [consumer for consumer in place.consumers if consumer.sink is not None]
        super()._follow(place, thaw(message) if len(sinks) > 1 else message, lineage)


class FirstSinkOnly(Interpreter):
    def _encode(self, place: Place, message: Any, lineage: Lineage) -> None:
        if place.sink is not None and place.sink[1] == 0:
            super()._encode(place, message, lineage)


class WritesNone(Interpreter):
    def _encode(self, place: Place, message: Any, lineage: Lineage) -> None:
        before = len(self.outputs[place.sink]) if place.sink else 0
        letters = len(self.dead_letters)
        super()._encode(place, message, lineage)
        assert place.sink is not None
        if len(self.outputs[place.sink]) == before and len(self.dead_letters) == letters:
            self.outputs[place.sink].append(b"")


class DropsEmptyOutputs(Interpreter):
    def _encode(self, place: Place, message: Any, lineage: Lineage) -> None:
        super()._encode(place, message, lineage)
        assert place.sink is not None
        if self.outputs[place.sink][-1:] == [b""]:
            self.outputs[place.sink].pop()


class GivesUpAfterLetter(Interpreter):
    """Leaves out the message after one that failed, as a batch that is abandoned does."""

    def feed(self, source: str, payloads: Any, at: int = 0) -> None:
        for payload in payloads:
            letters = len(self.dead_letters)
            if getattr(self, "_failed", False):
                self._failed = False
                self.sequence += 1
                continue
            super().feed(source, [payload], at)
            self._failed = len(self.dead_letters) > letters


class StopIterationFilters(Interpreter):
    def _add_dead_letter(
        self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError
    ) -> None:
        if dead.error_type != "StopIteration":
            super()._add_dead_letter(place, lineage, key, dead)


class FinishesAfterStop(Interpreter):
    """Notices a stop only at the frame's end, when the frame's other messages have gone on."""

    def feed(self, source: str, payloads: Any, at: int = 0) -> None:
        super().feed(source, payloads, at)
        if self.ended is not None and self.ended.kind == "on-error":
            ended, self.ended = self.ended, None
            self._stop_on_error = False
            super().feed(source, payloads, at)
            self.ended = ended


class MissesStopAtEncoder(Interpreter):
    def _add_dead_letter(
        self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError
    ) -> None:
        stop = self._stop_on_error
        self._stop_on_error = stop and place.sink is None
        try:
            super()._add_dead_letter(place, lineage, key, dead)
        finally:
            self._stop_on_error = stop


class TellsOfStopElsewhere(Interpreter):
    """Stops where it must, and says that it was at the first message."""

    def feed(self, source: str, payloads: Any, at: int = 0) -> None:
        super().feed(source, payloads, at)
        if self.ended is not None and self.ended.kind == "on-error":
            self.ended = replace(self.ended, lineage=(0,))


class TakesBackTheLastRecord(Interpreter):
    """Where it stops, the outputs of the record are lost that came before its dead letter."""

    def feed(self, source: str, payloads: Any, at: int = 0) -> None:
        for payload in payloads:
            before = {name: len(outputs) for name, outputs in self.outputs.items()}
            super().feed(source, [payload], at)
            if self.ended is not None:
                for name, outputs in self.outputs.items():
                    del outputs[before[name] :]


class TakesExitForStop(Interpreter):
    """Stops where it must, and says that it was a dead letter."""

    def feed(self, source: str, payloads: Any, at: int = 0) -> None:
        super().feed(source, payloads, at)
        if self.ended is not None:
            self.ended = replace(self.ended, kind="on-error")


class PayloadOfLetterLost(Interpreter):
    def _add_dead_letter(
        self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError
    ) -> None:
        payload, self._payload = self._payload, b""
        super()._add_dead_letter(place, lineage, key, dead)
        self._payload = payload


class LetterWithoutKey(Interpreter):
    def _add_dead_letter(
        self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError
    ) -> None:
        super()._add_dead_letter(place, lineage, None, dead)


class SwallowsUnknownKeys(Interpreter):
    def _add_dead_letter(
        self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError
    ) -> None:
        if dead.reason is not Reason.UNKNOWN_KEY:
            super()._add_dead_letter(place, lineage, key, dead)


class SwallowsDecoderErrors(Interpreter):
    def _add_dead_letter(
        self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError
    ) -> None:
        if dead.reason is not Reason.DECODE:
            super()._add_dead_letter(place, lineage, key, dead)


class SendsWhileConsuming(Interpreter):
    """Sends items of a multi result while the rest is still to come."""

    def _compute(self, place: Place, message: Any, lineage: Lineage) -> None:
        self._lineage = lineage
        super()._compute(place, message, lineage)

    def _items(self, place: Place, result: Any) -> tuple[list[Any], list[Any]]:
        if place.stateful is None and hasattr(result, "__next__"):
            lineage = self._lineage
            items: list[Any] = []
            try:
                for item in result:
                    items.append(item)
            except BaseException as error:  # noqa: BLE001 - raised again, where it is expected
                self._send(place, [freeze(item) for item in items], lineage)
                result = _raising(items, error)
            else:
                result = items
        return super()._items(place, result)


def _raising(items: list[Any], error: BaseException) -> Iterator[Any]:
    yield from items
    raise error


def _plain(value: Any) -> bool:
    return bool(thaw(frozen_again(value)))
