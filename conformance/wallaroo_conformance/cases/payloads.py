"""The payloads of random cases; in a module without Hypothesis, because adapters do not have it."""

from __future__ import annotations

import string

_TEXTS = (
    *("a", "b", "ab", "c", "a b", "aaa", "b a c", "A", "abc d", "dd"),
    *("", "0", "1", "'1'", "b'1'", "(1,)", "True", "False", "None", "[]", "[1, 'a']", "''"),
    *("b''", "()", "{}", "{'a': 1}", "-1", "2", "3", "1.5", "{1, 2}", "['b']", "'a'", "'x y'"),
    *("x", "ax", "a x b", "['x']", "y", "ya", "yab", "y a b", "z", "az", "['z', 1]"),
    # Each letter leads to another exception, or another wrong shape: see `complain` and `chosen`.
    *[letter + mark for mark in "xy" for letter in string.ascii_lowercase if letter + mark != "ax"],
    *("(['a'], 1)", "{'a': ['b']}", "1.0", "-0.0", "(1, True)", "(True,)", "[[]]", "0.0"),
    *("\u00e9", "e\u0301", "\u00c9t\u00e9", "\u00df", "\u0130", "\ufb01", "\0", "a\0b"),
    *("\u03a9", "\u65e5\u672c", "\U0001f600", "\ufeffa", "\u200b", "\ud800", "'\\ud800'"),
    *("18446744073709551615", "18446744073709551616", "9223372036854775808"),
    *(" ", "\n", "a\nb", "quit", "'quit'", "halt", "many", "k" * 300),
)

PAYLOADS: tuple[bytes, ...] = (
    *[text.encode("utf-8", "surrogatepass") for text in _TEXTS],
    *(b"\xff\xfe", b"a\xffb", b"\x80"),
)
"""The plainest first; `operators.computing` describes the marks in them."""
