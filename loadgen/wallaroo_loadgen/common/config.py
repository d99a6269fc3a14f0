"""One run's configuration: everything that the processes of a run must agree on, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Address = tuple[str, int]


def _option(default: Any, help_text: str) -> Any:
    """Return a field that is an option of the command line too, with this help."""
    return field(default=default, metadata={"help": help_text})


@dataclass(frozen=True)
class RunConfig:
    """What to send where, how fast and how long.

    Fields with a help text are options of the command line, of the same name and default.

    Args:
        workload: a name, or a file that ends in `.py`.
        to: addresses of the application's sources, in the workload's order.
        listen: where the application's sink is to connect; port 0 takes a free one.
        processes: sender processes; a stream belongs to one of them.
        run: the number that keeps this run's outputs apart (`workloads.protocol.Options.run`).
        values: the workload's own options.
    """

    workload: str
    to: tuple[Address, ...]
    listen: Address = ("127.0.0.1", 0)
    rate: float = _option(1000.0, "messages a second in all")
    duration: float = _option(10.0, "seconds that are measured")
    warmup: float = _option(2.0, "seconds before them")
    cooldown: float = _option(0.5, "seconds after them")
    schedule: str = _option(
        "constant",
        "constant, poisson, steps:A,B,…, ramp:A,B or burst:TIMES,SECONDS,PERIOD, where A and B are "
        "multiples of the rate; +poisson makes arrivals random",
    )
    connections: int = _option(1, "connections to the sources in all")
    processes: int = 1
    seed: int = _option(0, "of payloads and random arrivals")
    run: int = 0
    values: Mapping[str, str] = field(default_factory=dict)
    wait: float = _option(60.0, "seconds to wait for the application to listen and to answer")
    drain: float = _option(10.0, "seconds without outputs after which those missing count as lost")

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunConfig:
        """Return the configuration that `to_json` gave."""
        to = tuple((str(host), int(port)) for host, port in data["to"])
        host, port = data["listen"]
        return cls(**{**data, "to": to, "listen": (str(host), int(port))})
