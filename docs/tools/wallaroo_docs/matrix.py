"""The table of other engines under test, made from what ``wallaroo conform --matrix`` wrote."""

from __future__ import annotations

import json
import re
from typing import Any

from wallaroo_docs.pages import DOCS

FOLDER = DOCS / "assets" / "conformance"

_PLACE = re.compile(r"(<!-- matrix -->\n).*?(<!-- end of matrix -->)", re.DOTALL)
_STATUSES = ("kept", "broken", "not exercised", "unsupported")


def with_matrix(text: str) -> str:
    """Return a page with the table as it is now, between its two marks, if it has them."""
    return _PLACE.sub(lambda found: f"{found[1]}{_table()}{found[2]}", text)


def _table() -> str:
    form = json.loads((FOLDER / "matrix.json").read_text("utf-8"))
    lines = [
        f"| engine | version | {' | '.join(_STATUSES)} | cases | |",
        f"|---|---|{'---:|' * len(_STATUSES)}---:|---|",
    ]
    lines += [_row(report) for report in form["reports"]]
    return "\n".join(lines) + "\n"


def _row(report: dict[str, Any]) -> str:
    name, statuses = report["engine"], [*report["rules"].values()]
    counts = " | ".join(str(statuses.count(status)) for status in _STATUSES)
    version = report["versions"].get(name, report["versions"]["wallaroo"])
    badge = f"![{name}](assets/conformance/{name}.svg)"
    return f"| {name} | {version} | {counts} | {report['footer']['supported']:,} | {badge} |"
