"""Reports: whole or refused, as JSON, JUnit XML, Markdown, a page, a matrix; traces as text."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from wallaroo_conformance.cases.case import ConformanceCase, Input
from wallaroo_conformance.judge.law import Law
from wallaroo_conformance.judge.laws import LAWS
from wallaroo_conformance.judge.oracle import reference_oracle
from wallaroo_conformance.judge.results import (
    BROKEN,
    INCOMPLETE,
    Report,
    reports_to_json,
    worst,
)
from wallaroo_conformance.judge.rules import RULES
from wallaroo_conformance.live import LIVE_LAWS
from wallaroo_conformance.report.pages import (
    badge,
    chapters_for,
    html,
    markdown,
    rendered,
    reports_junit,
    write_matrix,
)
from wallaroo_conformance.report.showing import (
    cases_text,
    trace_lines,
    traces_side_by_side,
)

pytestmark = pytest.mark.xdist_group("checks")  # they share reports, and what cases mean


def test_the_footers_of_a_report_say_what_must_be_there(kept: Report, broken: Report) -> None:
    form = json.loads(reports_to_json([kept, broken]))
    assert [report["engine"] for report in form["reports"]] == ["reference", "no state"]
    assert form["footer"] == {"reports": 2, "exit": BROKEN}
    for report in form["reports"]:
        footer = report["footer"]
        counts = [footer["laws"], footer["failures"]]
        assert counts == [len(report["laws"]), len(report["failures"])]


def test_no_report_is_no_pass() -> None:
    assert worst([]) == INCOMPLETE
    assert Report("none", "dev", 0, 0, 0, 0.0, ()).exit_code == INCOMPLETE


def test_junit_counts_what_is_broken(broken: Report) -> None:
    suite = ET.fromstring(reports_junit([broken])).find("testsuite")
    assert suite is not None
    told = {law.rule + law.name for law in broken.laws if law.status == "broken"}
    assert suite.get("failures") == str(len(told))
    assert "wallaroo replay" in "".join(suite.itertext())


def test_junit_names_tests_by_rule_and_tells_them_apart(kept: Report) -> None:
    unmet = Law("dead-4", "stop", "a law that nothing met").result("not exercised", 0, note="why")
    suite = ET.fromstring(reports_junit([replace(kept, laws=(*kept.laws, unmet))])).find(
        "testsuite"
    )
    assert suite is not None
    cases = suite.findall("testcase")
    names = [case.get("name", "") for case in cases]
    assert len(set(names)) == len(names) == int(suite.get("tests", ""))
    assert "dead-4: the run ends at the first dead letter in order" in "\n".join(names)
    ids = [name.partition(":")[0] for name in names]
    assert ids == sorted(ids, key=list(RULES).index)  # in the specification's order
    skipped = cases[names.index("dead-4: a law that nothing met")].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "not exercised: why"
    assert suite.get("failures") == "0"
    assert suite.findtext("system-out").startswith(cases_text(kept))


def test_every_law_can_be_told_from_the_others_of_its_rule() -> None:
    stated = [(law.rule, law.says) for law in LAWS]
    stated += [(law.rule, law.says) for law in LIVE_LAWS.values()]
    assert len(set(stated)) == len(stated)


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ((100, 100, 0, 100, 100), "100 cases asked for; 100 runs in all"),
        (
            (100, 107, 7, 107, 107),
            "100 cases asked for; 7 stored ones before them; 107 runs in all",
        ),
        (
            (100, 32, 0, 32, 40),
            "100 cases asked for, 32 of them when the search ended; 8 more runs, of cases that it "
            "refused, or to reduce failures; 40 runs in all",
        ),
        (
            (None, 50, 0, 48, 48),
            "50 cases in the time given; 2 not run, because they need what the engine does not "
            "claim; 48 runs in all",
        ),
    ],
)
def test_numbers_of_cases_are_explained(
    kept: Report, numbers: tuple[int | None, int, int, int, int], says: str
) -> None:
    asked, generated, stored, supported, cases = numbers
    report = replace(
        kept, asked=asked, generated=generated, stored=stored, supported=supported, cases=cases
    )
    assert cases_text(report) == says
    assert says in html([report])


def test_the_page_links_to_a_published_specification_or_to_none(kept: Report) -> None:
    published = html([kept], spec=chapters_for(Path("report.html"), "https://here.invalid/spec/"))
    assert 'href="https://here.invalid/spec/sinks.html#dead-4"' in published
    assert "href" not in html([kept], spec=None)


def test_the_page_stands_alone_and_escapes(kept: Report, broken: Report) -> None:
    nasty = replace(broken, problems=("<script>alert(1)</script>",))
    page = html([kept, nasty])
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http" not in page
    assert page.count("<details") > 30


def test_a_report_names_the_versions_of_what_took_part(kept: Report) -> None:
    assert kept.versions["wallaroo"] == version("wallaroo-streams")


def test_markdown_tells_what_is_broken_and_folds_the_rest_away(
    kept: Report, broken: Report
) -> None:
    text = markdown([kept, broken])
    assert "| reference | ✓ kept |" in text
    assert "| no state | ✗ broken |" in text
    assert f"<summary>no state: {broken.failures[0].rule}: " in text
    assert "wallaroo replay" in text
    assert text.count("<details>") == text.count("</details>") == len(broken.failures) + 2
    problem = replace(kept, problems=("it <died> | at once",))
    assert "| reference | ? incomplete |" in markdown([problem])
    assert "it &lt;died&gt; \\| at once" in markdown([problem])


def test_markdown_shows_a_text_as_it_stands_whatever_is_in_it() -> None:
    def folded(title: str, text: str) -> str:
        look = {"counts": "", "findings": [], "letters": [(title, text)], "missed": ""}
        return rendered("application.md", app="app", **look)

    shown = folded("a <b>", "```\n</details>\ud800")
    assert "<summary>a &lt;b&gt;</summary>" in shown
    assert "\n````text\n```\n</details>?\n````\n" in shown
    assert len(folded("long", "x" * 10**6)) < 21_000


def test_the_matrix_has_rules_down_and_engines_across(
    kept: Report, broken: Report, tmp_path: Path
) -> None:
    written = {path.name for path in write_matrix([kept, broken], tmp_path)}
    assert written == {"index.html", "matrix.json", "reference.svg", "no-state.svg"}
    form = json.loads((tmp_path / "matrix.json").read_text())
    assert [report["engine"] for report in form["reports"]] == ["reference", "no state"]
    assert all(report["date"] for report in form["reports"])
    right, wrong = form["reports"]
    assert set(right["rules"].values()) == {"kept"}
    assert wrong["failures"]
    page = (tmp_path / "index.html").read_text()
    assert "The case as JSON, and as Python" in page


def test_a_badge_is_a_picture_that_says_how_many_rules_are_kept(broken: Report) -> None:
    picture = ET.fromstring(badge(broken))
    said = list(picture.itertext())
    assert "conformance" in said
    assert any("rules" in text for text in said)


@pytest.mark.parametrize("altered", [{"pipeline": "another"}, {"source": "another"}])
def test_dead_letters_that_differ_in_what_is_not_shown_otherwise_are_shown_whole(altered) -> None:
    case = ConformanceCase(inputs=(Input(0, b"\xff\xfe"),))
    trace = reference_oracle().ask([case])[0].trace
    [letter] = trace.dead_letters
    other = replace(trace, dead_letters=(replace(letter, **altered),))
    assert trace_lines(trace) == trace_lines(other)
    rows = traces_side_by_side(trace, other)
    [(left, right)] = [(left, right) for mark, left, right in rows if mark == "≠"]
    assert left.startswith("dead_letters: ")
    assert left != right
    assert {mark for mark, _, _ in traces_side_by_side(trace, trace)} == {" "}
