"""Loading applications by file and by module, and what is said when that fails."""

import json
import subprocess
import sys
from textwrap import dedent

import pytest

from wallaroo.errors import (
    ApplicationLoadError,
    ApplicationNotFoundError,
    WallarooParameterError,
)
from wallaroo.loading import load_application, load_module

APPLICATION = """
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload

@wallaroo.encoder
def encode(message):
    return message

def application_setup(args):
    host, port = wallaroo.tcp_parse_input_addrs(args)[0]
    ab = wallaroo.ApplicationBuilder("copy")
    ab.new_pipeline("copy", wallaroo.TCPSourceConfig(host, port, decode))
    for host, port in wallaroo.tcp_parse_output_addrs(args)[:1]:
        ab.to_sink(wallaroo.TCPSinkConfig(host, port, encode))
    return ab.build()
"""
ADDRESSES = ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002"]


def write(path, text=APPLICATION):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _paths_as_before(monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path[:])


def setup_returning(expression):
    return f"import wallaroo\ndef application_setup(args):\n    return {expression}\n"


def test_a_file_named_as_a_standard_module_shadows_nothing(tmp_path):
    loaded = load_module(str(write(tmp_path / "json.py")))
    assert loaded.name.startswith("wallaroo_app_json")
    assert sys.modules["json"] is json
    fresh = "import sys; sys.modules.pop('json', None); import wallaroo.loading as l; "
    fresh += f"l.load_module({str(tmp_path / 'json.py')!r}); sys.modules.pop('json', None); "
    fresh += "import json; assert hasattr(json, 'dumps')"
    subprocess.run([sys.executable, "-c", fresh], check=True, timeout=60)


def test_two_files_of_one_name_are_two_modules(tmp_path):
    one = load_module(str(write(tmp_path / "a" / "same.py")))
    two = load_module(str(write(tmp_path / "b" / "same.py")))
    assert one.name != two.name
    assert load_module(str(tmp_path / "a" / "same.py")).module is one.module


def test_what_a_file_defines_has_the_same_name_in_another_folder(tmp_path):
    script = "import sys, pickle; from wallaroo.loading import load_module; "
    dump = script + "m = load_module(sys.argv[1]).module; open(sys.argv[2], 'wb').write("
    dump += "pickle.dumps(m.Count()))"
    load = script + "m = load_module(sys.argv[1]).module; "
    load += "assert type(pickle.load(open(sys.argv[2], 'rb'))) is m.Count"
    text = APPLICATION + "\nclass Count:\n    pass\n"
    for folder, code in (("a", dump), ("b", load)):
        path = write(tmp_path / folder / "counting.py", text)
        command = [sys.executable, "-c", code, path, tmp_path / "pickle"]
        subprocess.run(command, check=True, timeout=60)


def test_a_file_finds_modules_and_data_beside_it(tmp_path):
    write(tmp_path / "sibling_of_the_symbols.py", "SYMBOLS = 'symbols.txt'")
    write(tmp_path / "symbols.txt", "AAPL")
    path = write(
        tmp_path / "with_neighbours.py",
        """
        from pathlib import Path
        import sibling_of_the_symbols
        text = (Path(__file__).parent / sibling_of_the_symbols.SYMBOLS).read_text()
        """,
    )
    loaded = load_module(str(path))
    assert loaded.module.text == "AAPL"
    assert (loaded.path, loaded.directory) == (path, tmp_path)


def test_a_module_is_found_on_the_current_directory(tmp_path, monkeypatch):
    write(tmp_path / "package_of_applications" / "copy_by_name.py")
    monkeypatch.chdir(tmp_path)
    loaded = load_module("package_of_applications.copy_by_name")
    assert loaded.name == "package_of_applications.copy_by_name"
    assert loaded.directory == tmp_path
    application = load_application("package_of_applications.copy_by_name", ADDRESSES)
    assert application.name == "copy"


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [("[(a, b)]", "[(c, d)]"), ("[(a, _), (b, _)]", "[(c, d)]"), ("a, b, c", "*_, d")],
)
def test_placeholders_are_as_many_as_the_application_unpacks(tmp_path, inputs, outputs):
    lines = APPLICATION.replace(
        "    host, port =",
        f"    {inputs} = wallaroo.tcp_parse_input_addrs(args)\n"
        f"    {outputs} = wallaroo.tcp_parse_output_addrs(args)\n"
        "    host, port =",
    )
    application = load_application(str(write(tmp_path / "unpacks.py", lines)), placeholders=True)
    assert application.sources["copy"].config.address == "127.0.0.1:0"


NAMED = APPLICATION.replace(
    "    host, port =",
    "    (one, _, _), (two, _, _) = wallaroo.tcp_parse_input_addrs(args)\n"
    "    assert {one, two} == {'in1', 'in2'}\n"
    "    args = ['--in', '127.0.0.1:0', *args[2:]]\n"
    "    host, port =",
)


def test_placeholders_have_names_where_the_application_wants_them(tmp_path):
    application = load_application(str(write(tmp_path / "named.py", NAMED)), placeholders=True)
    assert application.sources["copy"].config.address == "127.0.0.1:0"


@pytest.mark.parametrize("placeholders", [False, True])
def test_an_address_without_the_name_that_is_wanted_is_said(tmp_path, placeholders):
    path = str(write(tmp_path / "unnamed.py", NAMED))
    given = ["--in", "127.0.0.1:7010,127.0.0.1:7011", "--out", "127.0.0.1:7002"]
    with pytest.raises(ApplicationLoadError, match=r"write: --in NAME@HOST:PORT$"):
        load_application(path, given, placeholders=placeholders)


def test_placeholders_leave_given_addresses_alone(tmp_path):
    path = str(write(tmp_path / "given.py"))
    application = load_application(path, ["-i", "127.0.0.1:7010"], placeholders=True)
    assert application.sources["copy"].config.address == "127.0.0.1:7010"
    assert application.sinks["copy", 0].config.address == "127.0.0.1:0"
    application = load_application(path, ["--out=127.0.0.1:7002"], placeholders=True)
    assert application.sinks["copy", 0].config.address == "127.0.0.1:7002"


def test_without_placeholders_the_missing_option_is_named(tmp_path):
    with pytest.raises(WallarooParameterError, match="wants --in") as caught:
        load_application(str(write(tmp_path / "missing.py")))
    assert any("line 13, in application_setup" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1", "has no application_setup"),
        (
            setup_returning("None"),
            "returned None. Does it return build_application(…), or ab.build()?",
        ),
        (setup_returning("wallaroo.ApplicationBuilder('a')"), "Write: return ab.build()"),
        (setup_returning("7"), "returned a int"),
        (setup_returning("1 / 0"), "line 3, in application_setup: ZeroDivisionError: division"),
        ("x = 1\n1 / 0", "broken.py, line 2: ZeroDivisionError"),
        ("x = = 1", "broken.py, line 1: SyntaxError: invalid syntax"),
        ("import wallaroo.experimental", "there is no wallaroo.experimental here: connectors"),
        ("import no_such_module_anywhere", "line 1: ModuleNotFoundError: No module named"),
        ("import sys\nsys.exit('no')", "line 2: it ended with exit code 'no'"),
        ("class E(Exception):\n def __str__(s): 1/0\nraise E", "E: (its text cannot be shown)"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, text, expected):
    with pytest.raises(ApplicationLoadError) as caught:
        load_application(str(write(tmp_path / "broken.py", text)))
    assert expected in str(caught.value)


def test_a_genuine_error_after_unpacking_addresses_is_the_one_shown(tmp_path):
    lines = APPLICATION.replace(
        "    host, port =",
        "    one, two = wallaroo.tcp_parse_input_addrs(args)\n    int('x')\n    host, port =",
    )
    with pytest.raises(ApplicationLoadError, match="ValueError: invalid literal"):
        load_application(str(write(tmp_path / "both.py", lines)), placeholders=True)


def test_a_file_that_failed_is_tried_again(tmp_path):
    path = write(tmp_path / "mended.py", "1 / 0")
    with pytest.raises(ApplicationLoadError):
        load_module(str(path))
    write(path, APPLICATION + "mended = True  # of another size, so that no cache is taken\n")
    assert load_module(str(path)).module.mended


@pytest.mark.parametrize(
    ("app", "expected"),
    [
        ("no/such/file.py", "there is no file no/such/file.py"),
        ("no_such_module_anywhere", "there is no module 'no_such_module_anywhere'"),
        ("no_such_package.module", "there is no module 'no_such_package.module'"),
        ("what is this", "neither a file nor a module"),
        ("./", "is a directory"),
        ("colorsys", "has no application_setup"),
    ],
)
def test_what_cannot_be_found_is_said(app, expected):
    with pytest.raises(ApplicationLoadError) as caught:
        load_application(app)
    assert expected in str(caught.value)


def test_a_file_with_another_ending_and_a_directory_are_told_as_such(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("votes.txt", "votes_app", "my-votes"):
        write(tmp_path / name)
        with pytest.raises(ApplicationNotFoundError, match=rf"application, write \./{name}$"):
            load_application(name, ADDRESSES)
        assert load_application(f"./{name}", ADDRESSES).name == "copy"
    for name in ("of_applications", "of-applications"):
        (tmp_path / name).mkdir()
        with pytest.raises(ApplicationNotFoundError, match=rf"^{name} is a directory; write"):
            load_application(name, ADDRESSES)


def test_a_standard_module_is_no_application_and_the_file_of_its_name_is_pointed_to(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ApplicationLoadError, match=r"build\(\)$"):
        load_application("queue", [])
    write(tmp_path / "queue.py")
    with pytest.raises(ApplicationLoadError, match=r"in this directory write: queue\.py$"):
        load_application("queue", [])
