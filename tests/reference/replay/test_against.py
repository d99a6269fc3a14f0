"""``wallaroo rerun --against``: where two versions of an application first differ."""

import contextlib
import io

import pytest
from recorded import VOTES, called, voted
from wallaroo_reference.cli import against

from wallaroo.cli.main import main


@pytest.fixture
def here(monkeypatch):
    """Run both versions in this process, to save seconds; their files must have two names."""

    def printed(command):
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(out):
            main(command[3:])
        out.flush()
        return out.buffer.getvalue()

    def start(command):
        return contextlib.nullcontext(printed(command).splitlines(keepends=True))

    monkeypatch.setattr(against, "_started", start)
    monkeypatch.setattr(against, "_printed", lambda command: printed(command).decode())


def differing(
    tmp_path, capfd, *changes, lines=("ann", "bob", "ann bob", "bob"), name="other.py", more=()
):
    """Return the exit code, and what is told of the application and a changed one."""
    made, app = voted(tmp_path, *lines)
    other = tmp_path / "changed" / name
    other.parent.mkdir()
    text = VOTES
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    other.write_text(text)
    code, out, err = called(capfd, "rerun", made, app, "--against", other, *more)
    return code, out.replace(str(tmp_path), "DIR"), err


def test_versions_that_do_the_same_agree_whatever_their_texts_of_errors(here, tmp_path, capfd):
    code, out, err = differing(
        tmp_path, capfd, ("a bad word", "no"), lines=["ann", "bad", "bob bad"]
    )
    assert (code, out) == (0, "DIR/votes.py and DIR/changed/other.py do the same\n"), err


def test_classes_of_two_files_are_not_different_for_their_modules_names(here, tmp_path, capfd):
    made, app = voted(tmp_path, "ann")
    (tmp_path / "renamed.py").write_text(VOTES)
    code, out, _ = called(capfd, "rerun", made, app, "--against", tmp_path / "renamed.py")
    assert code == 0
    assert "do the same" in out


def test_the_first_output_that_differs_is_told_with_both_ways(tmp_path, capfd):
    """In processes of their own, so both may have one name."""
    code, out, _ = differing(
        tmp_path,
        capfd,
        ("state.count += 1", "state.count += 1 + (state.count == 1)"),
        name="votes.py",
    )
    out = out.replace("changed/votes.py", "changed/other.py")
    assert code == 1
    assert out.startswith(
        "DIR/votes.py and DIR/changed/other.py first differ at record 2:\n"
        "  DIR/votes.py: output 2 of words/0 is b'ann 2'\n"
        "  DIR/changed/other.py: output 2 of words/0 is b'ann 3'\n"
    )
    ours, _, theirs = out.partition("\nDIR/changed/other.py:\n")  # as docs/replay.md shows them
    assert "counts['a'] is Count(count=2)" in ours
    assert "counts['a'] is Count(count=3)" in theirs


def test_where_one_gives_nothing_the_record_is_told(here, tmp_path, capfd):
    code, out, _ = differing(
        tmp_path, capfd, ("return text.split()", 'return None if text == "bob" else text.split()')
    )
    assert code == 1
    assert "  DIR/changed/other.py: gives nothing\n" in out
    told = out.partition("\nDIR/changed/other.py:\n")[2]
    assert "(1,) computation split\n" in told
    assert "gave nothing" in told


def test_a_dead_letter_differs_from_an_output(here, tmp_path, capfd):
    code, out, _ = differing(tmp_path, capfd, ('word == "bad"', 'word == "bob"'))
    assert code == 1
    assert "first differ at record 1:" in out
    assert "  DIR/votes.py: output 1 of words/0 is b'bob 1'\n" in out
    assert "  DIR/changed/other.py: dead letter 0, raised at 'count'\n" in out
    assert "    dead letter: raised: ValueError: a bad word\n" in out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "state.count += 1",
            "state.count += 1; state.last = word",
            "  DIR/changed/other.py: counts['a'] is Count(count=2, last='ann')\n",
        ),
        ("word[0]", '"x" + word[0]', "  DIR/changed/other.py: there is no such entity\n"),
    ],
)
def test_entities_differ_where_outputs_do_not(here, tmp_path, capfd, old, new, said):
    code, out, _ = differing(tmp_path, capfd, (old, new))
    assert code == 1
    assert "give the same outputs and dead letters, and:\n" in out
    assert "  DIR/votes.py: counts['a'] is Count(count=2)\n" in out
    assert said in out
    if "state.last" in new:
        assert "  The entity is first different after record 0.\n" in out
        assert "counts['a']: 1 visit\n" in out  # and no later one
    else:
        assert "counts['a']: 2 visits\n" in out


def test_a_version_that_cannot_be_run_is_no_difference(tmp_path, capfd):
    made, app = voted(tmp_path, "ann")
    (tmp_path / "broken.py").write_text("raise ValueError('broken')")
    code, out, err = called(capfd, "rerun", made, app, "--against", tmp_path / "broken.py")
    assert (code, out) == (1, "")
    assert "ValueError: broken" in err
    assert "broken.py could not be run" in err


COMPARABLE = """
def lower(output):
    return output.lower()

def no_bob(output):
    return None if b"b" in output.lower() else output

def unusable(output):
    return [output]
"""


TITLED = ('f"{word} {', 'f"{word.title()} {')
X_FIRST = [
    ("text.split()", "['x', *text.split()]"),
    ("word[0]", "'y' if word == 'x' else word[0]"),
]
NO_BOB = """\
record 1:
  ours: nothing
  theirs: dead letter 0, raised at 'count'
record 2:
  ours: nothing
  theirs: dead letter 1, raised at 'count'
at the end:
  ours: counts['b'] is Count(count=2)
  theirs: counts['b'] is Count(count=0)
3 differences, at 2 records
"""
MORE = """\
record 0:
  ours: nothing
  theirs: output 0 of words/0 is b'x 1'
record 1:
  ours: nothing
  theirs: output 2 of words/0 is b'x 2'
record 2:
  ours: nothing
  theirs: output 4 of words/0 is b'x 3'
at the end:
  ours: nothing
  theirs: counts['y'] is Count(count=3)
4 differences, at 3 records
"""


@pytest.mark.parametrize(
    ("changes", "function", "said"),
    [
        pytest.param([TITLED], "lower", "ours and theirs do the same\n", id="made alike"),
        pytest.param([('"bad"', '"bob"')], "no_bob", NO_BOB, id="some not compared"),
        pytest.param(X_FIRST, None, MORE, id="more outputs"),
    ],
)
def test_all_differences_are_told(here, tmp_path, capfd, changes, function, said):
    options = ["--all"]
    if function is not None:
        (tmp_path / "alike.py").write_text(COMPARABLE)
        options += ["--comparable", f"{tmp_path}/alike.py:{function}"]
    lines = ("ann", "bob", "ann bob")
    code, out, err = differing(tmp_path, capfd, *changes, lines=lines, more=options)
    out = out.replace("DIR/votes.py", "ours").replace("DIR/changed/other.py", "theirs")
    assert out == said, err
    assert code == (0 if "do the same" in said else 1)


def test_what_the_users_function_raises_is_told_with_the_output(here, tmp_path, capfd):
    (tmp_path / "unusable.py").write_text(COMPARABLE)
    options = ["--comparable", f"{tmp_path}/unusable.py:unusable"]
    code, _, err = differing(tmp_path, capfd, ("{word} {", "{word}: {"), more=options)
    assert code == 1
    assert "--comparable raised TypeError: unhashable type: 'list', for output 0 of words/0" in err
