"""Faults of the application itself, which `isolated` mode finds while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from wallaroo.keys import Key, key_to_json


class FindingKind(StrEnum):
    """The kinds of finding about an application that `isolated` mode reports."""

    UNFLAGGED_MUTATION = "unflagged-mutation"
    SHARED_MESSAGE = "shared-message"
    COMPONENT_ALTERED = "component-altered"
    IMMUTABLE_STATE = "immutable-state"
    UNPORTABLE = "unportable"
    PAIR_AS_OUTPUT = "pair-as-output"


@dataclass(frozen=True)
class Finding:
    """A fault of the application itself, with which `trusting` mode may give wrong results.

    Args:
        kind: the kind of fault.
        pipeline: the pipeline where it was found first.
        step: the computation's name; for a decoder the decoder's name.
        key: the entity's key, `None` if there is no entity.
        lineage: of the message at which it was found first.
        text: what happened and what to write instead, for people.
    """

    kind: FindingKind
    pipeline: str
    step: str
    key: Key | None
    lineage: tuple[int, ...]
    text: str

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return {
            "kind": self.kind.value,
            "pipeline": self.pipeline,
            "step": self.step,
            "key": None if self.key is None else key_to_json(self.key),
            "lineage": list(self.lineage),
            "text": self.text,
        }
