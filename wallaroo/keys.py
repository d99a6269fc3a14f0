"""Keys: what they are, when two are the same, and the partition number each one has.

A key is a `str`, `bytes`, `int` or a `tuple` of keys, exactly these types (route-2). Its canonical
encoding is self-delimiting and type-tagged, so two keys are the same exactly when their encodings
are; the partition number is a stable hash of it (route-4). Encoding::

    str    "s" LENGTH UTF-8 (lone surrogates as three bytes each)
    bytes  "b" LENGTH the bytes
    int    "i" LENGTH two's complement, big-endian, in the fewest bytes (0 is one byte)
    tuple  "t" COUNT  the items' encodings

where LENGTH and COUNT are four bytes, big-endian. Nested tuples are walked without recursion:
64 KiB hold some 13,000 levels.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from typing import Any, TypeAlias

from wallaroo.text import survives_json

Key: TypeAlias = "str | bytes | int | tuple[Key, ...]"

MAX_ENCODED_KEY = 64 * 1024
"""Longest canonical encoding of a key, in bytes (route-2)."""

U64_END = 1 << 64
"""The smallest int too large for a key of `to_state_partition_u64` (route-5)."""

SINGLE_KEY: Key = ()
"""The key of a `to_stateful` partition's one entity (route-6)."""

_DEEPEST_READABLE = 50  # levels of tuples shown as such in JSON; JSON readers recurse
_LONGEST_DECIMAL = 1000  # bits
_LONGEST_NUMBER = 300  # digits
_WIDEST_SHOWN = 80  # characters
_TOO_LONG = f"a key's encoding is over {MAX_ENCODED_KEY} bytes"
_FEW = 8  # items of a tuple
_SURELY_SHORT = MAX_ENCODED_KEY // 4 - 5  # code points; the encoding of this many always fits


class BadKeyError(ValueError):
    """A value that is not a key (route-2)."""


def is_u64(key: object) -> bool:
    """Whether `key` is one that `to_state_partition_u64` takes: an int, 0 <= key < 2**64."""
    return type(key) is int and 0 <= key < U64_END


def encode_key(key: object) -> bytes:
    """Return the canonical encoding of `key`.

    Raises:
        BadKeyError: `key` is not a key, or its encoding is over `MAX_ENCODED_KEY` bytes.
    """
    if type(key) is not tuple:  # as most keys are
        encoded = _encoded_item(key, key)
        if len(encoded) > MAX_ENCODED_KEY:
            raise BadKeyError(_TOO_LONG)
        return encoded
    if (usual := _usual_tuple(key)) is not None:
        return usual
    parts: list[bytes] = []
    size = 0
    stack: list[object] = [key]
    while stack:
        item = stack.pop()
        if type(item) is tuple:
            items: tuple[object, ...] = _bounded(item)
            parts.append(b"t" + len(items).to_bytes(4, "big"))
            stack.extend(reversed(items))
        else:
            parts.append(_encoded_item(item, key))
        size += len(parts[-1])
        if size > MAX_ENCODED_KEY:
            raise BadKeyError(_TOO_LONG)
    return b"".join(parts)


def _usual_tuple(key: tuple[Any, ...]) -> bytes | None:
    """Return the encoding of a tuple of a few short texts and numbers, in half the time."""
    if len(key) > _FEW:
        return None
    encoded = b"t" + len(key).to_bytes(4, "big")
    for item in key:
        kind = type(item)
        if kind is str and len(item) < 1_000:
            content = item.encode("utf-8", "surrogatepass")
            encoded += b"s" + len(content).to_bytes(4, "big") + content
        elif kind is int and 0 <= item < U64_END:
            size = item.bit_length() // 8 + 1
            encoded += b"i\0\0\0" + size.to_bytes() + item.to_bytes(size)
        else:
            return None
    return encoded


def _encoded_item(item: object, key: object) -> bytes:
    """Return the encoding of an item of `key` that is no tuple, or of `key` itself."""
    kind = type(item)
    content: bytes
    if kind is str:
        # Every code point takes a byte or more, so a text this long need not be encoded.
        content, tag = _bounded(item).encode("utf-8", "surrogatepass"), b"s"
    elif kind is bytes:
        content, tag = _bounded(item), b"b"
    elif kind is int:
        content, tag = _int_bytes(item), b"i"  # type: ignore[arg-type]
    else:
        raise BadKeyError(_not_a_key(key, item))
    return tag + len(content).to_bytes(4, "big") + content


def partition_number(key: Key, partitions: int) -> int:
    """Return which of `partitions` partitions `key` belongs to, `0 <= number < partitions`.

    The first eight bytes, big-endian, of BLAKE2b over the canonical encoding, modulo `partitions`
    (route-4): the same in every process, engine, run and Python version.

    Raises:
        BadKeyError: `key` is not a key.
        ValueError: `partitions` is less than 1.
    """
    return encoded_partition_number(encode_key(key), partitions)


def encoded_partition_number(encoded: bytes, partitions: int) -> int:
    """Return `partition_number` of the key whose canonical encoding is `encoded`.

    Raises:
        ValueError: If `partitions` is less than 1.
    """
    if partitions < 1:
        raise ValueError(f"the number of partitions is 1 or more, not {partitions}")
    digest = hashlib.blake2b(encoded, digest_size=8).digest()
    return int.from_bytes(digest, "big") % partitions


def identity(key: object) -> Hashable:
    """Return a hashable value that is equal for two keys exactly when they are the same key.

    It is cheaper than the encoding. Once the type is known to be exact, a `str`, `bytes` or `int`
    compares as route-2 says; only tuples are encoded, since comparing deep ones would recurse.

    Raises:
        BadKeyError: `key` is not a key.
    """
    kind = type(key)
    if (kind is str or kind is bytes) and len(key) <= _SURELY_SHORT:  # type: ignore[arg-type]
        return key
    if kind is int and key.bit_length() <= _SURELY_SHORT:  # type: ignore[attr-defined]
        return key
    encoded = encode_key(key)
    return (encoded,) if kind is tuple else key


def key_to_json(key: Key) -> dict[str, Any]:
    """Return the type-tagged JSON form of `key`.

    ``{"str": …}``, ``{"bytes": base64}``, ``{"int": digits}`` (decimal; beyond 1,000 bits with
    ``0x``), ``{"tuple": [keys]}``; a key of tuples nested deeper than JSON readers follow, and a
    text that JSON would change (`wallaroo.text.survives_json`), is ``{"encoded": base64}``.
    """
    return _tagged(key, _DEEPEST_READABLE) or _encoded(key)


def show_key(key: Key) -> str:
    """Return `key` for a person to read, 80 characters at most."""
    try:
        text = repr(key)
    except (ValueError, RecursionError):  # an int of thousands of digits, a very deep tuple
        text = str(key_to_json(key))
    return text if len(text) <= _WIDEST_SHOWN else text[:_WIDEST_SHOWN] + "…"


def respelling_hint(key: Key, is_listed: Callable[[Key], bool]) -> str:
    """Return a hint, for the end of an error's text, where `key` is listed in another type.

    Applications written for Python 2 often mix a text, its bytes and a character's number; here
    they are different keys (route-2).

    Args:
        key: a key that is not listed.
        is_listed: returns whether a key is listed.

    >>> respelling_hint(b"kw", {"kw"}.__contains__)
    "; 'kw' is: write key.decode()"
    """
    for other, how in _respelled(key):
        if is_listed(other):
            return f"; {show_key(other)} is: write {how}"
    return ""


def key_from_json(form: dict[str, Any]) -> Key:
    """Return the key whose `key_to_json` is `form`.

    Raises:
        ValueError: `form` is not such a form.
    """
    match form:
        case {"str": str(text)}:
            return text
        case {"bytes": str(text)}:
            return base64.b64decode(text)
        case {"int": str(digits)}:
            return int(digits, 0)
        case {"tuple": list(items)}:
            return tuple([key_from_json(item) for item in items])
        case {"encoded": str(text)}:
            return decode_key(base64.b64decode(text))
    raise ValueError(f"not a type-tagged key: {form!r:.80}")


def decode_key(encoded: bytes) -> Key:
    """Return the key whose canonical encoding is `encoded`.

    Raises:
        ValueError: `encoded` is not a canonical encoding.
    """
    # Right to left, so that a tuple's items are complete when its head is met.
    heads: list[tuple[bytes, int, int]] = []
    position = 0
    while position < len(encoded):
        tag = encoded[position : position + 1]
        length = int.from_bytes(encoded[position + 1 : position + 5], "big")
        heads.append((tag, position + 5, length))
        position += 5 + (0 if tag == b"t" else length)
    done: list[Key] = []
    for tag, start, length in reversed(heads):
        content = encoded[start : start + length]
        if tag == b"s":
            done.append(content.decode("utf-8", "surrogatepass"))
        elif tag == b"b":
            done.append(content)
        elif tag == b"i":
            done.append(int.from_bytes(content, "big", signed=True))
        elif tag == b"t" and length <= len(done):
            items = tuple(reversed(done[len(done) - length :]))
            del done[len(done) - length :]
            done.append(items)
        else:
            raise ValueError("not the canonical encoding of a key")
    if len(done) != 1 or encode_key(done[0]) != encoded:
        raise ValueError("not the canonical encoding of a key")
    return done[0]


def _respelled(key: Key) -> Iterator[tuple[Key, str]]:
    """Yield `key` in other types, each with the code that converts it."""
    if isinstance(key, bytes):
        with suppress(UnicodeDecodeError):
            yield key.decode(), "key.decode()"
    elif isinstance(key, str):
        with suppress(UnicodeEncodeError):  # a lone surrogate
            yield key.encode(), "key.encode()"
        if key.isascii() and key.isdigit() and len(key) <= _LONGEST_NUMBER:
            yield int(key), "int(key)"
    elif isinstance(key, int):
        if key.bit_length() <= _LONGEST_DECIMAL:
            yield str(key), "str(key)"
        if 0 <= key <= sys.maxunicode:
            yield chr(key), "chr(key)"
        if 0 <= key < 256:
            yield bytes([key]), "bytes([key])"
    if isinstance(key, (bytes, str)) and len(key) == 1:
        yield ord(key), "ord(key)"


def _encoded(key: Key) -> dict[str, Any]:
    return {"encoded": base64.b64encode(encode_key(key)).decode("ascii")}


def _tagged(key: Key, levels: int) -> dict[str, Any] | None:
    if isinstance(key, str):
        return {"str": key} if survives_json(key) else _encoded(key)
    if isinstance(key, bytes):
        return {"bytes": base64.b64encode(key).decode("ascii")}
    if isinstance(key, int):
        # Decimal is quadratic in the length, and Python refuses it beyond 4,300 digits.
        return {"int": str(key) if key.bit_length() <= _LONGEST_DECIMAL else f"{key:#x}"}
    if not levels:
        return None
    items = [_tagged(item, levels - 1) for item in key]
    return None if None in items else {"tuple": items}


def _bounded(value: Any) -> Any:
    if len(value) > MAX_ENCODED_KEY:
        raise BadKeyError(_TOO_LONG)
    return value


def _int_bytes(value: int) -> bytes:
    if value.bit_length() > 8 * MAX_ENCODED_KEY:
        raise BadKeyError(_TOO_LONG)
    magnitude = value if value >= 0 else ~value
    return value.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _not_a_key(key: object, item: object) -> str:
    kind = type(item)  # not item.__class__, which user code may define
    where = "" if item is key else f" inside a {type(key).__qualname__}"
    hint = ""
    bases = [base.__name__ for base in (str, bytes, int, tuple) if issubclass(kind, base)]
    if bases:
        hint = f"; convert it: {bases[0]}(key)"
    elif issubclass(kind, float):
        hint = "; for a whole number divide by //, not by /"
    elif item is None:
        hint = "; does the partition function return on every path?"
    return f"a key is a str, bytes, int or a tuple of keys, not {kind.__qualname__}{where}{hint}"
