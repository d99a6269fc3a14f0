"""The site builds, and asks nobody else for anything."""

import re

LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*>
    |<link\b(?![^>]*\brel=["']?(?:canonical|next|prev))[^>]*\bhref=["']?(?:https?:)?//[^>]*>
    |@import\s+(?:url\()?["']?(?:https?:)?//
    |url\(["']?(?:https?:)?//""",
    re.VERBOSE | re.IGNORECASE,
)


def test_no_page_loads_anything_from_elsewhere(site):
    found = {
        (path.name, match[0][:100])
        for path in site.rglob("*")
        if path.suffix in (".html", ".css")
        for match in LOADED.finditer(path.read_text("utf-8"))
    }
    assert found == set()


def test_a_rules_section_has_its_id_as_anchor(site):
    assert '<h2 id="state-4">' in (site / "spec" / "state.html").read_text("utf-8")


def test_the_tools_are_no_part_of_it(site):
    assert not (site / "tools").exists()
    assert not list(site.rglob("*.py"))
