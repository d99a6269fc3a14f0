"""An application whose faults need an input that its samples do not have."""

from __future__ import annotations

import wallaroo


def wallaroo_payloads():
    from hypothesis import strategies as st

    numbers = st.integers(0, 9)
    return st.builds(
        lambda name, number: f"{name}={number}".encode(), st.sampled_from("ab"), numbers
    )


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> tuple[str, int]:
    name, _, number = payload.decode().partition("=")
    return name, int(number)


@wallaroo.computation(name="share")
def share(order: tuple[str, int]) -> tuple[str, int]:
    name, number = order
    return (name, 100 // number and number)


@wallaroo.computation(name="refund")
def refund(order: tuple[str, int]) -> object:
    return order if order[1] == 77 else None


class Tally:
    def __init__(self) -> None:
        self.numbers: list[int] = []


@wallaroo.partition
def by_name(order: tuple[str, int]) -> str:
    return order[0]


@wallaroo.state_computation(name="tally")
def tally(order: tuple[str, int], state: Tally) -> tuple[object, bool]:
    state.numbers.append(order[1])
    return order, not (order[0] == "b" and order[1] > 5)


@wallaroo.encoder
def encode(message: object) -> str:
    return f"{message}\n"


def application_setup(args: list[str]) -> wallaroo.Application:
    (host, port), *_ = wallaroo.tcp_parse_input_addrs(args)
    (to_host, to_port), *_ = wallaroo.tcp_parse_output_addrs(args)
    builder = wallaroo.ApplicationBuilder("orders")
    builder.new_pipeline("orders", wallaroo.TCPSourceConfig(host, port, decode))
    builder.to(share)
    builder.to_state_partition(tally, Tally, "tallies", by_name)
    builder.to(refund)
    builder.to_sink(wallaroo.TCPSinkConfig(to_host, to_port, encode))
    return builder.build()
