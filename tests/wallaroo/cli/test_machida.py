"""machida: the command lines of the published tutorials, as they stand."""

import os
import re
import shutil
import signal
import socket
import sys
import urllib.request
from pathlib import Path

import pytest
from running import Run

from wallaroo.cli.machida import main

EXAMPLES = Path(__file__).parents[3] / "examples"

# Long options, as in the later tutorials, and short ones, as in the first. No fixed ports here.
TUTORIALS = {
    "long": "--metrics 127.0.0.1:0 --control 127.0.0.1:6000 --data 127.0.0.1:6001 "
    "--name worker-name --external 127.0.0.1:5050 --cluster-initializer "
    "--ponythreads=1 --ponynoblock",
    "short": "-m 127.0.0.1:0 -c 127.0.0.1:6000 -d 127.0.0.1:6001 -n worker-name -t "
    "--ponythreads 1 --ponypinasio",
}
MACHIDA = [sys.executable, "-m", "wallaroo.cli.machida", "--application-module"]


@pytest.mark.parametrize(
    ("form", "found_on"), [("long", "current directory"), ("short", "PYTHONPATH")]
)
def test_a_tutorials_command_line_works(tmp_path, form, found_on):
    shutil.copy(EXAMPLES / "word_count.py", tmp_path)
    here = found_on == "current directory"
    run = Run(
        "word_count",
        *TUTORIALS[form].split(),
        command=MACHIDA,
        cwd=tmp_path if here else "/",
        env=os.environ | ({} if here else {"PYTHONPATH": str(tmp_path)}),
    )
    try:
        head, _, names = run.errors.splitlines()[0].partition("no effect here: ")
        assert head == "machida: accepted, "
        meaningless = {"--control", "--data", "--name", "--cluster-initializer", "--ponythreads"}
        assert set(names.split(", ")) >= meaningless
        page = re.search(r"metrics at (http://127\.0\.0\.1:\d+)/", run.errors)[1]
        with urllib.request.urlopen(f"{page}/health", timeout=30) as health:
            assert health.status == 200
        run.send("one two", "One")
        run.process.send_signal(signal.SIGTERM)
        code, _, received = run.wait()
        assert (code, received) == (0, b"one => 1\ntwo => 1\none => 2\n")
    finally:
        run.end()


@pytest.fixture
def _telling(tmp_path, monkeypatch):
    """The module of an application that tells its arguments, in the current directory."""
    (tmp_path / "machida_tells_its_arguments.py").write_text(
        "def application_setup(args):\n    raise ValueError(args)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])


@pytest.mark.usefixtures("_telling")
def test_what_it_does_not_know_goes_to_the_application(capsys):
    arguments = "--application-module machida_tells_its_arguments --in a:1 -c b:2"
    arguments += " --symbols file.txt --stdin --ponynoblock -z -- -x --join"
    assert main(arguments.split()) == 1
    ignored, error = capsys.readouterr().err.splitlines()
    assert ignored == "machida: accepted, no effect here: --control, --ponynoblock"
    passed = ["--in", "a:1", "--symbols", "file.txt", "--stdin", "-z", "-x", "--join"]
    assert f"ValueError: {passed}" in error


# Each with a value where it takes one; "-s" and its like are read either way.
# fmt: off
PUBLISHED = [
    "--control a:1", "-c a:1", "--data a:1", "-d a:1",
    "--my-control a:1", "--my-data a:1", "--external a:1", "-e a:1", "--name one", "-n one",
    "--worker-count 1", "-w 1", "--phone-home a:1", "-p a:1", "--resilience-dir /x", "-r /x",
    "--event-log-file-size 5", "-l 5", "--file x", "-f x", "--token x", "-k x",
    "--time-between-checkpoints 5", "--log-rotation", "--run-with-resilience",
    "--cluster-initializer", "-t", "--resilience-disable-io-journal",
    "--resilience-dos-server a:1", "--resilience-unheard-of=5", "--spike-drop", "--spike-seed 5",
    "--spike-prob=0.5", "--stop-world", "--stop-world-pause 5", "-s", "-s 5", "-u", "-u 5", "-x",
    "-x 5", "-y", "-y 5", "--ponythreads 1", "--ponythreads=1", "--ponypinasio", "--ponynoblock",
    "--ponyminthreads 1", "--ponygcfactor=2",
]
# fmt: on


@pytest.mark.usefixtures("_telling")
@pytest.mark.parametrize("option", PUBLISHED)
def test_every_published_option_is_taken_and_named_and_none_reaches_the_application(capsys, option):
    arguments = f"--application-module machida_tells_its_arguments {option} --in a:1 -t -o b:1"
    assert main(arguments.split()) == 1
    ignored, *hints, error = capsys.readouterr().err.splitlines()
    assert ignored.startswith("machida: accepted, no effect here: ")
    assert "ValueError: ['--in', 'a:1', '-o', 'b:1']" in error
    long = option.partition("=")[0].split()[0]
    if long.startswith("--") or long in ("-s", "-u", "-x", "-y"):
        assert long in ignored.replace(",", "").split()
    assert bool(hints) is ("resilience" in ignored or "checkpoint" in ignored)


@pytest.mark.parametrize(
    "worker", ["--join a:1 -t", "-j a:1", "--name worker2", "-n worker2 -w 2", "--worker-count 2"]
)
def test_a_second_workers_command_line_says_what_to_do(capsys, worker):
    assert main(f"--application-module shop --in a:1 --out b:1 {worker}".split()) == 2
    error = capsys.readouterr().err
    assert "this starts one more worker of a cluster" in error
    assert "start the first worker only, the one with --cluster-initializer" in error
    assert "wallaroo run shop --engine spark" in error


def test_the_first_of_several_workers_does_the_work_of_all(capsys):
    assert main(["--application-module", "no_such_module_anywhere", "-w", "2", "-t"]) == 2
    _, hint, _ = capsys.readouterr().err.splitlines()
    assert hint.startswith("machida: one process does the work of all workers here")


def test_the_module_must_be_named(capsys):
    assert main([]) == 2
    assert "machida: the following arguments are required: --application-module" in (
        capsys.readouterr().err
    )


def test_a_module_that_is_not_there_is_told(capsys):
    assert main(["--application-module", "no_such_module_anywhere"]) == 2
    assert "there is no module 'no_such_module_anywhere' in the current directory or on" in (
        capsys.readouterr().err
    )


@pytest.mark.usefixtures("_telling")
@pytest.mark.parametrize("address", ["127.0.0.1:{taken}", "no_such_host.invalid:1", "nonsense"])
def test_without_a_place_for_the_live_page_the_application_runs_all_the_same(capsys, address):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = address.format(taken=taken.getsockname()[1])
        assert main(["--application-module", "machida_tells_its_arguments", "-m", address]) == 1
    said, error = capsys.readouterr().err.splitlines()
    assert said.startswith("machida: there is no live page: ")
    assert "ValueError: " in error
