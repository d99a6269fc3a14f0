"""check, graph, route, engines, new: what is done with an application without running it."""

from pathlib import Path

import pytest
from running import wallaroo
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.cli.main import main
from wallaroo.keys import partition_number

EXAMPLES = Path(__file__).parents[3] / "examples"
WORD_COUNT = str(EXAMPLES / "word_count.py")
WORD_COUNT_U64 = str(EXAMPLES / "word_count_u64.py")
LOG_STATUS = str(EXAMPLES / "log_status.py")


ANY_KEY = str(EXAMPLES / "word_count_pipeline.py")
WITHOUT_STATE = str(EXAMPLES / "celsius_kafka.py")


def output(capsys, *arguments, code=0):
    assert main(list(arguments)) == code
    return capsys.readouterr().out


def test_graph_draws_into_a_file_or_stdout(tmp_path, capsys):
    path = tmp_path / "words.svg"
    assert output(capsys, "graph", WORD_COUNT, "--svg", str(path)) == ""
    assert path.read_text(encoding="utf-8") == output(capsys, "graph", WORD_COUNT, "--svg", "-")
    assert main(["graph", WORD_COUNT, "--svg", str(tmp_path / "no" / "such.svg")]) == 2
    assert capsys.readouterr().err.endswith("such.svg: No such file or directory\n")


def test_route_without_a_key_shows_all_that_are_listed(capsys):
    assert len(output(capsys, "route", WORD_COUNT, "--partitions", "5").splitlines()) == 28


def test_route_3_and_5_keys_without_a_place_are_told(capsys):
    text = output(capsys, "route", WORD_COUNT, "a", "word", "--partitions", "5", code=1)
    assert "unknown-key: not one of its 27 keys" in text
    text = output(capsys, "route", WORD_COUNT, "bytes:a", "--partitions", "5", code=1)
    assert "not one of its 27 keys; 'a' is: write key.decode()" in text
    text = output(capsys, "route", WORD_COUNT_U64, "97", "int:97", "--partitions", "5", code=1)
    assert "bad-key: keys are ints" in text
    assert text.splitlines()[2].split()[-2:] == ["97", str(partition_number(97, 5))]


def test_route_6_the_one_entity_has_a_number_too(capsys):
    text = output(capsys, "route", LOG_STATUS, "--partitions", "5")
    assert text.splitlines()[1].endswith(f"its one entity  {partition_number((), 5)}")


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["x"], "x"),
        (["a:b"], "a:b"),
        (["int:-5"], -5),
        (["bytes:ab"], b"ab"),
        (["str:int:5"], "int:5"),
        (["(1, 'a', (b'',))", "--literal"], (1, "a", (b"",))),
    ],
)
def test_route_reads_keys(arguments, key, capsys):
    text = output(capsys, "route", ANY_KEY, *arguments, "--partitions", "7")
    row = f"count word {key!r} {partition_number(key, 7)}"
    assert " ".join(text.splitlines()[1].split()) == row


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["int:five"], "'five' is not a whole number"),
        (["five", "--literal"], "is not a Python literal"),
        (
            ["5.0", "--literal"],
            "bytes, int or a tuple of keys, not float; for a whole number",
        ),
        (["True", "--literal"], "not bool; convert it: int(key) (route-2"),
    ],
)
def test_route_2_what_is_no_key_is_told(arguments, said, capsys):
    assert main(["route", WORD_COUNT, *arguments, "--partitions", "7"]) == 1
    assert said in capsys.readouterr().err


def test_engines_tells_what_each_can_do(capsys):
    lines = output(capsys, "engines").splitlines()
    assert lines[0].split()[:3] == ["engine", "modes", "partitions"]
    [reference] = [line for line in lines if line.startswith("reference")]
    assert "isolated, trusting" in reference


def test_engines_tells_what_is_missing(tmp_path):
    info = tmp_path / "steam-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: steam\nVersion: 1.0\n"
        "Requires-Dist: no-such-boiler>=2; extra == 'steam'\n"
    )
    (info / "entry_points.txt").write_text("[wallaroo.engines]\nsteam = steam_engine:Engine\n")
    done = wallaroo("engines", data="", env={"PYTHONPATH": str(tmp_path), "PATH": ""})
    assert done.returncode == 0
    assert "'steam' cannot be used: not installed: no-such-boiler; " in done.stdout
    assert "try: pip install 'steam[steam]'" in done.stdout


def test_new_overwrites_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_votes.py").write_text("mine")
    assert main(["new", "votes"]) == 1
    assert "test_votes.py is there already, and nothing was written" in capsys.readouterr().err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("my-app", "my_app"),
        ("json", "my_json"),
        ("class", "my_class"),
        ("7up", "my_7up"),
        ("pytest", "my_pytest"),
    ],
)
def test_new_suggests_a_name(name, suggestion, capsys):
    assert main(["new", name]) == 2
    assert capsys.readouterr().err.endswith(f"try: wallaroo new {suggestion}\n")


def test_route_says_what_an_application_without_state_or_without_listed_keys_has(capsys):
    assert main(["route", WITHOUT_STATE, "a", "--partitions", "5"]) == 1
    assert "has no state partitions, so no key has a number" in capsys.readouterr().err
    text = output(capsys, "route", ANY_KEY, "--partitions", "5")
    assert "any key" in text
    assert "give a KEY to see its number" in text


def test_graph_of_an_engine_that_generates_no_source(capsys, monkeypatch):
    monkeypatch.delattr(ReferenceEngine, "compiled_source")
    assert main(["graph", WORD_COUNT, "--compiled"]) == 1
    assert "generates no source to print" in capsys.readouterr().err
