"""Where a key belongs: the same partition number in every process and every Python (route-4)."""

import hashlib
import os
import sys
from pathlib import Path

import pytest
from drawn_keys import keys
from hypothesis import given
from hypothesis import strategies as st
from running import ran

from wallaroo.keys import (
    encode_key,
    encoded_partition_number,
    partition_number,
)

ROOT = Path(__file__).parents[2]


FROZEN = [
    ("", (0, 6, 9, 356)),
    ("a", (1, 5, 13, 885)),
    ("!", (1, 5, 4, 365)),
    ("\u00e9", (1, 0, 25, 530)),
    ("\ud800", (0, 6, 24, 886)),
    (b"", (0, 7, 24, 747)),
    (b"a", (1, 0, 16, 950)),
    (0, (1, 4, 13, 204)),
    (1, (0, 9, 24, 159)),
    (-1, (0, 5, 24, 765)),
    (255, (0, 3, 15, 393)),
    (2**64 - 1, (1, 2, 19, 42)),
    (10**40, (2, 3, 23, 883)),
    ((), (1, 1, 1, 371)),
    ((1,), (2, 7, 8, 547)),
    (("a", (b"b", -2)), (2, 2, 23, 782)),
    ("word" * 100, (2, 0, 17, 450)),
]
"""Keys and their partition numbers of 3, 10, 27 and 1000, as they were in the first version."""


def numbers(key):
    return tuple(partition_number(key, n) for n in (3, 10, 27, 1000))


@pytest.mark.parametrize(("key", "expected"), FROZEN)
def test_route_4_numbers_never_change(key, expected):
    assert numbers(key) == expected


def test_route_4_the_number_is_the_documented_one():
    digest = hashlib.blake2b(b"s\0\0\0\x01a", digest_size=8).digest()
    assert partition_number("a", 1_000_003) == int.from_bytes(digest, "big") % 1_000_003


def test_route_4_the_encoding_is_the_documented_one():
    assert encode_key("aé") == b"s\0\0\0\x03a\xc3\xa9"
    assert encode_key(b"ab") == b"b\0\0\0\x02ab"
    assert encode_key(0) == b"i\0\0\0\x01\0"
    assert encode_key(127) == b"i\0\0\0\x01\x7f"
    assert encode_key(128) == b"i\0\0\0\x02\0\x80"
    assert encode_key(-128) == b"i\0\0\0\x01\x80"
    assert encode_key(-129) == b"i\0\0\0\x02\xff\x7f"
    assert encode_key((1, "a")) == b"t\0\0\0\x02i\0\0\0\x01\x01s\0\0\0\x01a"
    assert encode_key("\ud800") == b"s\0\0\0\x03\xed\xa0\x80"


@given(keys, st.integers(1, 1 << 40))
def test_route_4_a_number_is_below_their_number(key, partitions):
    number = partition_number(key, partitions)
    assert 0 <= number < partitions
    assert number == encoded_partition_number(encode_key(key), partitions)


@pytest.mark.parametrize("partitions", [0, -1])
def test_route_4_there_is_a_partition(partitions):
    with pytest.raises(ValueError, match="1 or more"):
        partition_number("a", partitions)


def test_route_4_keys_spread():
    counts = [0] * 16
    for n in range(16_000):
        counts[partition_number(f"key {n}", 16)] += 1
    assert 850 < min(counts) <= max(counts) < 1150


TELL = """
import sys
sys.path.insert(0, sys.argv[1])
from wallaroo.keys import partition_number
keys = eval(sys.stdin.read())
print([partition_number(key, n) for key in keys for n in (3, 10, 27, 1000)])
"""


@pytest.mark.parametrize("seed", ["0", "4294967295"])
def test_route_4_the_same_in_every_process(seed):
    done = ran(
        [sys.executable, "-c", TELL, str(ROOT)],
        input=ascii([key for key, _ in FROZEN]),
        env={**os.environ, "PYTHONHASHSEED": seed},
        check=True,
    )
    assert done.stdout.strip() == repr([number for key, _ in FROZEN for number in numbers(key)])
