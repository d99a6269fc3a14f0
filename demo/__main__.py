"""``python -m demo``: play the acts, from the repository's root.

Each act starts the commands that anybody can type, and compares what comes out with a count of the
demo's own.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from demo.text import expected_counts, generate_lines

APPLICATION = "examples/word_count.py"
WALLAROO = (sys.executable, "-m", "wallaroo")

_KILLED_LINES = 20_000
_SPARK_LINES = 5_000  # most of the time goes into Spark's start, whatever the number
_START = "90"  # seconds until a source listens, on a busy machine
_STOP = 20.0  # seconds
_LONGEST = 150.0  # seconds of a command
_TOP_WORDS, _WIDEST_BAR = 10, 40
_INVALID = 4  # of `wallaroo load`: it says why, such as a machine too busy to send on time


class FailedError(Exception):
    """A command, or what came out of it, is not as it must be; the text says why."""


class SkippedError(Exception):
    """An act cannot be played here; the text says why, in a line."""


@dataclass
class Stage:
    """What the acts have in common.

    Args:
        words: how many the main act streams.
        seed: the text's.
        folder: where pages, pictures and what came out go.
        lines: the text; the main act makes it.
    """

    words: int
    seed: int
    folder: Path
    lines: list[str]


def word_count(stage: Stage) -> None:
    """Count words over TCP on the reference engine."""
    stage.lines = generate_lines(stage.words, stage.seed)
    say(f"  {stage.words:,} words of made-up text in {len(stage.lines):,} lines, seed {stage.seed}")
    counts = _streamed(stage, "reference", stage.lines)
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_TOP_WORDS]
    for word, count in top:
        say(f"  {word:>6} {count:>8,} {'█' * max(1, _WIDEST_BAR * count // top[0][1])}")
    picture = str(stage.folder / "word_count.svg")
    _run("graph", APPLICATION, "--svg", picture)
    say(f"  the topology is drawn in {picture}; as Mermaid it reads\n")
    _run("graph", APPLICATION)


def recovery(stage: Stage) -> None:
    """Kill the reference engine in the middle of a stream, start it again, and compare."""
    lines = stage.lines[:_KILLED_LINES]
    halves = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    directory = stage.folder / "checkpoint"
    shutil.rmtree(directory, ignore_errors=True)
    outputs = stage.folder / "before.txt", stage.folder / "after.txt"
    with ExitStack() as stack:
        for half, output in zip(halves, outputs, strict=True):
            sink, source = _free_address(), _free_address()
            _started(stack, "receive", "--listen", sink, "--output", str(output))
            options = ["--checkpoint", str(directory), "--in", source, "--out", sink]
            run = _started(stack, "run", APPLICATION, *options)
            _send(stage, half, source)  # it returns when all that was sent is on the disk
            if half is halves[0]:
                run.kill()
                say("  killed with kill -9; once more")
        _ended(run, signal.SIGINT)
        expected, _ = expected_counts(lines)
        deadline = time.monotonic() + _STOP
        before, after = outputs
        while (repeated := _repeated(before.read_bytes(), after.read_bytes(), expected)) is None:
            if time.monotonic() > deadline:  # what was sent before the kill is still being read
                raise FailedError("what came before and after the kill is not the whole, in order")
            time.sleep(0.1)
    words = expected.count(b"\n")
    say(f"  all {words:,} counts are exact: none lost, none doubled; {repeated:,} came again")


def _repeated(before: bytes, after: bytes, expected: bytes) -> int | None:
    """Return how many outputs came twice; `None`: something is missing or wrong.

    What was not known to be delivered comes again: the last outputs before the kill, unchanged.
    """
    first = len(expected) - len(after)
    whole = before == expected[: len(before)] and after == expected[first:]
    return before[first:].count(b"\n") if whole and 0 <= first <= len(before) else None


def spark(stage: Stage) -> None:
    """Run the same application on Spark."""
    _require("pyspark", "spark")
    _streamed(stage, "spark", stage.lines[:_SPARK_LINES])


def conformance(stage: Stage) -> None:
    """Run generated applications on the compiled path and on the reference, rule by rule."""
    _require("hypothesis", "conformance")
    page, store = str(stage.folder / "conformance.html"), str(stage.folder / "counterexamples")
    cases = ["--cases", "1000", "--no-live"]
    _run("conform", "--engine", "compiled", *cases, "--html", page, "--store", store)


def load(stage: Stage) -> None:
    """Measure latency at one rate, from the time each message was due."""
    _require("hdrh", "loadgen")
    more = {"compiled": ["--rate", "2000"]}
    if find_spec("pyspark"):
        more["spark"] = ["--rate", "200", "--warmup", "10", "--wait", _START]
    for engine, options in more.items():
        source = _free_address()
        run = [*WALLAROO, "run", APPLICATION, "--engine", engine]
        start = shlex.join([*run, "--in", source, "--out", "{listen}"])
        command = ["load", "word_count", "--to", source, "--listen", "127.0.0.1:0", *options]
        page = str(stage.folder / f"latency-{engine}.html")
        _run(*command, "--duration", "3", "--start", start, "--html", page, well=(0, _INVALID))


ACTS: list[tuple[str, Callable[[Stage], None]]] = [
    ("Word count over TCP, on the reference engine", word_count),
    ("Killed in the middle, and started again", recovery),
    ("The same application on Spark", spark),
    ("Generated applications: does the compiled path keep the rules?", conformance),
    ("Latency under load, on both engines", load),
]


def _streamed(stage: Stage, engine: str, lines: list[str]) -> dict[str, int]:
    """Stream lines through the application on an engine, compare, and return the counts."""
    expected, counts = expected_counts(lines)
    words, output = expected.count(b"\n"), stage.folder / "output.txt"
    sink, source = _free_address(), _free_address()
    with ExitStack() as stack:
        wanted = ["--raw", "--expect", str(len(expected)), "--output", str(output)]
        receive = _started(stack, "receive", "--listen", sink, *wanted)
        run = _started(stack, "run", APPLICATION, "--engine", engine, "--in", source, "--out", sink)
        started = time.monotonic()
        _send(stage, lines, source)
        _ended(receive)
        seconds = time.monotonic() - started
        _ended(run, signal.SIGINT)
    if output.read_bytes() != expected:
        raise FailedError(f"{output} is not what an independent count gives")
    say(f"\n  {words / seconds:,.0f} words/s: in, counted and out again in {seconds:.1f} s")
    say(f"  all {len(expected):,} bytes that came out are those of an independent count\n")
    return counts


def _send(stage: Stage, lines: list[str], source: str) -> None:
    text = stage.folder / "text.txt"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _run("send", str(text), "--to", source, "--wait", _START)


def _run(*arguments: str, well: tuple[int, ...] = (0,)) -> None:
    """Run a command to its end."""
    with ExitStack() as stack:
        _ended(_started(stack, *arguments), well=well)


def _started(stack: ExitStack, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a command, which is stopped where the stack ends if it still runs then."""
    say(f"  $ wallaroo {shlex.join(arguments)}")
    with _uninterrupted():
        # In a process group of its own: Ctrl-C is for the demo, which then stops its commands.
        process = subprocess.Popen(  # noqa: S603 - our own command, no shell
            [*WALLAROO, *arguments], stdin=subprocess.DEVNULL, process_group=0
        )
        stack.callback(_stop, process)
    return process


def _ended(
    process: subprocess.Popen[bytes], number: int | None = None, *, well: tuple[int, ...] = (0,)
) -> None:
    """Wait until a command has ended well, after a signal if one is given.

    Args:
        process: the command's.
        number: the signal's.
        well: exit codes that are no failure.

    Raises:
        FailedError: it has not.
    """
    if number is not None:
        process.send_signal(number)
    try:
        code = process.wait(_LONGEST)
    except subprocess.TimeoutExpired:
        raise FailedError(f"it has not ended within {_LONGEST:.0f} s") from None
    if code not in well:
        raise FailedError(f"it ended with exit code {code}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(_STOP)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C: a process that is started must be known, to be stopped later."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def _require(package: str, extra: str) -> None:
    if find_spec(package) is None:
        raise SkippedError(f"this needs {package}; pip install 'wallaroo-streams[{extra}]'")


def _free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def say(text: str) -> None:
    """Print a line at once: the commands print between the demo's own lines."""
    print(text, flush=True)


def main() -> int:
    """Play the acts; 0 if none failed."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--words", type=int, default=2_000_000, help="how many (2000000)")
    parser.add_argument("--seed", type=int, default=1, help="a text for every number (1)")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder (demo-out)")
    parser.add_argument("--acts", type=int, default=len(ACTS), help="only the first so many")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    stage = Stage(arguments.words, arguments.seed, arguments.out, lines=[])
    started = time.monotonic()
    failed = 0
    for number, (name, act) in enumerate(ACTS[: arguments.acts], 1):
        say(f"\n{number}. {name}\n")
        try:
            act(stage)
        except SkippedError as reason:
            say(f"  skipped: {reason}")
        except (FailedError, OSError) as error:
            failed += 1
            say(f"  FAILED: {error}")
    say(f"\n{time.monotonic() - started:.0f} s. Pictures and pages are in {arguments.out}/")
    return 1 if failed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("\nstopped")
        sys.exit(130)
    except BrokenPipeError:  # the reader of the output has ended; Python flushes once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
