"""``wallaroo checkpoint``: whose it is, what it holds, what is damaged, new states for old."""

import base64
import json
import pickle
import re
import resource
import shutil
import sys

import pytest
from recorded import VOTES
from running import wallaroo

from wallaroo.cli.main import main
from wallaroo.keys import partition_number
from wallaroo.transport.identity import read_identity
from wallaroo.transport.shadows import structure_of


def run(directory, app, words):
    done = wallaroo("run", app, "--checkpoint", directory, "--stdin", "--stdout", data=words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A checkpoint of a run that has ended in order, and its application."""
    directory = tmp_path_factory.mktemp("made")
    (directory / "letters.py").write_text(VOTES)
    run(directory / "c", directory / "letters.py", "ab\nb\nac\n")
    return directory


@pytest.fixture
def copy(made, tmp_path):
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


def test_it_tells_whose_it_is_and_what_it_holds(made, capsys):
    assert main(["checkpoint", str(made / "c")]) == 0
    out = capsys.readouterr().out
    shown = dict(line.split("  ", 1) for line in out.splitlines())
    shown = {name: text.strip() for name, text in shown.items()}
    assert shown["engine"] == "reference"
    assert shown["application"] == "votes"
    assert shown["position"] == "record 3; the input log holds 0 behind it"
    assert "UTC," in shown["stored"]
    assert shown["sizes"].startswith("state ")
    assert shown["entities of counts"] == "2"
    assert shown["outputs of words/0"] == "3"


def entities(capsys, *arguments):
    code = main(["checkpoint", *map(str, arguments)])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_states_are_shown_as_structure_without_the_applications_code(made, capsys):
    code, (a, b) = entities(capsys, made / "c", "--entities")
    assert code == 0
    assert (a["partition"], a["key"], b["key"]) == ("counts", {"str": "a"}, {"str": "b"})
    assert a["state"][0] == "wallaroo_app_letters.Count"
    assert a["state"][3] == ["dict", [[["str", "count"], ["int", "0x2"]]]]
    assert "wallaroo_app_letters" not in sys.modules


def test_one_partition_or_one_key_can_be_asked_for(made, capsys):
    assert len(entities(capsys, made / "c", "--entities", "counts")[1]) == 2
    assert len(entities(capsys, made / "c", "--entities", "counts", "b")[1]) == 1


def test_where_no_entity_is_as_asked_for_it_says_what_there_is(made, capsys):
    assert main(["checkpoint", str(made / "c"), "--entities", "counts", "int:5"]) == 1
    assert capsys.readouterr().err == (
        f"wallaroo: {made}/c has nothing of 'counts' with this key\n"
    )
    assert main(["checkpoint", str(made / "c"), "--entities", "other"]) == 1
    assert capsys.readouterr().err == (
        f"wallaroo: {made}/c has no entities and no open windows of 'other'; "
        "it has some of 'counts'\n"
    )


def test_verify_says_that_all_is_whole_or_what_is_damaged(copy, capsys):
    assert main(["checkpoint", str(copy / "c"), "--verify"]) == 0
    assert "is whole" in capsys.readouterr().out
    file = copy / "c" / "reference" / "state.db"
    data = file.read_bytes()
    place = data.index(b"wallaroo_app_letters")
    file.write_bytes(data[:place] + b"W" + data[place + 1 :])
    assert main(["checkpoint", str(copy / "c"), "--verify"]) == 1
    said = capsys.readouterr().err
    assert "state.db is damaged: the checksum of blob 0 does not fit" in said
    assert said.count("\n") == 1


def test_what_is_no_checkpoint_is_said_so(tmp_path, capsys):
    assert main(["checkpoint", str(tmp_path)]) == 2
    assert "holds no checkpoint: it has no identity.json" in capsys.readouterr().err
    assert main(["checkpoint", str(tmp_path / "absent")]) == 2


def test_a_file_in_place_of_a_checkpoint_is_refused(made, tmp_path, capsys):
    file = tmp_path / "notes.txt"
    file.write_text("a\n")
    app = str(made / "letters.py")
    for command in (
        ["checkpoint", str(file)],
        ["rerun", str(file), app],
        ["run", app, "--stdin", "--stdout", "--checkpoint", str(file)],
        ["run", app, "--stdin", "--stdout", "--checkpoint", str(file), "--engine", "spark"],
        ["run", app, "--stdin", "--stdout", "--record", str(file)],
    ):
        assert main(command) == 2
        assert f"{file} is a file; a checkpoint or a recording is a dir" in capsys.readouterr().err


MIGRATION = """
class Total:
    def __init__(self, count=0):
        self.total = count

def change(partition, key, state):
    return Total(state.count) if partition == "counts" else state
"""


def test_a_class_that_is_gone_is_migrated(copy, capsys):
    app = copy / "letters.py"
    app.write_text(
        app.read_text()
        .replace("class Count:", "from totals import Total\n\nclass Unused:")
        .replace("(count, Count,", "(count, Total,")
        .replace("state.count", "state.total")
    )
    (copy / "totals.py").write_text(MIGRATION)
    done = wallaroo("run", app, "--checkpoint", copy / "c", "--stdin", "--stdout", data="a\n")
    assert done.returncode == 1
    assert "'counts', key 'a': AttributeError" in done.stderr
    assert "--migrate MODULE:FUNCTION" in done.stderr
    done = migrated(copy, "totals:change")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "2 states and accumulators, 2 of them changed; the new checkpoint is "
    )
    assert run(copy / "c.migrated", app, "az\nbz\n") == "az 3\nbz 2\n"


HIDING = """
class Count:
    def __init__(self):
        self.count = 0
        for name in ("items", "state", "pairs", "arguments", "append", "extend"):
            setattr(self, name, 7)
"""
CHANGES = """
def same(partition, key, state):
    return state

def by_attributes(partition, key, state):
    from letters_of_it import Total
    return Total(sum(vars(state).values()))

def longer(partition, key, state):
    if key == "a":
        state.longest = 2
    return state

def nothing(partition, key, state):
    state.longest = 2

def ends(partition, key, state):
    raise SystemExit(3)
"""


def migrated(directory, named, *more):
    command = ["checkpoint", directory / "c", "--migrate", named, *more]
    return wallaroo(*command, data="", cwd=directory)


@pytest.fixture
def changing(copy):
    """A checkpoint, and an application whose states have an attribute more today."""
    app = copy / "letters.py"
    longer = "self.count = 0\n        self.longest = 0"
    app.write_text(app.read_text().replace("self.count = 0", longer))
    (copy / "new.py").write_text(CHANGES)
    return copy


def test_a_migration_gets_the_applications_class_and_says_how_many_states_changed(changing):
    (changing / "new.py").write_text(CHANGES.replace('if key == "a":', "if True:"))
    done = migrated(changing, "new.py:longer", "--app", "letters.py")
    assert done.stdout.startswith("2 states and accumulators, 2 of them changed; "), done.stderr
    assert run(changing / "c.migrated", changing / "letters.py", "az\n") == "az 3\n"
    shutil.rmtree(changing / "c.migrated")
    (changing / "letters.py").write_text(VOTES)
    done = migrated(changing, "new.py:same", "--app", "letters.py")
    assert done.stdout.startswith("2 states and accumulators, 0 of them changed; "), done.stderr


@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        ("longer", ["--app", "letters.py"], "key 'b' cannot be migrated: TypeError: the function's "
         "result has no 'longest'"),
        ("nothing", ["--app", "letters.py"], "result is a NoneType, and the application builds a "
         "wallaroo_app_letters.Count"),
        ("ends", [], "key 'a' cannot be migrated: SystemExit: 3"),
        ("same", [], "Name the application that has the class with --app"),
    ],
)  # fmt: skip
def test_what_a_migration_returns_is_checked(changing, change, more, said):
    done = migrated(changing, f"new.py:{change}", *more)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(changing.glob("c.*"))


def test_an_object_whose_class_is_gone_has_its_own_attributes_only(tmp_path, capsys):
    app = tmp_path / "letters.py"
    app.write_text(VOTES.replace("class Count:", HIDING + "class Unused:"))
    run(tmp_path / "c", app, "a\na\n")
    (tmp_path / "new.py").write_text(CHANGES)
    (tmp_path / "letters_of_it.py").write_text(MIGRATION)
    done = migrated(tmp_path, "new.py:by_attributes")
    assert done.returncode == 0, done.stderr
    _, (entity,) = entities(capsys, tmp_path / "c.migrated", "--entities")
    assert entity["state"][3] == ["dict", [[["str", "total"], ["int", hex(2 + 6 * 7)]]]]


OWN_CODEC = """
import json
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()

class Count:
    def __init__(self, count=0):
        self.count = count

@wallaroo.state_computation(name="count", state=Count)
def count(message, state):
    state.count += 1
    return f"{message} {state.count}"

@wallaroo.encoder
def encode(message):
    return message + "\\n"

def serialize(value):
    kind, plain = ("count", value.count) if isinstance(value, Count) else ("plain", value)
    return json.dumps([kind, plain]).encode()

def deserialize(data):
    kind, plain = json.loads(data)
    return Count(plain) if kind == "count" else plain

def application_setup(args):
    (source,), (sink,) = (
        wallaroo.tcp_parse_input_addrs(args), wallaroo.tcp_parse_output_addrs(args)
    )
    words = wallaroo.source("words", wallaroo.TCPSourceConfig(*source, decode))
    return wallaroo.build_application(
        "coded", words.to(count).to_sink(wallaroo.TCPSinkConfig(*sink, encode))
    )

def change(partition, key, data):
    return data.replace(b"2", b"40")

def no_bytes(partition, key, data):
    return 40
"""


def test_states_by_the_applications_own_codec_are_migrated_as_bytes(tmp_path, capsys):
    app = tmp_path / "coded.py"
    app.write_text(OWN_CODEC)
    run(tmp_path / "c", app, "a\na\n")
    assert main(["checkpoint", str(tmp_path / "c"), "--migrate", f"{app}:no_bytes"]) == 1
    assert "so the new state must be bytes, not 40" in capsys.readouterr().err
    assert not list(tmp_path.glob("c.*"))
    assert main(["checkpoint", str(tmp_path / "c"), "--migrate", f"{app}:change"]) == 0
    assert run(tmp_path / "c.migrated", app, "a\n") == "a 41\n"


def test_a_state_that_shares_lists_at_every_level_is_shown_in_bytes(monkeypatch):
    monkeypatch.setattr("wallaroo.transport.shadows._MOST_VALUES", 1 << 12)
    state = []
    for _ in range(100):
        state = [state, state]
    data = pickle.dumps(state)
    assert structure_of(data) == ["stored", base64.b64encode(data).decode()]
    assert structure_of(pickle.dumps([[0] * 50] * 50))[0] == "list"


def test_a_run_says_whether_and_where_it_resumes(copy, capsys):
    command = ["run", copy / "letters.py", "--stdin", "--stdout", "--checkpoint"]
    for directory, said in (("c", "resumed at record 3"), ("new", "a new checkpoint, without")):
        done = wallaroo(*command, copy / directory, data="b\n")
        assert done.returncode == 0
        assert f"{copy / directory}: {said}" in done.stderr


@pytest.mark.parametrize("engine", ["reference", "spark"])
def test_resume_wants_a_checkpoint_that_exists(copy, capsys, engine):
    command = ["run", str(copy / "letters.py"), "--engine", engine, "--stdin", "--stdout"]
    mistyped = copy / "d"
    assert main([*command, "--resume", "--checkpoint", str(mistyped)]) == 2
    assert f"{mistyped} holds no checkpoint: it has no identity.json" in capsys.readouterr().err
    assert not mistyped.exists()
    assert main([*command, "--resume"]) == 2
    assert "--resume goes with --checkpoint DIR" in capsys.readouterr().err
    assert run(copy / "c", copy / "letters.py", "b\n").endswith("\n")


def test_a_checkpoint_with_another_number_of_partitions_goes_on(copy, capsys):
    directory, new, app = copy / "c", copy / "new", copy / "letters.py"
    given = ["run", app, "--checkpoint", directory, "--partitions", 4, "--stdin"]
    refused = wallaroo(*given, data="")
    assert refused.returncode == 1
    assert (
        "1, not 4; wallaroo checkpoint DIR --partitions 4 -o NEW writes it anew" in refused.stderr
    )

    _, before = entities(capsys, directory, "--entities")
    assert main(["checkpoint", str(directory), "--partitions", "4", "-o", str(new)]) == 0
    assert capsys.readouterr().out.startswith(
        f"2 states and accumulators; the new checkpoint is {new}"
    )
    _, after = entities(capsys, new, "--entities")
    assert [one["number"] for one in before] == [0, 0]
    assert [one["number"] for one in after] == [partition_number(key, 4) for key in "ab"]
    assert run(new, app, "az\n") == run(directory, app, "az\n") != ""

    assert main(["checkpoint", str(directory), "--partitions", "4", "-o", str(new)]) == 1
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "new"], "--app and -o go with --migrate, --partitions or --to"),
        (["--partitions", "2", "--verify"], "write a new checkpoint, and nothing else"),
        (["--partitions", "0"], "--partitions"),
        (["--to", "nowhere", "--app", "letters.py"], "no engine is called 'nowhere'"),
        (["--to", "spark"], "--to spark needs the application: --app APP"),
    ],
)
def test_what_cannot_be_written_anew_is_refused(copy, capsys, monkeypatch, options, said):
    monkeypatch.chdir(copy)
    try:
        code = main(["checkpoint", str(copy / "c"), *options])
    except SystemExit as ended:
        code = ended.code
    assert code in (1, 2)
    assert said in capsys.readouterr().err
    assert {path.name for path in copy.iterdir()} <= {"__pycache__", "c", "letters.py"}


def test_a_checkpoint_without_its_input_is_not_written_anew(copy, capsys):
    shutil.rmtree(copy / "c" / "input")
    new = copy / "new"
    assert main(["checkpoint", str(copy / "c"), "--partitions", "2", "-o", str(new)]) == 1
    assert "half deleted" in capsys.readouterr().err
    assert not new.exists()


@pytest.mark.parametrize("most", [100, 8192])  # the input log's reserve is as large
def test_a_disk_on_which_a_checkpoint_cannot_be_written_anew_is_told(copy, capsys, most):
    new = copy / "new"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        code = main(["checkpoint", str(copy / "c"), "--partitions", "2", "-o", str(new)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code == 1
    said = capsys.readouterr().err
    assert re.search(r"new\S* cannot be (written|made): ", said)
    assert said.count("\n") == 1
    assert "[(" not in said
    assert {path.name for path in copy.iterdir()} <= {"__pycache__", "c", "letters.py"}


def test_an_engine_goes_on_with_what_another_one_stores(copy):
    new = copy / "new"
    app = ["--app", str(copy / "letters.py"), "-o", str(new)]
    assert main(["checkpoint", str(copy / "c"), "--to", "compiled", *app]) == 0
    assert read_identity(new / "identity.json").engine == "reference"
