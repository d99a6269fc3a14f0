"""The kinds of components as type checkers see them: which methods, over which messages and states.

They are structural: an instance of any class with the right methods fits, whatever its parameters
are called, and so does a decorated function. Nothing has to inherit from them. A class that does,
as in ``class Count(kinds.StateComputation[str, Totals, int])``, gets a type checker's error at the
wrong method, and not only where the component is used. Code without annotations fits everywhere.

Nothing here runs. What is checked when an application is built is in `wallaroo.components`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from wallaroo.components import OwnState
from wallaroo.kafka_records import KafkaOutput, KafkaRecord
from wallaroo.keys import Key

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
StateIn = TypeVar("StateIn", contravariant=True)
StateOut = TypeVar("StateOut", covariant=True)
KeyIn = TypeVar("KeyIn", contravariant=True)
KeyOut = TypeVar("KeyOut", bound=Key, covariant=True)
Last = TypeVar("Last")
OwnStateT = TypeVar("OwnStateT")
Accumulator = TypeVar("Accumulator")

# For pipelines, windows and configurations. In an annotation that does not name them they are Any.
# Python's type variables have such a default from 3.13 on; before, type checkers find it in
# typing_extensions, which need not be installed.
if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    Message = TypeVarWithDefault("Message", covariant=True, default=Any)
    MessageKey = TypeVarWithDefault("MessageKey", covariant=True, default=Any)
    Taken = TypeVarWithDefault("Taken", contravariant=True, default=Any)
    TakenKey = TypeVarWithDefault("TakenKey", contravariant=True, default=Any)
else:
    Message = TypeVar("Message", covariant=True)
    MessageKey = TypeVar("MessageKey", covariant=True)
    Taken = TypeVar("Taken", contravariant=True)
    TakenKey = TypeVar("TakenKey", contravariant=True)


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


class ValueDecoder(Protocol[Out]):
    """Turns the values of a Kafka topic's records into messages (kafka-7)."""

    @abstractmethod
    def decode(self, value: bytes, /) -> Out | None:
        """Return the message."""


class RecordDecoder(Protocol[Out]):
    """Turns the records of a Kafka topic into messages (kafka-7)."""

    @abstractmethod
    def decode_record(self, record: KafkaRecord, /) -> Out | None:
        """Return the message."""


class KafkaEncoder(Protocol[In]):
    """Turns messages into outputs for a Kafka topic (kafka-13)."""

    @abstractmethod
    def encode(self, message: In, /) -> KafkaResult:
        """Return the output: a value, ``(value, key)``, ``(value, key, partition)``, or all."""


class Encoder(Protocol[In]):
    """Turns messages into outputs; `None` writes nothing (sink-1)."""

    @abstractmethod
    def encode(self, message: In, /) -> bytes | str | None:
        """Return the output; text goes out as UTF-8."""


class Named(Protocol):
    """What has a name in the topology."""

    @abstractmethod
    def name(self) -> str:
        """Return the computation's name."""


class Computation(Named, Protocol[In, Out]):
    """A step without state; `None` filters (compute-1)."""

    @abstractmethod
    def compute(self, message: In, /) -> Out | None:
        """Return the message that goes on."""


class MultiComputation(Named, Protocol[In, Out]):
    """A step without state that gives any number of messages for one (compute-2)."""

    @abstractmethod
    def compute_multi(self, message: In, /) -> Iterable[Out | None] | None:
        """Return the messages that go on."""


class StateComputation(Named, Protocol[In, StateIn, Out]):
    """A step with state (state-2)."""

    @abstractmethod
    def compute(self, message: In, state: StateIn, /) -> tuple[Out | None, bool]:
        """Return the message that goes on, and whether the state has changed."""


class MultiStateComputation(Named, Protocol[In, StateIn, Out]):
    """A step with state that gives any number of messages for one (state-2)."""

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


class KeyExtractor(Protocol[In, KeyOut]):
    """Finds messages' keys (key-1)."""

    @abstractmethod
    def extract_key(self, message: In, /) -> KeyOut:
        """Return the message's key."""


class OwnStateComputation(Protocol[In, OwnStateT, Out]):
    """A state computation that says its state: ``@wallaroo.state_computation(…, state=STATE)``."""

    own_state: OwnState[OwnStateT]

    @abstractmethod
    def compute(self, message: In, state: OwnStateT, /) -> Out | None:
        """Return the message that goes on (key-3)."""


class MultiOwnStateComputation(Protocol[In, OwnStateT, Out]):
    """A multi state computation that says its state."""

    own_state: OwnState[OwnStateT]

    @abstractmethod
    def compute_multi(self, message: In, state: OwnStateT, /) -> Iterable[Out | None] | None:
        """Return the messages that go on (key-3)."""


class Accumulating(Protocol[In, Accumulator]):
    """What every aggregation does with a window's messages (window-4)."""

    @abstractmethod
    def initial_accumulator(self) -> Accumulator:
        """Return the accumulator of a window without messages."""

    @abstractmethod
    def update(self, message: In, accumulator: Accumulator, /) -> Accumulator | None:
        """Return the accumulator with one more message; `None`: it was altered in place."""


class Aggregation(Accumulating[In, Accumulator], Protocol[In, Accumulator, KeyIn, Out]):
    """What is computed over the messages of a window (window-4); it may have a `combine` too."""

    @abstractmethod
    def output(self, key: KeyIn, accumulator: Accumulator, /) -> Out | None:
        """Return the message that goes on."""


class WindowAggregation(Accumulating[In, Accumulator], Protocol[In, Accumulator, KeyIn, Out]):
    """An aggregation whose `output` gets the window too."""

    @abstractmethod
    def output(self, key: KeyIn, accumulator: Accumulator, window: Bounds, /) -> Out | None:
        """Return the message that goes on."""


class Bounds(Protocol):
    """A window, from `start` to before `end`, in nanoseconds since 1970."""

    @property
    def start(self) -> int:
        """Its first nanosecond."""

    @property
    def end(self) -> int:
        """The first nanosecond after it."""


class Generator(Protocol[Last]):
    """Makes messages (graph-4)."""

    @abstractmethod
    def initial_value(self) -> Last | None:
        """Return the first message; `None` ends the source."""

    @abstractmethod
    def apply(self, last: Last, /) -> Last | None:
        """Return the message after `last`; `None` ends the source."""


# The types of the arguments of the calls that describe an application. A component without state
# may be given as a class that is built without arguments; a state as its class or a builder.

M = TypeVar("M")
N = TypeVar("N")
S = TypeVar("S")
K = TypeVar("K", bound=Key)
L = TypeVar("L")
A = TypeVar("A")

KafkaText: TypeAlias = bytes | str | None
KafkaResult: TypeAlias = (
    KafkaText | tuple[KafkaText, KafkaText] | tuple[KafkaText, KafkaText, int | None] | KafkaOutput
)
AnyDecoder: TypeAlias = Decoder[M] | Callable[[], Decoder[M]]
AnyKafkaDecoder: TypeAlias = (
    ValueDecoder[M]
    | RecordDecoder[M]
    | Callable[[], ValueDecoder[M]]
    | Callable[[], RecordDecoder[M]]
)
AnyKafkaEncoder: TypeAlias = KafkaEncoder[M] | Callable[[], KafkaEncoder[M]]
AnyEncoder: TypeAlias = Encoder[M] | Callable[[], Encoder[M]]
AnyComputation: TypeAlias = (
    Computation[M, N]
    | MultiComputation[M, N]
    | Callable[[], Computation[M, N]]
    | Callable[[], MultiComputation[M, N]]
)
AnyStateComputation: TypeAlias = StateComputation[M, S, N] | MultiStateComputation[M, S, N]
AnyState: TypeAlias = type[S] | StateBuilder[S]
AnyPartitionFunction: TypeAlias = (
    PartitionFunction[M, K]
    | KeyExtractor[M, K]
    | Callable[[], PartitionFunction[M, K]]
    | Callable[[], KeyExtractor[M, K]]
)
AnyOwnStateComputation: TypeAlias = OwnStateComputation[M, S, N] | MultiOwnStateComputation[M, S, N]
AnyAggregation: TypeAlias = (
    Aggregation[M, A, L, N]
    | WindowAggregation[M, A, L, N]
    | Callable[[], Aggregation[M, A, L, N]]
    | Callable[[], WindowAggregation[M, A, L, N]]
)
AnyGenerator: TypeAlias = Generator[M] | Callable[[], Generator[M]]
