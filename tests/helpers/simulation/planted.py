"""Faults put into the engine, one at a time: source patches, which `planted.toml` lists."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo_mutants.patching import Change, Patch


@dataclass(frozen=True)
class Planted:
    """A fault.

    Args:
        subject: what is simulated to find it.
        what: in words.
        plant: a context in which the engine has it.
        runs: number of runs in which it has been found; `make test` looks for those found soon.
    """

    subject: str
    what: str
    plant: Callable[[], AbstractContextManager[Any]]
    runs: int


def named(words: str) -> Iterator[Planted]:
    """Yield the faults whose description contains the words."""
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    for subject, faults in listed.items():
        for what, fault in faults.items():
            if words in what:
                change = Change(fault["in"], fault.get("before", ""), fault["after"])
                patch = Patch(what, (change,))
                yield Planted(subject, what, patch.in_place, fault.get("runs", 20))
