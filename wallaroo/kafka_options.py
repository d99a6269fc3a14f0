"""Further options of the Kafka client: which may be set, and that none is shown (kafka-17)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wallaroo.errors import WallarooParameterError

_HIDDEN = "…"
_REFUSED = {
    **dict.fromkeys(
        ("bootstrap.servers", "metadata.broker.list"),
        "the brokers are an argument. Write: brokers=",
    ),
    "auto.offset.reset": "where a new run begins is an argument (kafka-4). Write: start=",
    **dict.fromkeys(
        ("enable.auto.commit", "enable.auto.offset.store"),
        "the position comes from log and checkpoint alone; with group= it is committed for tools "
        "that show lag (kafka-3)",
    ),
    "group.id": "the position comes from log and checkpoint alone (kafka-3); for tools that show "
    "lag write: group=",
    "isolation.level": "what is read is an argument (kafka-11). Write: isolation_level=",
    **dict.fromkeys(
        ("partitioner", "partitioner_cb"),
        "keys go to partitions as Java's producer has it, so that every run agrees (kafka-13). "
        "Let the encoder give the partition",
    ),
    "transactional.id": "application, checkpoint and sink give it, so that a start shuts out every "
    "earlier run (kafka-15)",
    **dict.fromkeys(
        ("enable.idempotence", "acks", "request.required.acks"),
        "without it outputs would be lost or repeated (kafka-15)",
    ),
    "message.max.bytes": "the limit is an argument (kafka-13). Write: max_message_size=",
}
"""Options of the client that a user may not set, and why (kafka-17)."""


class ClientOptions:
    """Further options of the Kafka client (kafka-17). What they say is never shown.

    A pickle holds their names alone: it may lie on a disk. Who needs the rest gets it otherwise.

    Args:
        where: the configuration they belong to, for errors.
        given: options by name, or the path of a file of lines ``name=value``, which is read when a
            run begins.
        usual: what other arguments say, in the client's names.

    Raises:
        WallarooParameterError: an option breaks a rule, or is no text, number or bool.
    """

    def __init__(
        self, where: str, given: object = None, usual: Mapping[str, int] | None = None
    ) -> None:
        self._where = where
        self._usual = dict(usual or {})
        self._file: Path | None = None
        self._options: dict[str, str | int | float | bool] = {}
        if isinstance(given, (str, Path)):
            self._file = Path(given)
        elif isinstance(given, Mapping):
            self._options = self._checked(where, given)
        elif given is not None:
            raise WallarooParameterError(
                f"{where}: kafka is a dict of the client's options, or the path of a file of them, "
                f"not a {type(given).__name__}"
            )

    def read(self) -> dict[str, str | int | float | bool]:
        """Return the options by name.

        Raises:
            WallarooParameterError: the file cannot be read, or an option in it breaks a rule.
        """
        if self._file is None:
            return {**self._usual, **self._options}
        where = f"{self._where}: kafka={str(self._file)!r}"
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            what = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise WallarooParameterError(f"{where}: the file cannot be read: {what}") from None
        options: dict[str, str] = {}
        for number, line in enumerate(map(str.strip, lines), 1):
            if line and not line.startswith(("#", "!")):
                name, equals, value = line.partition("=")
                if not equals:
                    raise WallarooParameterError(f"{where}, line {number}: write NAME=VALUE")
                options[name.strip()] = value.strip()
        return {**self._usual, **self._checked(where, options)}

    def __repr__(self) -> str:
        if self._file is not None:
            return repr(str(self._file))
        return f"{{{', '.join([f'{name!r}: {_HIDDEN}' for name in self._options])}}}"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_options": dict.fromkeys(self._options, _HIDDEN)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientOptions) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._file, *sorted(self._options)))

    @staticmethod
    def _checked(where: str, given: Mapping[Any, Any]) -> dict[str, str | int | float | bool]:
        for name, value in given.items():
            if not isinstance(name, str) or not name:
                raise WallarooParameterError(f"{where}: an option's name is a text, not {name!r}")
            if name in _REFUSED:
                raise WallarooParameterError(
                    f"{where}: the option {name} is not yours to set (kafka-17): {_REFUSED[name]}"
                )
            if not isinstance(value, (str, int, float)):  # its value may be a secret
                raise WallarooParameterError(
                    f"{where}: the option {name} is a text, a number or a bool, not a "
                    f"{type(value).__name__}"
                )
        return dict(given)
