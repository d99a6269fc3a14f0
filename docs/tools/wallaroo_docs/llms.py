"""``llms.txt``: the site's pages for programs that read text, each with its Markdown source."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import yaml


def write_llms(stage: Path, built: Path) -> None:
    """Write ``llms.txt`` into a built site, and the pages' sources beside the pages.

    Args:
        stage: the directory with ``mkdocs.yml`` and ``docs``.
        built: the directory of the pages.
    """
    settings = yaml.safe_load((stage / "mkdocs.yml").read_text("utf-8"))
    lines = [f"# {settings['site_name']}", "", f"> {settings['site_description'].strip()}", ""]
    for heading, names in _sections(settings["nav"]):
        lines += [f"## {heading}", ""]
        for name in names:
            text = (stage / "docs" / name).read_text("utf-8")
            lines.append(f"- [{_title(text)}]({name}): {_first_sentence(text)}")
            shutil.copy(stage / "docs" / name, built / name)
        lines.append("")
    (built / "llms.txt").write_text("\n".join(lines), "utf-8")


def _sections(nav: list[Any]) -> list[tuple[str, list[str]]]:
    """Return the pages by their uppermost heading; those that have none come first."""
    found: dict[str, list[str]] = {"Begin": []}
    for item in nav:
        for heading, inside in item.items() if isinstance(item, dict) else [("", item)]:
            place = "Begin" if isinstance(inside, str) else heading
            found.setdefault(place, []).extend(_pages(inside))
    return list(found.items())


def _pages(item: Any) -> list[str]:
    if isinstance(item, str):
        return [item]
    inside = item.values() if isinstance(item, dict) else item
    return [page for one in inside for page in _pages(one)]


def _title(text: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    assert found is not None
    return found[1].strip("`")


def _first_sentence(text: str) -> str:
    """Return a page's first sentence, as plain text."""
    body = re.sub(r"^---\n.*?\n---\n", "", text, flags=re.DOTALL).partition("\n# ")[2] or text
    paragraph = next(
        part for part in body.split("\n\n")[1:] if re.match(r"(?!Date:)[A-Z`*\[]", part.lstrip())
    )
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
    sentence = re.match(r".*?[.?](?= |$)|.*", plain)[0]  # type: ignore[index]
    return sentence.replace("*", "").removesuffix(":")
