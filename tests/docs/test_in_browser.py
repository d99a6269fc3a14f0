"""In a real browser: every example of every page runs where it is read, and gives what it says."""

import base64
import io
import zipfile

import pytest
from wallaroo_docs.page_examples import DOCS, page_examples

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

PAGES = [
    path for path in sorted([*DOCS.glob("*.md"), *DOCS.glob("spec/*.md")]) if page_examples(path)
]
# What stands in an open example, by title, once it has run; a text: it has failed.
SHOWN = """
const bench = document.querySelector(`[data-example="NAME"]`).nextElementSibling;
if (!bench || !bench.dataset.state || bench.dataset.state === "running") return null;
if (bench.dataset.state === "failed") return bench.querySelector("[role=status]").innerText;
return Object.fromEntries(Array.from(bench.querySelectorAll(".workbench-result"),
  each => [each.dataset.title, each.querySelector("code").textContent]));
"""


class Example:
    """An example of the page that is open."""

    def __init__(self, browser, name):
        self.browser = browser
        self.name = name

    def do(self, script):
        """Do something with the open example, as `bench`."""
        mark = f'document.querySelector(`[data-example="{self.name}"]`)'
        return self.browser.script(f"const bench = {mark}.nextElementSibling; {script}")

    def press(self, label):
        text = f"[...bench.querySelectorAll('button')].find(b => b.innerText === '{label}')"
        self.do(f"delete bench.dataset.state; {text}.click()")

    def begin(self):
        self.browser.script(
            f'document.querySelector(`[data-example="{self.name}"] button`).click()'
        )

    def shown(self):
        found = []

        def done():
            found[:] = [self.browser.script(SHOWN.replace("NAME", self.name))]
            return found != [None]

        self.browser.wait(done, f"{self.name} gives nothing", seconds=120)
        assert isinstance(found[0], dict), found[0]
        return found[0]

    def write(self, what, text):
        """Type into an editor, in the place of all that is there."""
        self.do(
            f"bench.querySelector('.workbench-{what} .cm-content').focus();"
            "document.execCommand('selectAll');"
            f"document.execCommand('insertText', false, {text!r});"
        )


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_example_of_a_page_gives_what_the_text_says(path, address, browser):
    browser.open(f"{address}/{path.relative_to(DOCS).with_suffix('.html')}")
    for one in page_examples(path):
        example = Example(browser, one.name)
        browser.wait(lambda example=example: example.do("return true"), f"no {one.name}")
        example.begin()
        for number, run in enumerate(one.runs):
            if number:
                tab = f"bench.querySelectorAll('[role=tab]')[{number}]"
                example.do(f"delete bench.dataset.state; {tab}.click()")
            said = example.shown()
            assert {title: said.get(title, "(none)\n") for title in run.expected} == run.expected
            assert example.do("return bench.querySelector('[role=status]').innerText").startswith(
                "As in the text."
            )


@pytest.fixture
def example(address, browser):
    """The first example of the chapter on state, open."""
    browser.open(f"{address}/spec/state.html")
    one = Example(browser, "state-1.1")
    one.begin()
    one.shown()
    return one


def test_a_changed_example_runs_and_is_reset(example):
    example.write("input", 'run(application, {"amounts": [b"zoe 7"]})')
    example.press("Run")
    assert example.shown()["outputs"] == "b'zoe 7: 7\\n'\n"
    example.press("Reset")
    example.press("Run")
    assert "zoe" not in example.shown()["outputs"]


def test_an_endless_loop_is_stopped_and_python_starts_anew(example):
    example.write("input", "while True: pass")
    example.press("Run")
    example.browser.wait(
        lambda: "Running" in example.do("return bench.querySelector('[role=status]').innerText"),
        "it does not run",
    )
    example.do("[...bench.querySelectorAll('button')].find(b => b.innerText === 'Stop').click()")
    example.browser.wait(
        lambda: "Stopped" in example.do("return bench.querySelector('[role=status]').innerText"),
        "it is not stopped",
    )
    example.press("Reset")
    example.press("Run")
    assert "a 5: 5" in example.shown()["outputs"]


def test_a_link_to_a_changed_example_shows_it_and_waits_for_the_reader(example):
    example.write("input", 'run(application, {"amounts": [b"link 1"]})')
    example.press("Share")
    example.browser.wait(
        lambda: "#example=" in example.browser.script("return location.href"), "no link"
    )
    link = example.browser.script("return location.href")
    example.browser.open("about:blank")
    example.browser.open(link)
    opened = Example(example.browser, "state-1.1")
    example.browser.wait(
        lambda: "has not run" in (opened.do("return bench.innerText || ''") or ""), "not shown"
    )
    assert "link 1" in opened.do("return bench.querySelector('.workbench-input').innerText")
    opened.press("Run")
    assert "link 1: 1" in opened.shown()["outputs"]


def test_an_example_is_downloaded_as_a_project(example):
    example.browser.script(
        "const real = URL.createObjectURL; window.kept = null;"
        "URL.createObjectURL = blob => { const reader = new FileReader();"
        "reader.onload = () => { window.kept = reader.result.split(',')[1]; };"
        "reader.readAsDataURL(blob); return real.call(URL, blob); }"
    )
    example.press("Download")
    example.browser.wait(lambda: example.browser.script("return window.kept"), "no file")
    packed = base64.b64decode(example.browser.script("return window.kept"))
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.namelist() == ["state_1_1/state_1_1.py", "state_1_1/test_state_1_1.py"]


def test_pages_ask_their_own_server_only(example):
    names = example.browser.script(
        "return performance.getEntriesByType('resource').map(e => new URL(e.name).host)"
    )
    assert set(names) == {example.browser.script("return location.host")}
