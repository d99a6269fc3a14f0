"""What is different between two canonical structures (`wallaroo.canonical`), part by part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wallaroo.readable import structure_text
from wallaroo.trace import canonical_json


def changes(before: Any, after: Any, way: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (where, what was there, what is there now); `None`: it is new, or gone.

    Attributes, the values of dicts, and the items of lists that are as long as before are compared
    one by one; everything else is compared as a whole.

    Args:
        before: a structure.
        after: another.
        way: what is written before each place, as Python writes it: ``.attribute``, ``['key']``.
    """
    if before == after:
        return
    match before, after:
        case ["dict", old], ["dict", new]:
            yield from _of_pairs(old, new, lambda name: f"{way}[{structure_text(name)}]")
        case ["list", old], ["list", new] if len(old) == len(new):
            for index, (was, now) in enumerate(zip(old, new, strict=True)):
                yield from changes(was, now, f"{way}[{index}]")
        case [kind, make, arguments, old, None, None], [other, *rest, new, None, None] if (
            [kind, make, arguments] == [other, *rest] and _attributes(old) and _attributes(new)
        ):
            yield from _of_pairs(
                _attributes(old), _attributes(new), lambda name: f"{way}.{_attribute(name)}"
            )
        case _:
            yield way, before, after


def _attributes(state: Any) -> list[Any]:
    match state:
        case ["dict", pairs] | ["tuple", [None, ["dict", pairs]]]:  # the second: __slots__
            return list(pairs)
    return []


def _attribute(name: Any) -> str:
    return str(name[1]) if name[:1] == ["str"] else structure_text(name)


def _of_pairs(old: list[Any], new: list[Any], way: Any) -> Iterator[tuple[str, Any, Any]]:
    were = {canonical_json(name): (name, value) for name, value in old}
    are = {canonical_json(name): (name, value) for name, value in new}
    for known in sorted(were.keys() | are.keys()):
        name = (were.get(known) or are[known])[0]
        if known not in were:
            yield way(name), None, are[known][1]
        elif known not in are:
            yield way(name), were[known][1], None
        else:
            yield from changes(were[known][1], are[known][1], way(name))
