"""Where an output, a dead letter, or an entity of a recorded run comes from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from wallaroo.errors import WallarooError
from wallaroo.keys import Key, encode_key
from wallaroo.topology import Application, SinkId
from wallaroo.trace import Lineage, lineage_order
from wallaroo_reference.replay.feeding import Input, feed
from wallaroo_reference.replay.steps import ABSENT, Step, Steps

EntityName: TypeAlias = tuple[str, bytes]
"""A state partition and a key, canonically encoded."""

OnProgress: TypeAlias = Callable[[int], None]
"""Is called from time to time with the number of records processed."""

_EVERY = 256  # records


@dataclass
class Visits:
    """The visits of one entity.

    Args:
        partition: its state partition.
        key: its key.
        count: how many visits there were.
        last: the last of them, in order.
    """

    partition: str
    key: Key
    last: deque[Step]
    count: int = 0


@dataclass
class Explanation:
    """What an output, or a dead letter, comes from.

    Args:
        end: the step that made it; its `way` leads there from a record.
        history: the visits before it of the entities on the way, in the order of the way.
    """

    end: Step
    history: list[Visits] = field(default_factory=list)


@dataclass(frozen=True)
class Replayed:
    """A recorded log, and the application that is run on it.

    Args:
        application: the application.
        given: the log.
        on_error: ``stop`` ends the run at the first dead letter.
        progress: is called from time to time.
    """

    application: Application
    given: Input
    on_error: str = "skip"
    progress: OnProgress = lambda _: None

    def output(self, sink: SinkId, number: int, visits: int) -> Explanation:
        """Return where an output comes from.

        Args:
            sink: its sink.
            number: how many outputs that sink has had before it.
            visits: most visits of each entity that are returned.

        Raises:
            WallarooError: there is no such output, or the log cannot be read.
        """
        if sink not in self.application.sinks:
            names = ", ".join([f"{pipeline}/{index}" for pipeline, index in self.application.sinks])
            raise WallarooError(
                f"application {self.application.name!r} has no sink {sink[0]}/{sink[1]}; it has "
                f"{names or 'none'}"
            )
        search = _Search(number, f"sink {sink[0]}/{sink[1]} has", "outputs")

        def on_output(at: SinkId, step: Step) -> None:
            if at == sink:
                search.meet(step)

        steps = Steps()
        steps.on_output = on_output
        self._run(steps, search)
        return self._with_history(search.result(), visits)

    def dead_letter(self, number: int, visits: int) -> Explanation:
        """Return where a dead letter comes from; see `output`.

        Raises:
            WallarooError: there is no such dead letter, or the log cannot be read.
        """
        search = _Search(number, "there are", "dead letters")

        steps = Steps()
        steps.on_dead_letter = search.meet
        self._run(steps, search)
        return self._with_history(search.result(), visits)

    def record(self, number: int) -> list[Step]:
        """Return all that is done with a record, in order.

        Raises:
            WallarooError: there is no such record, or the log cannot be read.
        """
        start, until = self.given.start, self.given.until
        if not start <= number < until:
            raise WallarooError(f"the records are numbered {start:,} to {until - 1:,}")
        done: list[Step] = []

        def on_step(step: Step) -> None:
            if step.lineage[0] == number:
                done.append(step)

        steps = Steps()
        steps.on_step = on_step
        self._run(steps, None, number + 1)
        if not done:
            raise WallarooError(f"the run ends before record {number:,}")
        return done

    def entity(self, partition: str, key: Key, visits: int) -> Visits:
        """Return the last visits of an entity.

        Raises:
            WallarooError: there is no such state partition or entity, or the log cannot be read.
        """
        if partition not in self.application.partition:
            names = ", ".join(map(repr, self.application.partition)) or "none"
            raise WallarooError(
                f"application {self.application.name!r} has no state partition {partition!r}; it "
                f"has {names}"
            )
        visits_of_key = Visits(partition, key, deque(maxlen=visits))
        self._visits({(partition, encode_key(key)): visits_of_key}, self.given.until, {})
        if not visits_of_key.count:
            raise WallarooError(f"no message has met the entity {key!r:.80} of {partition!r}")
        return visits_of_key

    def _with_history(self, end: Step, visits: int) -> Explanation:
        first: dict[EntityName, Step] = {}
        for step in end.way() if visits else ():
            if (name := entity_name(step)) is not None:
                first.setdefault(name, step)
        found = {
            name: Visits(name[0], step.key, deque(maxlen=visits)) for name, step in first.items()
        }
        if found:
            before = {name: lineage_order(step.lineage) for name, step in first.items()}
            self._visits(found, end.lineage[0] + 1, before)
        return Explanation(end, list(found.values()))

    def _visits(
        self, wanted: Mapping[EntityName, Visits], until: int, before: Mapping[EntityName, Lineage]
    ) -> None:
        """Note visits; of an entity in `before` only those by earlier messages (order-1)."""

        def on_visit(step: Step) -> None:
            name = entity_name(step)
            if name is None or name not in wanted:
                return
            if name not in before or lineage_order(step.lineage) < before[name]:
                wanted[name].count += 1
                wanted[name].last.append(step)

        steps = Steps()
        steps.on_visit = on_visit
        self._run(steps, None, until)

    def _run(self, steps: Steps, search: _Search | None, until: int | None = None) -> None:
        given = self.given if until is None else replace(self.given, until=until)
        machine = given.interpreter(self.application, on_error=self.on_error, observer=steps)
        for number in feed(self.application, given, machine):
            for outputs in machine.outputs.values():
                outputs.clear()
            machine.dead_letters.clear()
            if search is not None and search.found is not None:
                return
            if not number % _EVERY:
                self.progress(number)


class _Search:
    """Looks for the step that made an output or a dead letter, by its number."""

    def __init__(self, number: int, has: str, what: str) -> None:
        self.found: Step | None = None
        self._number = number
        self._met = 0
        self._has = has
        self._what = what

    def meet(self, step: Step) -> None:
        if self._met == self._number:
            self.found = step
        self._met += 1

    def result(self) -> Step:
        if self.found is None:
            raise WallarooError(
                f"{self._has} {self._met:,} {self._what}, numbered from 0: there is no number "
                f"{self._number:,}"
            )
        return self.found


def entity_name(step: Step) -> EntityName | None:
    """Return the name of the entity that a step has visited; `None`: it has visited no entity."""
    place = step.place
    if place is None or place.stateful is None or step.what != "state computation":
        return None
    if step.new_state is ABSENT:  # it has found no key
        return None
    return place.stateful.partition, encode_key(step.key)
