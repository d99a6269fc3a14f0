"""Behind an example stands what broken engines print: exactly what they print."""

import re

import pytest
from wallaroo_docs.broken import faults, folded
from wallaroo_docs.page_examples import DOCS, page_examples
from wallaroo_docs.performing import loaded, result_of_input
from wallaroo_docs.show import shown
from wallaroo_mutants.catalogue import mutants

import wallaroo.testing

pytestmark = pytest.mark.xdist_group("site")  # which is built once

MUTANTS = {mutant.name: mutant for mutant in mutants()}
CHAPTERS = sorted(path.stem for path in DOCS.glob("spec/*.md") if page_examples(path))
FOLD = re.compile(
    r'data-example="(?P<name>[^"]+)"(?:(?!data-example).)*?<details class="broken" markdown="1">'
    r"(?P<inside>.*?)</details>",
    re.DOTALL,
)
FAULT = re.compile(
    r"Fault: \*\*(?P<name>[^*]+)\*\* \(in code: [^\n]*?\); "
    r"(?:given input (?P<number>\d+), )?it prints:"
    r"(?P<blocks>.*?)(?=\nFault: |\Z)",
    re.DOTALL,
)
BLOCK = re.compile(r'```text title="(?P<title>[^"]+)"[^\n]*\n(?P<text>.*?)```', re.DOTALL)


def printed_by(mutant, run, titles, monkeypatch):
    """What the mutant prints, when the tests' own `run` is given this engine."""
    monkeypatch.setattr(wallaroo.testing, "load_engine", lambda _: mutant.make())
    module = loaded("application", run.source).module
    how = {"name": "input", "engine": "the mutant", "isolation": "isolated"}
    result, partitions = result_of_input(run.input, module, **how)
    return {title: shown(title, result, partitions=partitions) for title in titles}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_page_says_what_the_broken_engine_prints(chapter, site, monkeypatch):
    text = (site / "spec" / f"{chapter}.md").read_text("utf-8")
    examples = {one.name: one for one in page_examples(DOCS / "spec" / f"{chapter}.md")}
    folds = list(FOLD.finditer(text))
    for fold in folds:
        found = list(FAULT.finditer(fold["inside"]))
        assert found
        for fault in found:
            run = examples[fold["name"]].runs[int(fault["number"] or 1) - 1]
            said = {block["title"]: block["text"] for block in BLOCK.finditer(fault["blocks"])}
            assert said.items() != run.expected.items()
            if "Session(" not in run.input:  # a session goes by steps, which mutants have not
                mutant = MUTANTS[fault["name"]]
                assert printed_by(mutant, run, said, monkeypatch) == said
    page = (site / "spec" / f"{chapter}.html").read_text("utf-8")
    assert page.count('<details class="broken">') == len(folds)


def test_most_rules_that_a_mutant_breaks_show_it(site):
    folds = [
        fold["name"].rpartition(".")[0]
        for chapter in CHAPTERS
        for fold in FOLD.finditer((site / "spec" / f"{chapter}.md").read_text("utf-8"))
    ]
    assert len(folds) > 50
    assert {"state-4", "state-7", "compute-1", "order-1", "window-3"} <= set(folds)


def test_lines_that_differ_are_marked_and_missing_ones_counted(site):
    [first, *_] = [
        one
        for one in page_examples(DOCS / "spec" / "decode-compute.md")
        if one.name == "compute-2.2"
    ]
    assert 'title="outputs" hl_lines="3 4 5 6 7 8 9"' in folded(first)
    assert "4 lines are missing." in folded(first)
    assert '<span class="hll">' in (site / "spec" / "decode-compute.html").read_text("utf-8")


def test_an_engine_that_fails_itself_prints_nothing():
    [example] = [
        one for one in page_examples(DOCS / "spec" / "windows.md") if one.name == "window-6.1"
    ]
    assert "late messages placed in the second oldest" not in {
        fault.mutant.name for fault in faults(example)
    }
