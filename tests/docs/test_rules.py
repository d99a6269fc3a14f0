"""The register of rules is the specification's headings; each rule says what guards it."""

import re

import pytest
from wallaroo_conformance.judge.law import Law, law
from wallaroo_conformance.judge.rules import RULES, Chapter, Rule
from wallaroo_docs.blocks import SPEC
from wallaroo_docs.guards import COUNTEREXAMPLES, guarded, laws, mutants, page

TEXTS = {path: path.read_text("utf-8") for path in sorted(SPEC.glob("*.md"))}
HEADING = re.compile(r"^## (?P<id>[a-z]+-[0-9]+) · (?P<title>.*?) \{ #(?P=id) \}$", re.MULTILINE)


def stated():
    """Return the rules that the specification states, as its headings have them."""
    for path, text in TEXTS.items():
        chapter = Chapter(path.stem, text.partition("\n")[0].removeprefix("# "))
        for found in HEADING.finditer(text):
            yield Rule(found["id"], found["title"].replace("`", ""), chapter)


def test_the_register_is_the_headings_of_the_specification():
    assert sorted(RULES.values(), key=str) == sorted(stated(), key=str)


def test_the_register_stands_in_the_order_of_the_specification():
    chapters = re.findall(r"^\| \[.*?\]\((.*?)\.md\)", TEXTS[SPEC / "index.md"], re.MULTILINE)
    in_order = sorted(stated(), key=lambda rule: chapters.index(rule.chapter.name))
    assert list(RULES.values()) == in_order


def test_who_refers_to_a_rule_that_there_is_not_is_told():
    with pytest.raises(ValueError, match="state-99"):
        law("state-99/new", "it holds")
    with pytest.raises(ValueError, match="state-99"):
        Law("state-99", "new", "it holds")


def test_every_rule_is_guarded():
    assert [rule for rule, says in laws().items() if not says] == []
    assert [rule for rule, names in mutants().items() if not names] == []


def test_the_page_of_guards_is_up_to_date():
    assert TEXTS[SPEC / "guards.md"] == page()


def test_each_rule_of_the_specification_says_what_guards_it():
    assert [path.name for path, text in TEXTS.items() if guarded(text) != text] == []
    assert "".join(TEXTS.values()).count("<summary>Guarded by") == len(RULES)


def test_every_chapter_opens_with_what_goes_wrong_without_it():
    chapters = {rule.chapter.name for rule in RULES.values()} | {"isolation"}
    for chapter in chapters:
        opening = TEXTS[SPEC / f"{chapter}.md"].partition("\n## ")[0]
        assert re.search(r"^Without (these|this|isolation)\b", opening, re.MULTILINE)
        assert re.search(
            r"^\| \*\*Without the rules.*✗.*\n\| \*\*With them.*✓", opening, re.MULTILINE
        )


def test_every_rule_says_why_it_is_there_before_it_goes_into_detail():
    sections = [part for text in TEXTS.values() for part in text.split("\n## ")[1:]]
    told = {part.partition(" ")[0] for part in sections if "</details>\n\n**Why:** " in part}
    assert [rule for rule in RULES if rule not in told] == []


def test_every_counterexample_is_linked_from_its_rule():
    names = [path.name for path in COUNTEREXAMPLES.glob("*.json")]
    page = TEXTS[SPEC / "guards.md"]
    assert names
    assert [name for name in names if f'href="../counterexamples/{name}"' not in page] == []
