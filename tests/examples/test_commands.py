"""The commands at the top of each example do what they say, typed as they stand there.

Only what belongs to the machine is replaced: fixed ports by ports the system chooses, ``/tmp`` by
the test's own folder. Commands that go on until Ctrl-C run in the background, as in terminals of
their own.
"""

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from receiving import eventually

ROOT = Path(__file__).parents[2]
SECONDS = 120.0


def commands_of(name):
    """Return the commands in an example's docstring."""
    text = ast.get_docstring(ast.parse((ROOT / "examples" / f"{name}.py").read_text()))
    return [line.strip() for line in text.splitlines() if re.match(r" {4}(wallaroo|python) ", line)]


class Terminals:
    """Runs commands in a shell, at the repository's root."""

    def __init__(self, folder):
        self.folder = folder
        self.ports = {}  # as the docstring has it -> as the system chose it
        self.running = []  # (process, file of its output, file of what it says)
        scripts = Path(sys.executable).parent
        self.environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}

    def type(self, command):
        """Run a command and return its output; a server's goes on, its output comes at the end."""
        listening = re.search(r"--(?:listen|in) (\S+)", command)
        wanted = re.findall(r":(\d+)", listening[1]) if listening else []
        for port in wanted:
            command = re.sub(rf"(--(?:listen|in) \S*):{port}\b", r"\1:0", command)
        for port, chosen in self.ports.items():
            command = command.replace(f":{port}", f":{chosen}")
        command = command.replace("/tmp/", f"{self.folder}/")
        if not wanted:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command],
                cwd=ROOT,
                env=self.environment,
                capture_output=True,
                timeout=SECONDS,
            )
            assert done.returncode == 0, done.stderr.decode()
            return done.stdout
        number = len(self.running)
        output, says = self.folder / f"{number}.output", self.folder / f"{number}.says"
        with output.open("wb") as stdout, says.open("wb") as stderr:
            process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", command],
                cwd=ROOT,
                env=self.environment,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
            )
        self.running.append((process, output, says))
        eventually(
            lambda: says.read_text().count("listening on") == len(wanted), SECONDS, says.read_text
        )
        chosen = re.findall(r"listening on \S+:(\d+)", says.read_text())
        self.ports.update(zip(wanted, chosen, strict=True))
        return b""

    def output(self):
        """Return what the first server, the receiver, has printed so far."""
        return self.running[0][1].read_bytes()

    def said(self, number):
        """Return what a server has written to standard error so far."""
        return self.running[number][2].read_text()

    def interrupt(self):
        """Press Ctrl-C in every terminal, the last one first; all must end well."""
        for process, _, says in reversed(self.running):
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(SECONDS) in (0, 130), says.read_text()

    def close(self):
        for process, _, _ in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture
def terminals(tmp_path):
    terminals = Terminals(tmp_path)
    yield terminals
    terminals.close()


FORMS = [
    *("word_count", "word_count_classes", "word_count_u64", "word_count_pipeline"),
    *("market_spread", "market_spread_pipeline"),
]


@pytest.mark.parametrize("form", FORMS)
def test_other_forms_of_an_example_are_started_by_the_same_commands(form):
    name = re.sub("_(classes|u64|pipeline)$", "", form)
    ours = [re.sub(rf"\b{form}\b", name, command) for command in commands_of(form)]
    assert ours == commands_of(name) != []
    assert (ROOT / "examples" / f"{form}.py").exists()


def test_word_count(terminals):
    pipe, *over_tcp = commands_of("word_count")
    words = re.findall(r"[a-z0-9]\S*", (ROOT / "LICENSE").read_text().lower())
    piped = terminals.type(pipe)
    assert piped.startswith(b"apache => 1\nlicense => 1\nversion => 1\n2.0 => 1\njanuary => 1\n")
    assert abs(piped.count(b"\n") - len(words)) < len(words) // 100
    for command in over_tcp:
        terminals.type(command)
    eventually(lambda: len(terminals.output()) >= len(piped), SECONDS, terminals.output)
    assert terminals.output() == piped
    terminals.interrupt()


def test_log_status(terminals):
    generate, mark, pipe, *over_tcp = commands_of("log_status")
    terminals.type(generate)
    terminals.type(mark)
    piped = terminals.type(pipe)
    assert piped.startswith(b"2026-03-01 200 ")
    assert sum(int(line.split()[2]) for line in piped.splitlines()) == 5000
    for command in over_tcp:
        terminals.type(command)
    eventually(lambda: len(terminals.output()) >= len(piped), SECONDS, terminals.output)
    assert terminals.output() == piped
    terminals.interrupt()


def test_market_spread(terminals, example):
    feed, application = example("market_feed"), example("market_spread")
    symbols = feed.generate_symbols()
    rejecting = {}
    for payload in feed.generate_market_data(5000, 7, symbols):
        state = application.SymbolData()
        data = application.decode_market_data(payload)
        application.update_market_data(data, state)
        rejecting[data.symbol] = state.should_reject_trades
    orders = map(application.decode_order, feed.generate_orders(5000, 7, symbols))
    rejected = [order.order_id for order in orders if rejecting.get(order.symbol, True)]
    for command in commands_of("market_spread_pipeline"):
        terminals.type(command)
    eventually(lambda: terminals.output().count(b"\n") >= len(rejected), SECONDS, terminals.output)
    assert re.findall(rb"\((\d{6})\)", terminals.output()) == rejected
    terminals.interrupt()


@pytest.mark.parametrize(("name", "window"), [("log_status_windows", 10), ("sessions", None)])
def test_a_stop_leaves_the_windows_open_that_a_log_has_not_ended(name, window, terminals):
    generate, pipe, *over_tcp = commands_of(name)
    terminals.type(generate)
    piped = terminals.type(pipe)  # the end of standard input ends the source: all windows fire
    for command in over_tcp:
        terminals.type(command)
    terminals.interrupt()
    assert piped.startswith(terminals.output())
    rest = piped.removeprefix(terminals.output()).splitlines()
    still_open = re.search(r"([\d,]+) windows? (?:was|were) open at the end", terminals.said(1))
    assert int(still_open[1]) == len({line[:window] for line in rest}) > 0


def test_nexmark(terminals):
    generate, pipe, oracle, *over_tcp = commands_of("nexmark/queries")
    terminals.type(generate)
    piped = terminals.type(pipe)
    assert piped == terminals.type(oracle) != b""
    for command in over_tcp:
        terminals.type(command)
    eventually(terminals.output, SECONDS, terminals.output)
    terminals.interrupt()
    assert piped.startswith(terminals.output())


def test_graph_4_a_run_whose_generator_ends_ends_by_itself(terminals):
    pipe, receive, run = commands_of("alerts_windowed")
    piped = terminals.type(pipe)
    assert re.fullmatch(rb"(\d\d:\d\d:\d0 to \d\d:\d\d:\d0: \w+ spent [12],\d+\n)+", piped)
    terminals.type(receive)
    terminals.type(run)
    eventually(lambda: len(terminals.output()) >= len(piped), SECONDS, terminals.output)
    assert terminals.output() == piped
    terminals.interrupt()


def test_the_feeds_own_commands(terminals):
    symbols, market_data, orders = commands_of("market_feed")
    committed = (ROOT / "examples/data/symbols.txt").read_bytes()
    assert terminals.type(symbols.partition(" > ")[0]) == committed
    terminals.type(market_data)
    terminals.type(orders)
    assert (terminals.folder / "market-data.frames").stat().st_size == 5000 * (4 + 42)
    assert (terminals.folder / "orders.frames").stat().st_size == 5000 * (4 + 53)
    for name in ("access_log", "nexmark/generator", "nexmark/oracle"):
        for command in commands_of(name):
            terminals.type(command)
    assert (terminals.folder / "marked.log").read_bytes().endswith(b"\nEND_OF_DAY\n")
