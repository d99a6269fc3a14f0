"""A small application, for `wallaroo_spark.archive` to load what Spark needs for one."""

from __future__ import annotations

import wallaroo


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> str:
    """Return the text."""
    return payload.decode()


@wallaroo.state_computation(name="count")
def count(text: str, counts: dict[str, int]) -> tuple[str, bool]:
    """Count."""
    counts[text] = counts.get(text, 0) + 1
    return text, True


@wallaroo.partition
def whole(text: str) -> str:
    """Return the text as its own key."""
    return text


@wallaroo.encoder
def encode(text: str) -> str:
    """Return a line."""
    return text + "\n"
