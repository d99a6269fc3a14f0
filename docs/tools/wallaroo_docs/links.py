"""Every link of a built site, checked: to pages, to anchors, to pictures, to scripts.

The generator checks links between Markdown files. This module also checks those that it does not
look at: pictures, HTML in pages, links to files that are built, and its own templates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


@dataclass
class _Html(HTMLParser):
    """A page: the anchors that it has, and where its links lead."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element's anchors and links."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """Return one line for each link of the site that leads nowhere in it."""
    pages = {path.resolve(): _Html() for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        page.feed(path.read_text("utf-8"))
    return [
        f"{path.relative_to(site.resolve())}: {link}"
        for path, page in pages.items()
        if path.name != "404.html"  # it is shown under any address, so its links are absolute
        for link in dict.fromkeys(page.links)
        if not _leads_somewhere(path, link, pages)
    ]


def _leads_somewhere(path: Path, link: str, pages: dict[Path, _Html]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True  # elsewhere, or not a file: a build makes no requests
    target, anchor = urldefrag(link)
    if target.startswith("/"):
        return False  # the site works under any path
    found = (path.parent / unquote(urlsplit(target).path)).resolve() if target else path
    if not found.is_file():
        return False
    page = pages.get(found)
    # Anchors that scripts make begin with two underscores.
    known = page is None or not anchor or anchor.startswith("__") or unquote(anchor) in page.anchors
    return bool(known)
