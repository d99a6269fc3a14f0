"""Tables of operators: each operator is declared once, where it is written, with its traits."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

C = TypeVar("C")

Tone: TypeAlias = Literal["any", "tame"]
"""`tame` cases keep to operators that `trusting` mode promises to run right."""


class Trait(enum.Enum):
    """What the code that generates, observes or builds a case must know about an operator."""

    OF_TRIPLES = "takes messages of a letter, a number and a text; `choices` has it where asked for"
    OF_TOPIC = "of a Kafka topic; `choices` has none of these"
    OF_VALUES = "of a decoder: makes a generator's values too; raises nothing but ValueError"
    OF_STEP = "is made anew for each step, with the step's name"
    COMMON = "is drawn more often than others"
    FINDING = "makes a finding: `trusting` mode is not promised to it"
    NARROW = "of a multi computation: gives one or two messages, so that many can stand in a row"
    NUMBERS = "of a partition function: gives numbers, as 64-bit partitions want them"
    REMEMBERS = "keeps something from call to call: each case gets one of its own"
    FALSY_STATE = "of a builder: builds a state that is false"
    ALTERS_MESSAGE = "alters a message that it is only to read"
    ALTERS_SILENTLY = "alters the state and says changed=False"
    ALIASES = "puts into output or state what another holds too"
    RAISES_LATE = "raises when the state is altered already"
    RAISES_CONSUMED = "raises while its multi result is consumed"
    WRONG_ITEMS = "gives what is no multi result"
    PICKLES_ANEW = "of a builder: what it builds is another when it was pickled"
    DEEP = "of a builder: what can be altered lies two deep; there are many, so few cases of a tour"
    ENDS_THE_RUN = "of a builder: raises what ends the run (dead-3)"
    FILTERS = "of a computation: drops messages that have a mark"
    PASSES_ON = "of windows: nothing fails in it, so that a window behind meets all"
    ALTERS_PANES = "of windows: alters accumulators when it combines them, or gives what they hold"


class Table(dict[str, Any]):
    """Operators of one kind by name; the plainest first, since that is what cases reduce to.

    Attributes:
        traits: of each operator.
        arguments: of those operators that are instances: the arguments that they were made with.
    """

    def __init__(self, *tables: Table) -> None:
        super().__init__()
        self.traits: dict[str, frozenset[Trait]] = {}
        self.arguments: dict[str, tuple[Any, ...]] = {}
        for table in tables:
            self.update(table)
            self.traits |= table.traits
            self.arguments |= table.arguments

    def add(
        self, *traits: Trait, made: tuple[Any, ...] | None = None, name: str = ""
    ) -> Callable[[C], C]:
        """Return a decorator that adds a component under its own name.

        Args:
            traits: of the operator.
            made: add an instance of the decorated class instead, made with these arguments.
            name: of the operator, where its class has several.
        """

        def added(component: C) -> C:
            operator: Any = component
            called = name or inspect.unwrap(operator).__name__
            self.traits[called] = frozenset(traits)
            if made is not None:
                self.arguments[called] = made
                operator = operator(*made)
            self[called] = operator
            return component

        return added

    def has(self, name: str, trait: Trait) -> bool:
        """Whether the operator `name` has a trait."""
        return trait in self.traits[name]

    def having(self, trait: Trait) -> tuple[str, ...]:
        """Return the names of the operators that have a trait."""
        return tuple([name for name in self if trait in self.traits[name]])

    def choices(self, tone: Tone, common: int = 0, *, triples: bool = False) -> tuple[str, ...]:
        """Return the names to choose from, the plainest first.

        Args:
            tone: `tame`: without the operators that make findings.
            common: how many times more the common ones are among them.
            triples: those that take messages of three parts, not the others.
        """
        return tuple(
            [
                name
                for name in self
                if self.has(name, Trait.OF_TRIPLES) is triples
                and not self.has(name, Trait.OF_TOPIC)
                and (tone == "any" or not self.has(name, Trait.FINDING))
                for _ in range(1 + common * self.has(name, Trait.COMMON))
            ]
        )
