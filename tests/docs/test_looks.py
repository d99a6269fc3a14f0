"""In a real browser: every page on a wide and on a narrow screen, in light and in dark colours."""

import pytest
from wallaroo_docs.pages import DOCS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

# What is wrong with the page that is open, as a list of sentences.
WRONG = """
const found = [];
const wide = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > wide) found.push("the page scrolls sideways");
for (const image of document.querySelectorAll("img[src]"))
  if (image.complete && !image.naturalWidth) found.push(`no picture: ${image.src}`);
for (const image of document.querySelectorAll(".md-content img[src]"))
  if (!image.alt) found.push(`a picture without words: ${image.src}`);
// Outside the content everything is cut off: what scrolls inside it can be reached.
const scrolls = node => { for (; !node.matches(".md-content"); node = node.parentElement)
  if (getComputedStyle(node).overflowX !== "visible") return true; };
for (const node of document.querySelectorAll(".md-content *")) {
  const box = node.getBoundingClientRect();
  if (box.width && box.right > wide + 1 && !scrolls(node.parentElement))
    found.push(`cut off at the right: ${node.outerHTML.slice(0, 80)}`);
}
const levels = Array.from(document.querySelectorAll(":is(h1, h2, h3, h4)"), h => +h.tagName[1]);
if (levels.filter(level => level === 1).length !== 1) found.push(`headings: ${levels}`);
levels.forEach((level, i) => i && level > levels[i - 1] + 1 && found.push(`headings: ${levels}`));

// Text against what is behind it: the ratio of WCAG, of which 3 can be read.
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const known = new Map();
const parts = colour => {
  if (!known.has(colour)) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    known.set(colour, canvas.getImageData(0, 0, 1, 1).data);
  }
  return known.get(colour);
};
const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
  .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const behind = node => { for (; node; node = node.parentElement) {
  const colour = parts(getComputedStyle(node).backgroundColor);
  if (colour[3] > 200) return colour;
} return [255, 255, 255]; };
const faint = new Set();
const worded = ":is(p, li, td, th, code, span, a, h1, h2, h3, summary)";
for (const node of document.querySelectorAll(`.md-content ${worded}`)) {
  if (!Array.from(node.childNodes).some(c => c.nodeType === 3 && c.data.trim())) continue;
  if (!node.checkVisibility() || node.matches(".headerlink")) continue;
  const [a, b] = [light(parts(getComputedStyle(node).color)), light(behind(node))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const text = `${node.className} ${node.innerText.slice(0, 30)}`;
  if (ratio < 3) faint.add(`faint (${ratio.toFixed(1)}): ${text}`);
}
return found.concat([...faint].slice(0, 5));
"""


# The addresses that the search shows; it draws itself behind a shadow root.
FOUND = """
const root = Array.from(document.querySelectorAll("*"), each => each.shadowRoot).find(each => each);
return root ? Array.from(root.querySelectorAll("[role=option]"), link => link.href) : [];
"""


def pages(site):
    return sorted(
        str(path.relative_to(site))
        for path in site.rglob("*.html")
        if "assets" not in path.parts and path.name != "404.html"
    )


@pytest.fixture(autouse=True)
def usual_size(browser):
    """Other tests meet the browser as it was."""
    yield
    browser.looks()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=["wide", "narrow"])
def test_every_page_can_be_read(width, dark, site, address, browser):
    browser.looks(dark=dark, width=width, height=900)
    browser.complaints()
    found = {}
    for page in pages(site):
        browser.open(f"{address}/{page}")
        if wrong := browser.script(WRONG) + browser.complaints():
            found[page] = wrong
    assert found == {}


@pytest.mark.parametrize(
    ("planted", "told"),
    [
        ("<p><img src='nothing.png' alt='x'></p>", "no picture"),
        ("<div style='width: 2000px; height: 1px'></div>", "cut off at the right"),
        ("<p style='color: #eee; background: #fff'>words</p>", "faint"),
        ("<h4>too deep</h4>", "headings"),
        ("<h1>another</h1>", "headings"),
    ],
)
def test_what_cannot_be_read_is_told(planted, told, address, browser):
    browser.open(f"{address}/streams.html")
    put = "document.querySelector('.md-content__inner h1').insertAdjacentHTML('afterend', text)"
    browser.script(f"const text = {planted!r}; {put};")
    browser.wait(lambda: told in str(browser.script(WRONG)), f"{planted} is not noticed")


# Blocks of code whose lines are cut off, and heads of tables that have no words.
CUT = """
const cut = Array.from(document.querySelectorAll(".md-content pre > code"))
  .filter(code => code.scrollWidth > code.clientWidth + 1);
const empty = Array.from(document.querySelectorAll(".md-content thead"))
  .filter(head => !head.innerText.trim() && head.getClientRects().length);
return cut.concat(empty).map(node => node.textContent.slice(0, 60));
"""


@pytest.mark.parametrize("page", ["spec/windows", "load-testing", "spark", "coming-from"])
def test_drawings_and_tables_keep_inside_their_borders(page, address, browser):
    browser.looks(width=1300, height=900)
    browser.open(f"{address}/{page}.html")
    assert browser.script(CUT) == []


# Words of a drawing that run out of it, or over the border of a box.
OVER = """
const svg = document.querySelector("svg"), {width, height} = svg.viewBox.baseVal;
const boxes = Array.from(svg.querySelectorAll("rect"), rect => rect.getBBox());
return Array.from(svg.querySelectorAll("text")).filter(text => {
  const {x, y, width: wide, height: high} = text.getBBox();
  if (!wide) return false;
  const over = boxes.some(box => {
    const apart = x > box.x + box.width || x + wide < box.x
      || y > box.y + box.height || y + high < box.y;
    const inside = x >= box.x && x + wide <= box.x + box.width && y >= box.y
      && y + high <= box.y + box.height;
    return !apart && !inside;
  });
  return over || x < 4 || x + wide > width - 4 || y < 0 || y + high > height;
}).map(text => text.textContent);
"""


@pytest.mark.parametrize(
    "path", sorted((DOCS / "assets").glob("*.svg")), ids=lambda path: path.stem
)
def test_words_of_drawings_lie_on_no_border(path, browser):
    browser.looks(width=1300, height=900)
    browser.open(path.as_uri())
    assert browser.script(OVER) == []


def test_an_open_example_and_the_playground_fit_a_narrow_screen(address, browser):
    browser.looks(width=390, height=900)
    browser.open(f"{address}/spec/state.html")
    browser.script("document.querySelector('.example-run').click()")
    opened = (
        "const bench = document.querySelector('.workbench'); return bench && bench.dataset.state"
    )
    browser.wait(lambda: browser.script(opened) == "done", "it does not run", seconds=120)
    assert browser.script(WRONG) == []
    browser.open(f"{address}/playground.html")
    state = "return document.getElementById('wallaroo-playground').dataset.state"
    browser.wait(lambda: browser.script(state) == "done", "it does not settle", seconds=120)
    assert browser.script(WRONG) == []


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("logging", "operating.html#logging-and-printing"),
        ("watermark", "spec/time.html"),
        ("to_sinks", "api/language.html"),
    ],
)
def test_a_reader_searches_and_finds(word, place, address, browser):
    browser.open(f"{address}/index.html")
    browser.wait(
        lambda: browser.script("return !!document.querySelector('.md-search__button')"), "no search"
    )
    browser.script("document.querySelector('.md-search__button').click()")
    browser.wait(
        lambda: browser.script("return !!document.activeElement.shadowRoot"), "it does not open"
    )
    browser.keys(word)
    browser.wait(
        lambda: any(place in link for link in browser.script(FOUND)), f"{word} is not found"
    )
