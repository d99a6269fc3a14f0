"""The kinds of components as type checkers see them: which methods, over which messages and states.

They are structural: an instance of any class with the right methods fits, whatever its parameters
are called, and so does a decorated function. Nothing has to inherit from them. A class that does,
as in ``class Count(kinds.StateComputation[str, Totals, int])``, is told of a wrong method
where the method stands, and not only where the component is used. Code without annotations fits
everywhere.

Nothing here runs. What is checked when an application is built is in `wallaroo.components`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias, TypeVar

from wallaroo.keys import Key

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
StateIn = TypeVar("StateIn", contravariant=True)
StateOut = TypeVar("StateOut", covariant=True)
KeyOut = TypeVar("KeyOut", bound=Key, covariant=True)


class Decoder(Protocol[Out]):
    """Turns payloads into messages; `None` filters (frame-1, decode-1)."""

    @abstractmethod
    def header_length(self) -> int:
        """Return the length of a frame's header, 1 to 8 bytes."""

    @abstractmethod
    def payload_length(self, header: bytes, /) -> int:
        """Return the payload's length that a header claims, in bytes."""

    @abstractmethod
    def decode(self, payload: bytes, /) -> Out | None:
        """Return the message."""


class Encoder(Protocol[In]):
    """Turns messages into outputs; `None` writes nothing (sink-1)."""

    @abstractmethod
    def encode(self, message: In, /) -> bytes | str | None:
        """Return the output; text goes out as UTF-8."""


class Computation(Protocol[In, Out]):
    """A step without state; `None` filters (compute-1)."""

    @abstractmethod
    def name(self) -> str:
        """Return the computation's name."""

    @abstractmethod
    def compute(self, message: In, /) -> Out | None:
        """Return the message that goes on."""


class MultiComputation(Protocol[In, Out]):
    """A step without state that gives any number of messages for one (compute-2)."""

    @abstractmethod
    def name(self) -> str:
        """Return the computation's name."""

    @abstractmethod
    def compute_multi(self, message: In, /) -> Iterable[Out | None] | None:
        """Return the messages that go on."""


class StateComputation(Protocol[In, StateIn, Out]):
    """A step with state (state-2)."""

    @abstractmethod
    def name(self) -> str:
        """Return the computation's name."""

    @abstractmethod
    def compute(self, message: In, state: StateIn, /) -> tuple[Out | None, bool]:
        """Return the message that goes on, and whether the state has changed."""


class MultiStateComputation(Protocol[In, StateIn, Out]):
    """A step with state that gives any number of messages for one (state-2)."""

    @abstractmethod
    def name(self) -> str:
        """Return the computation's name."""

    @abstractmethod
    def compute_multi(
        self, message: In, state: StateIn, /
    ) -> tuple[Iterable[Out | None] | None, bool]:
        """Return the messages that go on, and whether the state has changed."""


class StateBuilder(Protocol[StateOut]):
    """Builds states (state-1)."""

    @abstractmethod
    def build(self) -> StateOut:
        """Return the state of a new entity."""


class PartitionFunction(Protocol[In, KeyOut]):
    """Finds messages' keys (route-1)."""

    @abstractmethod
    def partition(self, message: In, /) -> KeyOut:
        """Return the message's key."""


# What the calls that describe an application take. A component without state may be given as a
# class that is built without arguments; of a state it is the class, or a builder.

M = TypeVar("M")
N = TypeVar("N")
S = TypeVar("S")
K = TypeVar("K", bound=Key)

AnyDecoder: TypeAlias = Decoder[M] | Callable[[], Decoder[M]]
AnyEncoder: TypeAlias = Encoder[M] | Callable[[], Encoder[M]]
AnyComputation: TypeAlias = (
    Computation[M, N]
    | MultiComputation[M, N]
    | Callable[[], Computation[M, N]]
    | Callable[[], MultiComputation[M, N]]
)
AnyStateComputation: TypeAlias = StateComputation[M, S, N] | MultiStateComputation[M, S, N]
AnyState: TypeAlias = type[S] | StateBuilder[S]
AnyPartitionFunction: TypeAlias = PartitionFunction[M, K] | Callable[[], PartitionFunction[M, K]]
