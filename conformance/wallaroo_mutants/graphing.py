"""Interpreters with a fault each in graphs and keys."""

# ruff: noqa: D101 - `second_part` says what each does

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from wallaroo_reference.isolated.copies import CodedCopies, freeze, thaw
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.isolated.walk import Context
from wallaroo_reference.places import FrozenEntity, Place

from wallaroo.judging import DeadLetterError, judged_key
from wallaroo.keys import SINGLE_KEY, Key
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Stateful, Windowed
from wallaroo.records import End, Value
from wallaroo.topology import Application
from wallaroo.trace import Lineage


def known_by_text(key: object, *, u64: bool = False) -> Hashable:
    """Return the text of a key, which is that of other keys too."""
    judged_key(key, u64=u64)
    return str(key)


class PayloadBehindCollect(Interpreter):
    """Behind `collect` it is forgotten that a window gave a message."""

    def _pass_on(self, place: Place, operation: Any, message: Any, lineage: Lineage) -> None:
        before = self._context
        if isinstance(operation, Collect):
            self._context = replace(before, given=False)
        super()._pass_on(place, operation, message, lineage)
        self._context = before


class BranchesBackwards(Interpreter):
    def _follow(self, place: Place, message: Any, lineage: Lineage) -> None:
        before = place.consumers
        place.consumers = before[::-1]
        super()._follow(place, message, lineage)
        place.consumers = before


class OneBranchOnly(Interpreter):
    def _pass_on(self, place: Place, operation: Any, message: Any, lineage: Lineage) -> None:
        if not isinstance(operation, Branch) or operation.number == 0:
            super()._pass_on(place, operation, message, lineage)


class BranchesUnnumbered(Interpreter):
    def _pass_on(self, place: Place, operation: Any, message: Any, lineage: Lineage) -> None:
        if isinstance(operation, Branch):
            self._follow(place, message, lineage)
        else:
            super()._pass_on(place, operation, message, lineage)


class MergeWithoutRepetitions(Interpreter):
    def _pass_on(self, place: Place, operation: Any, message: Any, lineage: Lineage) -> None:
        if isinstance(operation, Merge):
            met = self.__dict__.setdefault("_met", set())
            if (id(place), lineage[0]) in met:
                return
            met.add((id(place), lineage[0]))
        super()._pass_on(place, operation, message, lineage)


class LettersNamedBySource(Interpreter):
    def _add_dead_letter(
        self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError
    ) -> None:
        before, place.pipeline = place.pipeline, self._source or place.pipeline
        super()._add_dead_letter(place, lineage, key, dead)
        place.pipeline = before


class RunsWhatLeadsToSinks(Interpreter):
    def __init__(self, application: Application, **options: Any) -> None:
        super().__init__(application, **options)
        for place, _ in self._places.values():
            self._prune(place)

    def _prune(self, place: Place) -> bool:
        """Leave out consumers that lead to no sink; return whether this place leads to one."""
        place.consumers[:] = [one for one in place.consumers if self._prune(one)]
        return place.sink is not None or bool(place.consumers)


class FailureOfGeneratorUntold(Interpreter):
    def _end_source(self, record: End, lineage: Lineage) -> None:
        pass


class ExitOfGeneratorIsFailure(Interpreter):
    def _end_source(self, record: End, lineage: Lineage) -> None:
        super()._end_source(replace(record, ends_run=False), lineage)


class ValuesLost(Interpreter):
    """The first value of a generator gets lost."""

    def _generate(self, record: Value, lineage: Lineage) -> None:
        begun = self.__dict__.setdefault("_begun", set())
        if record.source in begun:
            super()._generate(record, lineage)
        else:
            begun.add(record.source)
            self._take_turns(lineage)


class KeyLostBehindComputation(Interpreter):
    def _compute(self, place: Place, message: Any, lineage: Lineage) -> None:
        before = self._context
        self._context = replace(before, key=SINGLE_KEY)
        super()._compute(place, message, lineage)
        self._context = before


class KeyLostBehindWindow(Interpreter):
    def _follow(self, place: Place, message: Any, lineage: Lineage) -> None:
        before = self._context
        if isinstance(place.operation, Windowed):
            self._context = replace(before, key=SINGLE_KEY)
        super()._follow(place, message, lineage)
        self._context = before


class KeyForLaterBranches(Interpreter):
    """The key that is found for one branch is that of the branches after it."""

    def _follow_with(self, context: Context, place: Place, message: Any, lineage: Lineage) -> None:
        self._context = context
        self._follow(place, message, lineage)


class KeyOfBefore(Interpreter):
    """A message whose key extractor fails goes on with the key that it had."""

    def _key_by(self, place: Place, operation: KeyBy, message: Any, lineage: Lineage) -> None:
        try:
            self._called_for_key(place, operation.route, message)
        except DeadLetterError:
            self._follow(place, message, lineage)
        else:
            super()._key_by(place, operation, message, lineage)


class KeyOfEqualMessage(Interpreter):
    """A key extractor is called once for messages that are equal."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._keys: dict[Any, Any] = {}

    def _called_for_key(self, place: Place, route: Any, message: Any) -> Any:
        asked = place, thaw(message)
        try:
            return self._keys[asked]
        except TypeError:  # it cannot be looked up
            return super()._called_for_key(place, route, message)
        except KeyError:
            key = self._keys[asked] = super()._called_for_key(place, route, message)
            return key


class CollectKeepsKey(Interpreter):
    def _pass_on(self, place: Place, operation: Any, message: Any, lineage: Lineage) -> None:
        if isinstance(operation, Collect):
            self._follow(place, message, lineage)
        else:
            super()._pass_on(place, operation, message, lineage)


class KeyOfItsOwn(Interpreter):
    """Without a key, each record has one of its own."""

    def _key_of_message(self, operation: Any) -> Any:
        return super()._key_of_message(operation) if operation.keyed else self.sequence


class KeepsStateWithOutputOnly(Interpreter):
    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        before = entity.state
        output = super()._visit(place, entity, message, lineage)
        operation = place.stateful
        assert isinstance(operation, Stateful)
        if output is None and not operation.computation.pair:
            entity.state = before
        return output


class PairOfPipelinesUnpacked(Interpreter):
    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        operation, call = place.stateful, place.call
        assert isinstance(operation, Stateful)

        def unpacked(*given: Any) -> Any:
            result = call(*given)
            pair = type(result) is tuple and len(result) == 2 and type(result[1]) is bool
            return result[0] if pair else result

        if not operation.computation.pair:
            place = replace(place, call=unpacked)
        return super()._visit(place, entity, message, lineage)


class FailingIsNoVisit(Interpreter):
    def _compute_with_state(
        self, place: Place, operation: Stateful, message: Any, lineage: Lineage
    ) -> None:
        visits = self._stores[operation.partition].visits
        before, letters = dict(visits), len(self.dead_letters)
        super()._compute_with_state(place, operation, message, lineage)
        if len(self.dead_letters) > letters and before.keys() == visits.keys():
            visits.clear()
            visits.update(before)


class AccumulatorsPickled(Interpreter):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for step, _ in self._windows.values():
            step._freeze = freeze


_freeze_coded = CodedCopies.freeze


def frozen_numbers_apart(copies: CodedCopies, value: Any) -> Any:
    """Freeze a value; numbers are left as they are."""
    return value if type(value) in (int, float) else _freeze_coded(copies, value)


class CodecUnused(Interpreter):
    def __init__(self, application: Application, **options: Any) -> None:
        super().__init__(replace(application, codec=None), **options)
