"""A run that an engine serves: how it begins and ends, its checkpoint, what has been done."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from wallaroo.engine import Engine, Handle, ServeOptions, Summary
from wallaroo.errors import WallarooError
from wallaroo.topology import Application
from wallaroo.trace import Entity
from wallaroo.transport.identity import IDENTITY, read_identity
from wallaroo.transport.stored import open_stored, rewrite, stored_entities

OTHER = "reference"
"""The engine that goes on with another one's checkpoint; where that is itself, partitions change.
"""


class BrokenRuleError(Exception):
    """In a live run, something was not as the rules say.

    Args:
        rules: ids of the rules that speak of it, the most particular first.
        text: what happened.
        story: what had been done, step by step.
    """

    def __init__(self, rules: Sequence[str], text: str, story: Sequence[str]) -> None:
        super().__init__(f"{', '.join(rules)}: {text}")
        self.rules = tuple(rules)
        self.text = "\n".join([text, "what was done:", *[f"  {line}" for line in story]])


def lacking(engine: Engine, rules: Sequence[str], *, recovers: bool) -> str:
    """Return why an engine cannot do what a run about these rules does; empty: it can."""
    if recovers and not engine.capabilities().recovery:
        return "it does not claim to recover"
    if {"scale-1", "scale-2"} & {*rules} and not hasattr(engine, "stored"):
        return "it does not show what its checkpoints hold"
    return ""


class ServedRun:
    """A run that an engine serves, with a folder for its checkpoint, and what has been done.

    Args:
        engine: the engine that serves.
        options: how.
        patience: seconds that any one thing may take.
        interval: seconds between checkpoints.
        recovers: it has a checkpoint.
    """

    application: Application
    """What is served."""
    handle: Handle

    def __init__(
        self,
        engine: Engine,
        options: ServeOptions,
        patience: float,
        *,
        interval: float,
        recovers: bool,
    ) -> None:
        self.engine = engine
        self.patience = patience
        self.recovers = recovers
        self._options = options
        self._interval = interval
        self._story: list[str] = []
        self._directory = tempfile.TemporaryDirectory(
            prefix="wallaroo-conformance-", ignore_cleanup_errors=True
        )
        self.checkpoint = Path(self._directory.name) / "checkpoint"

    def serve(self) -> None:
        """Let the engine serve, from the checkpoint if there is one."""
        if self.recovers:
            self.serve_from(self.checkpoint)
        else:
            self.note("serve")
            self.handle = self.engine.serve(self.application, self._options)

    def serve_from(self, checkpoint: Path, engine: Engine | None = None, **own: Any) -> None:
        """Serve from a checkpoint, once the run before has ended.

        Args:
            checkpoint: its directory.
            engine: who serves; `None`: the engine of the run.
            own: further options of the engine's own.

        Raises:
            WallarooError: the engine refuses it.
        """
        self.note(f"serve from {checkpoint.name}")
        own = {"checkpoint": checkpoint, "checkpoint_interval": self._interval, **own}
        options = replace(self._options, options=own)
        self.handle = (engine or self.engine).serve(self.application, options)

    def refused(self, rule: str, checkpoint: Path, *words: str) -> str:
        """Serve from a checkpoint that must be refused, with these words; return what is said."""
        try:
            self.serve_from(checkpoint)
            summary = self.handle.wait(self.patience)
            said = "" if summary is None or not summary.exit_code else summary.problem or ""
        except WallarooError as error:
            said = str(error)
        if not said:
            self.broken((rule,), "it is not refused")
        if missing := [word for word in words if word not in said]:
            self.broken((rule,), f"the refusal does not say {', '.join(missing)}: {said}")
        return said

    def moved(self, rule: str, old: Path, name: str, engine: str, partitions: int) -> Path:
        """Write a checkpoint anew, for an engine; it stays as it was itself (scale-2).

        ``wallaroo checkpoint DIR --partitions M --to ENGINE`` does the same.
        """
        new, before = old.with_name(name), files_of(old)
        self.note(f"{name} is {old.name} for {engine}, with {partitions} partitions")
        try:
            identity = read_identity(old / IDENTITY)
            there = replace(identity, engine=engine, partitions=partitions)
            rewrite(old, identity, new, there, application=self.application)
        except WallarooError as error:
            self.broken((rule,), f"the checkpoint cannot be written anew: {error}")
        self.unchanged("scale-2", old, before)
        return new

    def unchanged(self, rule: str, directory: Path, before: Mapping[str, bytes]) -> None:
        """Make sure that the files of a checkpoint are what they were."""
        after = files_of(directory)
        if changed := [one for one in {**before, **after} if before.get(one) != after.get(one)]:
            files = ", ".join(sorted(changed))
            self.broken((rule,), f"files of {directory.name} are changed: {files}")

    def kill(self) -> None:
        """Kill the engine."""
        self.note("kill")
        self.handle.kill()

    def kill_and_restart(self) -> None:
        """Kill the engine while it works, and start it again from the same checkpoint."""
        self.kill()
        self.note("restart")
        self.handle = self.handle.restart()

    def ended(self, rules: tuple[str, ...], exit_code: int, *, stop: bool = False) -> Summary:
        """Wait until the run has ended, by itself or by a stop, and return its summary."""
        if stop:
            self.note("stop")
            self.handle.stop()
        summary = self.handle.wait(self.patience)
        if summary is None:
            self.broken(rules, f"the run has not ended within {self.patience:g} s")
        if summary.exit_code != exit_code:
            said = f"exit code {summary.exit_code}, not {exit_code}; problem: {summary.problem}"
            self.broken(rules, said)
        return summary

    def note(self, step: str) -> None:
        """Note what is done; a failure shows it."""
        self._story.append(step)

    def broken(self, rules: Sequence[str], text: str) -> NoReturn:
        """End the run.

        Raises:
            BrokenRuleError: always.
        """
        raise BrokenRuleError(rules, text, self._story)


def home_of(checkpoint: Path) -> str:
    """Return the name of the engine that a checkpoint belongs to."""
    return read_identity(checkpoint / IDENTITY).engine


def entities_in(checkpoint: Path) -> Sequence[Entity]:
    """Return the entities of a checkpoint.

    Raises:
        WallarooError: they cannot be read.
    """
    identity = read_identity(checkpoint / IDENTITY)
    state = open_stored(checkpoint, identity.engine).state()
    return tuple(stored_entities(state, identity.partitions))


def files_of(directory: Path) -> Mapping[str, bytes]:
    """Return the files of a checkpoint by their names in it."""
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}
