"""What pages run in a browser is what the tests run, and gives what the text says.

Here in CPython, with the functions that a page calls; `test_in_browser.py` does it in a page.
"""

import base64
import importlib
import io
import json
import sys
import zipfile

import pytest
from wallaroo_docs.in_page import answer
from wallaroo_docs.page_examples import DOCS, marked, page_examples

PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("spec/*.md")])
EXAMPLES = [
    pytest.param(example, number, id=f"{path.stem}-{example.name}-{number}")
    for path in PAGES
    for example in page_examples(path)
    for number in range(len(example.runs))
]


def asked(**request):
    return json.loads(answer(json.dumps(request)))


def run(example, number):
    one = example.runs[number]
    return asked(do="run", kind=example.kind, source=one.source, input=one.input)


@pytest.mark.parametrize(("example", "number"), EXAMPLES)
def test_an_example_gives_in_a_page_what_the_text_says(example, number):
    said = run(example, number)
    expected = example.runs[number].expected
    assert {title: said.get(title, "(none)\n") for title in expected} == expected
    assert "error" not in set(said) - set(expected)


@pytest.mark.parametrize(("example", "number"), EXAMPLES[::5])
def test_an_example_becomes_a_project_whose_test_passes(example, number, tmp_path, monkeypatch):
    one = example.runs[number]
    if one.expected.keys() & {"error"}:
        return  # what cannot be built is no project
    made = asked(do="project", name="mine", kind=example.kind, source=one.source, input=one.input)
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(made["zip"]))) as archive:
        archive.extractall(tmp_path)
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {"mine.py", "test_mine.py"}
    monkeypatch.syspath_prepend(tmp_path / "mine")
    for name in ("mine", "test_mine"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    test = importlib.import_module("test_mine")
    for name, function in vars(test).items():
        if name.startswith("test_"):
            function()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_example_that_needs_no_socket_has_its_button(path):
    text = path.read_text("utf-8")
    found = page_examples(path)
    assert marked(text, "page", found).count('class="example-begin"') == len(found)
    if path.parent.name == "spec":
        for title, kind in (("input", "application"), ("refused", "refused")):
            count = sum(len(one.runs) for one in found if one.kind == kind)
            assert text.count(f'```python title="{title}"') == count


def test_what_a_learner_s_page_types_at_the_prompt_has_its_button():
    windows, tutorial = (DOCS / "windows.md", DOCS / "tutorial.md")
    prompts = windows.read_text("utf-8").count("```python\n>>> ")
    assert [one.kind for one in page_examples(windows)] == ["prompt"] * prompts
    assert [one.name for one in page_examples(tutorial)] == ["shout", "word_count", "shop.1"]


def test_what_the_reader_breaks_is_told_with_its_line():
    source = "import wallaroo\n\nnothing.at_all\n"
    said = asked(do="run", kind="code", source=source, input="")
    assert said["where"] == "application, line 3\n"
    assert "NameError" in said["error"]


def test_an_error_in_the_input_is_told_with_its_line():
    said = asked(do="run", kind="application", source="application = 1\n", input="\nrun(1/0)\n")
    assert said == {"error": "ZeroDivisionError: division by zero\n", "where": "input, line 2\n"}


def test_texts_of_one_length_in_one_second_are_each_executed(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    texts = ("print('a')\n", "print('b')\n", "print('c')\n")
    said = [asked(do="run", kind="code", source=text, input="")["printed"] for text in texts]
    assert said == ["a\n", "b\n", "c\n"]
