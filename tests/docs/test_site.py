"""The site builds, all its links lead somewhere, and it asks nobody else for anything."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from wallaroo_docs.links import broken_links
from wallaroo_docs.site import SiteError, pages

pytestmark = pytest.mark.xdist_group("site")  # which is built once

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


def test_programs_that_read_text_find_every_page(site):
    told = (site / "llms.txt").read_text("utf-8")
    linked = re.findall(r"^- \[.+?\]\((.+?)\): \S", told, re.MULTILINE)
    pages = {str(path.relative_to(site)) for path in site.rglob("*.html")} - {"404.html"}
    pages = {page for page in pages if not page.startswith("assets/")}  # a report, no text to read
    assert {link.removesuffix(".md") + ".html" for link in linked} == pages
    assert all((site / link).is_file() for link in linked)
    assert not re.search(r"^- .*:$|: Date", told, re.MULTILINE)  # whole sentences


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("logging", "operating.html"),
        ("dead letter", "spec/sinks.html"),
        ("watermark", "spec/time.html"),
        ("pytest", "testing.html"),
        ("to_state_partition", "api/language.html"),
    ],
)
def test_the_search_knows_a_word_and_its_page(site, word, page):
    items = json.loads((site / "search.json").read_text("utf-8"))["items"]
    found = {item["location"].partition("#")[0] for item in items if word in str(item).lower()}
    assert page in found


def test_pages_can_be_read_without_scripts(site):
    page = (site / "spec" / "state.html").read_text("utf-8")
    assert page.count('<span class="filename">application</span>') > 5
    assert "assets/run/pages.js" not in page


@pytest.mark.parametrize(
    "link",
    [
        '<a href="nothing.html">',
        '<a href="other.html#nothing">',
        '<a href="#nothing">',
        '<a href="/other.html">',
        '<img src="nothing.svg">',
        '<script src="nothing.js"></script>',
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path, link):
    (tmp_path / "page.html").write_text(f'<p id="here">{link}</p>')
    (tmp_path / "other.html").write_text('<a href="page.html#here"></a><a href="#__skip"></a>')
    [found] = broken_links(tmp_path)
    assert found == f"page.html: {re.search(r'=.(.*?).>', link)[1]}"


@pytest.mark.parametrize("link", ["[a](nothing.md)", "![a](nothing.svg)"])
def test_a_site_with_a_broken_link_is_not_built(tmp_path, link):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Title\n\n{link}\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\nuse_directory_urls: false\n")
    with pytest.raises(SiteError, match="nothing"):
        pages(tmp_path)


def test_the_command_says_where_the_site_is(site_and_said):
    site, said = site_and_said
    [address] = re.findall(r"^the site is at (file://\S+)$", said, re.MULTILINE)
    assert Path(url2pathname(urlsplit(address).path)) == site / "index.html"
    assert (site / "index.html").exists()
