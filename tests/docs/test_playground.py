"""The playground's steps are the reference engine's, each with what came, what it gave, and state.

Here in CPython, with the functions that the page calls; `test_in_browser.py` uses the page.
"""

import json

import pytest
import wallaroo_reference.engine
from wallaroo_docs.in_page import answer
from wallaroo_docs.page_examples import DOCS, page_examples
from wallaroo_docs.site import beginnings
from wallaroo_docs.stepping import MOST, Recorder
from wallaroo_reference.isolated.findings import FindingsObserver
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.isolated.observer import Observer

BEGINNINGS = {one["name"].partition(":")[0]: one for one in beginnings()}


def asked(**request):
    return json.loads(answer(json.dumps(request)))


def play(name, text=None, change=("", "")):
    one = BEGINNINGS[name]
    source = one["source"].replace(*change)
    return asked(do="play", source=source, input=one["input"] if text is None else text)


def steps(played, *fields):
    return [tuple(step[field] for field in fields) for step in played["steps"]]


@pytest.mark.parametrize("name", BEGINNINGS)
def test_what_it_can_begin_with_works(name):
    played = play(name)
    assert "error" not in played
    assert played["svg"].startswith("<svg")
    sinks = {number for number, name in enumerate(played["names"]) if name.startswith("sink")}
    assert any(step["node"] in sinks and step["gave"] for step in played["steps"])
    assert [step for step in played["steps"] if step["problem"]] == []


def test_a_message_is_followed_from_source_to_sink():
    found = steps(play("votes", "ann\nada\n"), "lineage", "node", "came", "gave")
    assert found[3:6] == [
        ([1], 0, "b'ada'", ["'ada'"]),
        ([1], 1, "'ada'", ["('a', 2)"]),
        ([1], 2, "('a', 2)", ["b'a has 2\\n'"]),
    ]


def test_a_step_shows_its_entity_before_and_after():
    found = steps(play("votes", "ann\nada\n"), "key", "before", "after")
    assert found[1] == ("'a'", "just built: Votes()", "Votes(total=1)")
    assert found[4] == ("'a'", "Votes(total=1)", "Votes(total=2)")


def test_what_a_failed_call_did_to_its_entity_is_gone():
    change = ("return (name[:1]", "1 / (len(name) - 2)\n    return (name[:1]")
    _, step, *_ = [one for one in play("votes", "ann\nab\n", change)["steps"] if one["node"] == 1]
    assert "ZeroDivisionError" in step["problem"]
    assert (step["before"], step["after"]) == ("Votes(total=1)", "Votes(total=1)")
    assert step["gave"] == []


def test_windows_fire_as_time_goes_on():
    found = steps(play("windows"), "what", "before", "after")
    taken = [one for one in found if one[0] == "a window takes the message"]
    assert taken[0][1:] == ("no window is open", "open: 2026-03-02 09:00:00 to 2026-03-02 09:01:00")
    fired = [what for what, *_ in found if what.endswith("fires")]
    assert fired[0] == "the window from 2026-03-02 09:00:00 to 2026-03-02 09:01:00 fires"
    assert "time passes" in [what for what, *_ in found]


def test_two_sources_meet_in_one_state():
    found = steps(play("shop"), "came", "gave")
    assert ("('apple', 3)", ["('sold', 'apple', 3)"]) in found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("> sleep", "line 1 of the input, '> sleep': after > comes a command"),
        ("ann", "Write: deliveries: ann or orders: ann"),
    ],
)
def test_a_line_that_means_nothing_is_told(text, says):
    assert says in " ".join(play("shop", text)["error"].split())


def test_a_mistake_is_told_with_its_line_while_the_picture_is_drawn():
    said = asked(do="draw", source="import wallaroo\n\n\nwallaroo.no_such_thing\n")
    assert said["where"] == "application, line 4\n"
    assert asked(do="draw", source=BEGINNINGS["votes"]["source"])["svg"].startswith("<svg")


def test_a_run_that_is_too_long_is_cut_off():
    played = play("shout", "x\n" * MOST)
    assert len(played["steps"]) == MOST
    assert str(MOST) in played["error"]


RUNS = [
    pytest.param(example.runs[0], id=f"{path.stem}-{example.name}")
    for path in sorted(DOCS.glob("spec/*.md"))
    for example in page_examples(path)[:2]
    if example.kind == "application"
]


def tells_both(name):
    def tell(self, *what):
        getattr(FindingsObserver, name)(self, *what)
        return getattr(self.recorder, name)(*what)

    return tell


TOLD = [name for name, method in vars(Observer).items() if callable(method)]
Both = type("Both", (FindingsObserver,), {name: tells_both(name) for name in TOLD})


@pytest.mark.parametrize("run", RUNS)
def test_writing_down_changes_nothing(run, monkeypatch):
    made = []

    def interpreter(application, **options):
        observer = Both(application, thorough=True)
        observer.recorder = Recorder(application)
        made.append(observer.recorder)
        machine = Interpreter(application, observer=observer, **options)
        observer.recorder.observe(machine)
        return machine

    monkeypatch.setattr(wallaroo_reference.engine, "Interpreter", interpreter)
    said = asked(do="run", kind="application", source=run.source, input=run.input)
    assert {title: said.get(title, "(none)\n") for title in run.expected} == run.expected
    assert made[0].moments()
