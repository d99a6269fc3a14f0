"""The acts of the demo, in order; each needs what the ones before it left in `Stage`."""

from __future__ import annotations

import itertools
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from demo.children import Child, ChildFailedError, output_of, run_shown
from demo.interrupts import interrupts
from demo.screen import progress, say
from demo.stream import Receiver, Sender
from demo.text import expected_counts, generate_lines

APPLICATION = "examples/word_count.py"
LATENCY = "benchmarks/latency.py"
PIPELINE = "Split and Count"

_TOP_WORDS = 10
_WIDEST_BAR = 40
_PATIENCE = 60.0  # seconds without a single word before the demo gives up
_KILLED_LINES = 20_000
_SPARK_LINES = 5_000  # most of the time goes into Spark's start, whatever the number
_LONGEST_ACT = 150.0  # seconds


class SkippedError(Exception):
    """An act cannot be played here; the text says why, in a line."""


class DifferentError(Exception):
    """Two results that must be equal are not."""


@dataclass
class Stage:
    """What the acts have in common.

    Args:
        words: how many the main act streams.
        seed: the text's.
        folder: where pages and pictures go.
        lines: the text.
        reference_output: what the reference engine sent for it.
    """

    words: int
    seed: int
    folder: Path
    lines: list[str]
    reference_output: bytes = b""


def word_count(stage: Stage) -> None:
    """Play the main act: count words over TCP on the reference engine."""
    stage.lines = generate_lines(stage.words, stage.seed)
    say(f"  {stage.words:,} words of made-up text in {len(stage.lines):,} lines, seed {stage.seed}")
    output, seconds, summary = _stream("reference", stage.lines)
    expected, counts = expected_counts(stage.lines)
    _compare(output, expected, "an independent count")
    stage.reference_output = output

    say()
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_TOP_WORDS]
    for word, count in top:
        say(f"  {word:>6} {count:>8,} {'█' * max(1, _WIDEST_BAR * count // top[0][1])}")
    say()
    for line in summary:
        say(f"  {line}")
    say()
    say(f"  {stage.words / seconds:,.0f} words/s: in, counted and out again in {seconds:.1f} s")
    say(f"  all {len(output):,} bytes that came out are those of an independent count")

    picture = stage.folder / "word_count.svg"
    output_of(["graph", APPLICATION, "--svg", str(picture)])
    mermaid = output_of(["graph", APPLICATION])
    say(f"  the topology is drawn in {picture}; as Mermaid it reads\n")
    say("\n".join(["    " + line for line in mermaid.splitlines()]))


def recovery(stage: Stage) -> None:
    """Kill the reference engine in the middle of a stream, start it again, and compare."""
    lines = stage.lines[:_KILLED_LINES]
    first, second = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    directory = stage.folder / "checkpoint"
    shutil.rmtree(directory, ignore_errors=True)
    killed = _outputs_of(first, directory, kill=True)
    say(f"  killed with kill -9 after {_count(killed):,} words had come out; once more")
    rest = _outputs_of(second, directory, kill=False)
    expected, _ = expected_counts(lines)
    # What was not known to be delivered comes again: a stretch at the end, unchanged.
    kept = len(expected) - len(rest)
    gap = not 0 <= kept <= len(killed)
    if gap or killed != expected[: len(killed)] or rest != expected[kept:]:
        raise DifferentError("what came out before and after the kill is not the whole, in order")
    words = expected.count(b"\n")
    repeated = killed[kept:].count(b"\n")
    say(f"  all {words:,} counts are exact: none lost, none doubled; {repeated:,} came again")


def spark(stage: Stage) -> None:
    """Play the same application on Spark and compare what comes out."""
    _require_engine("spark")
    lines = stage.lines[:_SPARK_LINES]
    output, seconds, _ = _stream("spark", lines)
    _compare(output, stage.reference_output[: len(output)], "the reference engine's")
    expected, _ = expected_counts(lines)
    _compare(output, expected, "an independent count")
    words = output.count(b"\n")
    say(f"  {words:,} words in {seconds:.1f} s, Spark's start included")
    say(f"  all {len(output):,} bytes that came out are those that came out of the reference")


def conformance(stage: Stage) -> None:
    """Play generated applications on the compiled path and on the reference, rule by rule."""
    _require_command("conform")
    page = stage.folder / "conformance.html"
    arguments = ["conform", "--engine", "compiled", "--cases", "1000", "--no-live"]
    arguments += ["--html", str(page), "--store", str(stage.folder / "counterexamples")]
    say(f"  $ wallaroo {' '.join(arguments)}")
    code = run_shown(arguments, _LONGEST_ACT)
    if code:
        raise ChildFailedError(f"wallaroo conform ended with exit code {code}")


def load(stage: Stage) -> None:
    """Measure latency at two rates on both engines, from the time each message was due."""
    _require_command("load")
    engines = ["compiled"]
    try:
        _require_engine("spark")
        engines.append("spark")
    except SkippedError as reason:
        say(f"  without Spark: {reason}")
    page = stage.folder / "latency.html"
    arguments = ["--short", "--applications", "word_count", "--engines", *engines]
    arguments += ["--html", str(page)]
    say(f"  $ python {LATENCY} {' '.join(arguments)}")
    code = run_shown(arguments, _LONGEST_ACT, [sys.executable, LATENCY])
    if code:
        raise ChildFailedError(f"{LATENCY} ended with exit code {code}")


def _outputs_of(lines: list[str], directory: Path, *, kill: bool) -> bytes:
    """Stream lines through a run with a checkpoint, which is killed or stopped at their end."""
    with ExitStack() as stack:
        receiver = stack.enter_context(closing(Receiver()))
        arguments = ["run", APPLICATION, "--checkpoint", str(directory)]
        arguments += ["--in", "127.0.0.1:0", "--out", receiver.address]
        say(f"  $ wallaroo {' '.join(arguments)}")
        with interrupts.held():
            child = stack.enter_context(Child(arguments))
        sender = Sender(child.address(PIPELINE, seconds=90.0), lines)
        sender.wait(_PATIENCE)  # what it has sent is on disk: the source has closed its side
        if sender.error:
            raise sender.error
        if kill:
            child.kill()
        else:
            child.stop(seconds=20.0)
        receiver.wait(_PATIENCE)
    return receiver.received()


def _count(output: bytes) -> int:
    return output.count(b"\n")


ACTS: list[tuple[str, Callable[[Stage], None]]] = [
    ("Word count over TCP, on the reference engine", word_count),
    ("Killed in the middle, and started again", recovery),
    ("The same application on Spark", spark),
    ("Generated applications: does the compiled path keep the rules?", conformance),
    ("Latency under load, on both engines", load),
]


def _stream(engine: str, lines: list[str]) -> tuple[bytes, float, list[str]]:
    """Run the application on `engine` and stream `lines` through it.

    Returns:
        What came out, the seconds from the first byte in to the last byte out, and the summary.
    """
    words = sum(line.count(" ") + 1 for line in lines)
    with ExitStack() as stack:
        receiver = stack.enter_context(closing(Receiver()))
        arguments = ["run", APPLICATION, "--engine", engine]
        arguments += ["--in", "127.0.0.1:0", "--out", receiver.address]
        say(f"  $ wallaroo {' '.join(arguments)}")
        with interrupts.held():
            child = stack.enter_context(Child(arguments))
        address = child.address(PIPELINE, seconds=90.0)
        started = moved = time.monotonic()
        sender = Sender(address, lines)
        with progress("words counted", words) as update:
            done = 0
            while done < words:
                time.sleep(0.05)
                child.check_running()
                if sender.error:
                    raise sender.error
                if receiver.lines > done:
                    moved = time.monotonic()
                elif time.monotonic() - moved > _PATIENCE:
                    raise child.failed(
                        f"{done:,} of {words:,} words, then nothing for {_PATIENCE:.0f} s"
                    )
                done = receiver.lines
                update(done)
        seconds = time.monotonic() - started
        said = child.stop(seconds=20.0)
    summary = itertools.dropwhile(lambda line: " ran for " not in line, said)
    return receiver.received(), seconds, list(summary)


def _compare(output: bytes, expected: bytes, whose: str) -> None:
    if output == expected:
        return
    pairs = zip(output.splitlines(), expected.splitlines(), strict=False)
    for number, (is_, should) in enumerate(pairs, 1):
        if is_ != should:
            raise DifferentError(f"output line {number} is {is_!r}, {whose} has {should!r}")
    raise DifferentError(f"{len(output):,} bytes came out, {whose} has {len(expected):,}")


def _require_engine(name: str) -> None:
    _require("wallaroo.engines", name, f"the engine {name!r}")


def _require_command(name: str) -> None:
    _require("wallaroo.commands", name, f"the command 'wallaroo {name}'")


def _require(group: str, name: str, what: str) -> None:
    for point in entry_points(group=group, name=name):
        try:
            point.load()
        except ImportError as error:
            raise SkippedError(f"{what} needs a package that is not installed: {error}") from None
        return
    raise SkippedError(f"{what} is not installed")
