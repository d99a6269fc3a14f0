"""In a real browser: every example of every page runs where it is read, and gives what it says."""

import base64
import io
import re
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


class Playground:
    """The playground, as a person uses it."""

    def __init__(self, browser, url):
        self.browser = browser
        browser.open(url)
        self.settled()

    def do(self, script):
        root = "document.getElementById('wallaroo-playground')"
        return self.browser.script(f"const root = {root}; {script}")

    def settled(self):
        self.browser.wait(
            lambda: self.do("return root.dataset.state") == "done",
            "it does not settle",
            seconds=120,
        )

    def write(self, what, text):
        self.do(
            "root.dataset.state = 'changed';"
            f"root.querySelector('.workbench-{what} .cm-content').focus();"
            "document.execCommand('selectAll');"
            f"document.execCommand('insertText', false, {text!r});"
        )
        self.settled()

    def press(self, title):
        self.do(f"root.querySelector('button[title=\"{title}\"]').click()")

    def told(self, what):
        """What the step that is shown says: `came`, `before`, `after`, `gave`, …"""
        found = f"root.querySelector('dd[data-what=\"{what}\"]')"
        return self.do(f"const dd = {found}; return dd && dd.innerText")

    def block(self, title):
        found = f"root.querySelector('.workbench-result[data-title=\"{title}\"] code')"
        return self.do(f"const code = {found}; return code && code.textContent")


@pytest.fixture
def playground(address, browser):
    return Playground(browser, f"{address}/playground.html")


VOTES = re.search(
    r"```python\n(.*?)```", (DOCS.parent / "README.md").read_text("utf-8"), re.DOTALL
)[1]


def test_the_readme_s_application_is_written_in_the_playground(playground):
    playground.write("source", "import wallaroo\n")
    playground.browser.wait(
        lambda: "no application_setup" in " ".join(playground.do("return root.innerText").split()),
        "it does not say what is missing",
    )
    playground.write("source", VOTES)
    playground.write("input", "ann\nbob\nada")
    assert playground.do("return root.querySelectorAll('svg g.stateful').length") == 1
    playground.press("Last step")
    playground.press("One step back")
    assert playground.told("gave") == "b'a has 2\\n'"
    assert playground.block("sent").splitlines() == [
        f"sink votes  b'{line}\\n'" for line in ("a has 1", "b has 1", "a has 2")
    ]


def test_a_message_is_followed_forwards_and_back(playground):
    playground.write("input", "ann\nada")
    playground.press("First step")
    for _ in range(4):
        playground.press("One step forwards")
    assert (playground.told("before"), playground.told("after")) == (
        "Votes(total=1)",
        "Votes(total=2)",
    )
    marked = "return [...root.querySelectorAll('.playground-now .name')].map(e => e.textContent)"
    assert playground.do(marked) == ["count votes"]
    for _ in range(3):
        playground.press("One step back")
    assert playground.told("after") == "Votes(total=1)"


def test_a_link_to_the_playground_brings_its_text(playground):
    playground.write("input", "zoe")
    playground.press("A link to what stands here")
    playground.browser.wait(
        lambda: "#play=" in playground.browser.script("return location.href"), "no link"
    )
    link = playground.browser.script("return location.href")
    playground.browser.open("about:blank")
    assert "zoe" in Playground(playground.browser, link).do(
        "return root.querySelector('.workbench-input').innerText"
    )


def test_an_endless_loop_in_the_playground_is_stopped(playground):
    playground.do(
        "root.dataset.state = 'changed';"
        "root.querySelector('.workbench-source .cm-content').focus();"
        "document.execCommand('selectAll');"
        "document.execCommand('insertText', false, 'while True: pass');"
    )
    stop = "root.querySelector('button[title=\"End what runs\"]')"
    playground.browser.wait(lambda: playground.do(f"return !{stop}.hidden"), "it cannot be stopped")
    playground.do(f"{stop}.click()")
    playground.browser.wait(
        lambda: playground.do("return root.dataset.state") == "failed", "it is not stopped"
    )
    playground.write("source", VOTES)
    assert playground.do("return root.querySelectorAll('svg g.stateful').length") == 1
