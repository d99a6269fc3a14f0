"""The errors users meet, and whose side each is on.

`WallarooParameterError` is the application author's: what was handed to the builder cannot be
built (build-1). `UnsupportedTopology` is the engine's: the application is right, this engine
cannot run it (build-2). `FrameError` is the sender's: bytes that are no frame (frame-3).
"""

from __future__ import annotations


class WallarooError(Exception):
    """Base of every error this project raises on purpose."""


class WallarooParameterError(WallarooError):
    """An application, or part of one, cannot be built as it was described (build-1)."""


class ApplicationLoadError(WallarooError):
    """An application's module could not be found, imported, or set up."""


class UnsupportedTopology(WallarooError):  # noqa: N818 - the name rule build-2 gives it
    """An engine cannot run an application and says so before it reads input (build-2).

    Args:
        rule: id of the rule the engine could not keep, such as ``"order-1"``.
        step: name of the step, sink or partition the refusal is about.
        reason: what the engine cannot do, and what to do instead.
    """

    def __init__(self, rule: str, step: str, reason: str) -> None:
        super().__init__(rule, step, reason)
        self.rule = rule
        self.step = step
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.rule}, at {self.step!r}: {self.reason}"


class FrameError(WallarooError):
    """A stream that is no sequence of frames: its header's claim cannot be met (frame-3)."""


class EngineNotFoundError(WallarooError):
    """No installed package offers an engine of that name."""
