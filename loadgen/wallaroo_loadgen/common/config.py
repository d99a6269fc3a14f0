"""One run's configuration: everything that the processes of a run must agree on, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Address = tuple[str, int]


def address(text: str) -> Address:
    """Return the (host, port) that `HOST:PORT` means; `[::1]:7010` for IPv6.

    Raises:
        ValueError: with what is expected.
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"an address is HOST:PORT, not {text!r}")
    return host.strip("[]"), int(port)


@dataclass(frozen=True)
class RunConfig:
    """What to send where, how fast and how long.

    Args:
        workload: a name, or a file that ends in `.py`.
        to: addresses of the application's sources, in the workload's order.
        listen: where the application's sink is to connect; port 0 takes a free one.
        rate: messages a second over all connections.
        warmup, duration, cooldown: seconds; only messages due in `duration` are measured.
        schedule: as `Schedule.parse` reads it.
        connections: number of streams that the workload makes.
        processes: sender processes; a stream belongs to one of them.
        seed: of payloads and random arrivals.
        run: the number that keeps this run's outputs apart (`workloads.protocol.Options.run`).
        values: the workload's own options.
        wait: seconds to wait for the target to listen and to answer probes.
        drain: seconds without any output after which missing outputs count as lost.
    """

    workload: str
    to: tuple[Address, ...]
    listen: Address = ("127.0.0.1", 0)
    rate: float = 1000.0
    duration: float = 10.0
    warmup: float = 2.0
    cooldown: float = 0.5
    schedule: str = "constant"
    connections: int = 1
    processes: int = 1
    seed: int = 0
    run: int = 0
    values: Mapping[str, str] = field(default_factory=dict)
    wait: float = 60.0
    drain: float = 10.0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunConfig:
        """Return the configuration that `to_json` gave."""
        fields = dict(data)
        fields["to"] = tuple((str(host), int(port)) for host, port in fields["to"])
        host, port = fields["listen"]
        fields["listen"] = (str(host), int(port))
        return cls(**fields)
