"""What both forms of the API check of sources, state partitions and keys (build-1, state-8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wallaroo.checks import name_of
from wallaroo.components import StateBuilder
from wallaroo.errors import WallarooParameterError
from wallaroo.keys import BadKeyError, Key, encode_key, is_u64
from wallaroo.times import duration
from wallaroo.topology import SINKS, AnySink, AnySource, Codec, Source, StatePartition
from wallaroo.windows import show_duration


class Declarations:
    """The state partitions of an application, by name, and who declared each first."""

    def __init__(self) -> None:
        self._partitions: dict[str, StatePartition] = {}
        self._declared_at: dict[str, str] = {}

    @property
    def partitions(self) -> tuple[StatePartition, ...]:
        """The state partitions, in the order in which they were first named."""
        return tuple(self._partitions.values())

    def add(self, partition: StatePartition, step: str) -> None:
        """Keep a partition that `checked` has returned; `step` says who declares it."""
        self._partitions.setdefault(partition.name, partition)
        self._declared_at.setdefault(partition.name, step)

    def checked(
        self,
        where: str,
        name: Any,
        builder: StateBuilder,
        keys: tuple[Key, ...] | None,
        *,
        u64: bool = False,
        expire_after: Any = None,
    ) -> StatePartition:
        """Return the partition described; it must agree with its earlier descriptions (state-8).

        Raises:
            WallarooParameterError: it does not; the error begins with `where`.
        """
        if not isinstance(name, str) or not name:
            raise WallarooParameterError(
                f"{where}: a state partition's name is a non-empty str, not {described(name)}"
            )
        if expire_after is not None:
            duration(f"{where}: expire_after", expire_after)
        new = StatePartition(name, builder, keys, u64, expire_after)
        earlier = self._partitions.get(name)
        if earlier is None:
            return new
        differs = _difference(earlier, new)
        if differs is not None:
            raise WallarooParameterError(
                f"{where}: state partition {name!r} is shared with {self._declared_at[name]}, but "
                f"they disagree: {differs} (state-8). Say the same in both, or give it another name"
            )
        return earlier


def refuse_same_address(where: str, config: AnySource[Any], others: Sequence[Source]) -> None:
    """Refuse a source that listens on another's address; port 0 is another address each time.

    Raises:
        WallarooParameterError: another source has it; the error begins with `where`.
    """
    for source in others:
        if getattr(config, "port", 0) and source.config.address == config.address:
            raise WallarooParameterError(
                f"{where}: its source listens on {config.address}, and so does that of "
                f"pipeline {source.pipeline!r}; give each its own port"
            )


def checked_sinks(where: str, configs: Sequence[AnySink[Any]]) -> tuple[AnySink[Any], ...]:
    """Return the sinks of a pipeline's end.

    Raises:
        WallarooParameterError: there is no sink, or something is not a sink; the error begins with
            `where`.
    """
    if not isinstance(configs, (list, tuple)) or not configs:
        raise WallarooParameterError(
            f"{where}: expected a list of one sink or more, not {described(configs)}. "
            "Write: .to_sinks([wallaroo.TCPSinkConfig(HOST, PORT, ENCODER), …])"
        )
    for config in configs:
        if not isinstance(config, SINKS):
            raise WallarooParameterError(
                f"{where}: expected a sink, not {described(config)}. Write: "
                ".to_sink(wallaroo.TCPSinkConfig(HOST, PORT, ENCODER))"
            )
    return tuple(configs)


def codec_in(module: Mapping[str, Any]) -> Codec | None:
    """Return the `serialize` and `deserialize` of the module that builds an application (key-5).

    Args:
        module: its global names. If one of the two is missing, there is no codec.
    """
    serialize, deserialize = module.get("serialize"), module.get("deserialize")
    if callable(serialize) and callable(deserialize):
        return Codec(serialize, deserialize)
    return None


def _difference(there: StatePartition, here: StatePartition) -> str | None:
    """Return what two descriptions of one state partition disagree on; `None`: nothing."""
    if not _same_builder(there.builder.component, here.builder.component):
        return f"the builder {there.builder.name} there, {here.builder.name} here"
    if _encoded(there.keys) != _encoded(here.keys):
        return f"{_keys_described(there.keys)} there, {_keys_described(here.keys)} here"
    if there.u64 != here.u64:
        kinds = ("keys of any type", "64-bit keys")
        return f"{kinds[there.u64]} there, {kinds[here.u64]} here"
    if there.expire_after != here.expire_after:
        times = [
            "no expire_after" if one is None else f"expire_after {show_duration(one)}"
            for one in (there.expire_after, here.expire_after)
        ]
        return f"{times[0]} there, {times[1]} here"
    return None


def checked_keys(where: str, keys: Any, *, u64: bool) -> tuple[Key, ...]:
    """Return the listed keys, each once (route-2, route-5).

    Raises:
        WallarooParameterError: they are not a finite sequence of different keys.
    """
    if not isinstance(keys, Sequence) or isinstance(keys, (str, bytes, bytearray, memoryview)):
        hint = f"list({name_of(keys)})" if hasattr(keys, "__name__") else "list(KEYS)"
        raise WallarooParameterError(
            f"{where}: partition_keys is a list, tuple or range of keys, not {described(keys)}. "
            f"Write: {hint}"
        )
    listed: tuple[Any, ...] = tuple(keys)
    seen: set[bytes] = set()
    for key in listed:
        try:
            encoded = encode_key(key)
        except BadKeyError as error:
            raise WallarooParameterError(
                f"{where}: partition_keys holds {described(key)}: {error} (route-2)"
            ) from None
        if u64 and not is_u64(key):
            raise WallarooParameterError(
                f"{where}: partition_keys holds {described(key)}; 64-bit keys are ints from 0 to "
                "2**64 - 1 (route-5)"
            )
        if encoded in seen:
            raise WallarooParameterError(f"{where}: partition_keys repeats {described(key)}")
        seen.add(encoded)
    return listed


def _same_builder(one: Any, other: Any) -> bool:
    """Whether two builders agree: one object, one class, or equal instances of one (state-8)."""
    if one is other:
        return True
    if type(one) is not type(other) or isinstance(one, type):
        return False
    try:
        return bool(_attributes(one) == _attributes(other))
    except Exception:  # noqa: BLE001 - the attributes' __eq__ is the user's: an array has no one answer
        return False


def _encoded(keys: tuple[Key, ...] | None) -> set[bytes] | None:
    """Return keys as a set; by their encodings, since comparing deep tuples recurses."""
    return None if keys is None else {encode_key(key) for key in keys}


def _attributes(instance: Any) -> dict[str, Any]:
    attributes = dict(getattr(instance, "__dict__", {}))
    for kind in type(instance).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(instance, name):
                attributes[name] = getattr(instance, name)
    return attributes


def _keys_described(keys: tuple[Key, ...] | None) -> str:
    return "any key" if keys is None else f"{len(keys)} listed keys"


def described(value: object) -> str:
    """Return a value with its type, for errors, of bounded length."""
    kind = type(value).__name__
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a very deep tuple, an int of 5,000 digits, the user's __repr__
        return f"a {kind}"
    return f"{kind} {text if len(text) <= 60 else text[:60] + '…'}"
