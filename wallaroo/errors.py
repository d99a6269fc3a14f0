"""The errors that users meet, each with the side that caused it.

`WallarooParameterError`: the application's author gave the builder something that cannot be built
(build-1). `UnsupportedTopology`: the application is right, but this engine cannot run it (build-2).
`FrameError`: a sender sent bytes that are not a frame (frame-3). `ApplicationLoadError`: the file
of an application cannot be loaded. `UsageError`: a command was called in a way that makes no sense.
The others are kinds of these.
"""

from __future__ import annotations


class WallarooError(Exception):
    """Base of every error this project raises on purpose."""


class WallarooParameterError(WallarooError):
    """An application, or part of one, cannot be built as it was described (build-1)."""


class ApplicationLoadError(WallarooError):
    """An application's module could not be found, imported, or set up."""


class ApplicationNotFoundError(ApplicationLoadError):
    """There is no such file or module."""


class UnsupportedTopology(WallarooError):  # noqa: N818 - the name rule build-2 gives it
    """An engine cannot run an application and says so before it reads input (build-2).

    Args:
        rule: id of the rule the engine could not keep, such as ``"order-1"``.
        step: name of the step, sink or partition that cannot be run.
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
    """A header with a length that the source does not accept; the stream ends there (frame-3)."""


class EngineNotFoundError(WallarooError):
    """No installed package offers an engine of that name."""


class UsageError(WallarooError):
    """A command was called wrongly, which was seen only after its arguments were read."""


class AddressArgumentError(WallarooParameterError, UsageError):
    """`--in` or `--out` of an application is missing, or has no address after it."""


class KafkaArgumentError(AddressArgumentError):
    """An option of a Kafka source or sink is missing or wrong; `option` is its name if missing."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option


class ExtraMissingError(UsageError):
    """A command or an option needs a package that is not installed; says how to install it."""
