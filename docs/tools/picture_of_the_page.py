"""Make the README's picture of the live page: an application under load, in a real browser.

``PYTHONPATH=tests/helpers python docs/tools/picture_of_the_page.py docs/assets/live-page.png``
needs Debian's chromium and chromium-driver.
"""

from __future__ import annotations

import random
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from receiving import Receiver
from wallaroo_reference.engine import ReferenceEngine
from webdriver import Browser

import wallaroo
from wallaroo.engine import ServeOptions
from wallaroo.frames import frames
from wallaroo.metrics.registry import Registry
from wallaroo.monitor.server import Monitor

_SECONDS = 25.0  # of load before the picture is taken
_SIZE = (1240, 1000)
_CUSTOMERS = [f"customer {number}" for number in range(1, 201)]


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> tuple[str, float]:
    """Return the customer and the amount of ``customer,amount``."""
    customer, amount = payload.decode().split(",")
    return customer, float(amount)


@wallaroo.computation(name="check")
def check(order: tuple[str, float]) -> tuple[str, float] | None:
    """Refuse orders that give money back."""
    if order[1] < 0:
        raise ValueError(f"{order[0]} orders for {order[1]:.2f}")
    return order if order[1] else None


@wallaroo.computation(name="rate")
def rate(order: tuple[str, float]) -> tuple[str, float]:
    """Take the time that a look into a table takes."""
    until = time.perf_counter() + 0.0001
    while time.perf_counter() < until:
        pass
    return order


@wallaroo.partition
def customer(order: tuple[str, float]) -> str:
    """Return the key of an order."""
    return order[0]


class Account:
    """What a customer has ordered."""

    total = 0.0


@wallaroo.state_computation(name="sum up")
def sum_up(order: tuple[str, float], account: Account) -> tuple[tuple[str, float], bool]:
    """Return the customer's new total."""
    account.total += order[1]
    return (order[0], account.total), True


@wallaroo.encoder
def encode(total: tuple[str, float]) -> str:
    """Return a line."""
    return f"{total[0]},{total[1]:.2f}\n"


def application(port: int) -> wallaroo.Application:
    """Return orders that are checked, rated and summed up by customer."""
    return (
        wallaroo.ApplicationBuilder("Orders")
        .new_pipeline("orders", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        .to(check)
        .to(rate)
        .to_state_partition(sum_up, Account, "accounts", customer)
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", port, encode))
        .build()
    )


def take(path: Path, seconds: float = _SECONDS) -> None:
    """Run the application under load, and write what its page shows."""
    receiver = Receiver()
    made = application(receiver.port)
    registry = Registry(made, "reference", partitions=24)
    monitor = Monitor(registry, "127.0.0.1", 0)
    monitor.start()
    handle = ReferenceEngine().serve(made, ServeOptions(metrics=registry, partitions=24))
    over = threading.Event()
    sender = threading.Thread(target=_send, args=(handle.addresses["orders"], over))
    try:
        with Browser() as browser:
            sender.start()
            browser.looks(width=_SIZE[0], height=_SIZE[1])
            browser.open(monitor.url)
            browser.wait(lambda: len(browser.row("rate")) > 3, "no steps")
            time.sleep(seconds)
            path.write_bytes(browser.picture())
    finally:
        over.set()
        if sender.ident is not None:
            sender.join()
        handle.stop()
        handle.wait(20)
        monitor.close()
        receiver.close()


def _send(address: Any, over: threading.Event) -> None:
    """Send orders at a rate that goes up and down; customers are busy by Zipf's law."""
    chance = random.Random(1)  # noqa: S311 - the same orders each time, and no secrets
    weights = [1 / (rank + 1) for rank in range(len(_CUSTOMERS))]
    began = time.monotonic()
    with socket.create_connection(address) as sock:
        while not over.wait(0.05):
            many = 100 if (time.monotonic() - began) % 10 < 6 else 200
            orders = [
                f"{who},{-1 if chance.random() < 0.001 else chance.randint(1, 99)}".encode()
                for who in chance.choices(_CUSTOMERS, weights, k=many)
            ]
            sock.sendall(frames(orders))


if __name__ == "__main__":
    take(Path(sys.argv[1]))
