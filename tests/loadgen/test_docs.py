"""The workload that docs/load-testing.md shows is one that works."""

from __future__ import annotations

import re
from pathlib import Path

from wallaroo_loadgen.common.schedule import HELP, Schedule
from wallaroo_loadgen.workloads.plan import build
from wallaroo_loadgen.workloads.protocol import IGNORED, UNMATCHED, Options

from wallaroo.frames import FrameParser

DOCUMENT = Path(__file__).parents[2] / "docs" / "load-testing.md"


def test_the_workload_of_your_own(tmp_path: Path) -> None:
    blocks = re.findall(
        r"```python title=\"squares.py\"\n(.*?)```", DOCUMENT.read_text(), re.DOTALL
    )
    assert len(blocks) == 1
    file = tmp_path / "squares.py"
    file.write_text(blocks[0])
    workload = build(str(file), Options())
    numbers = [
        payload
        for first in (0, 600, 1000)
        for payload in FrameParser().feed(workload.streams[0].block(first, 600).data)
    ]
    assert numbers[:3] == [b"0", b"1", b"2"]
    outputs = [b"%s %d" % (number, int(number) ** 2) for number in numbers]
    assert workload.match(outputs).numbers.tolist() == list(range(1600))
    assert workload.match([b"5 26", b"x", b"-1 1"]).streams.tolist() == [
        UNMATCHED,
        UNMATCHED,
        IGNORED,
    ]
    assert workload.answers([b"-1 1"])


def test_every_schedule_that_is_named_is_one() -> None:
    named = re.findall(r"`((?:poisson|burst|ramp|steps)[^`]*)`", DOCUMENT.read_text())
    named += [line.split()[0] for line in HELP.splitlines()]
    assert len(named) >= 9
    for text in named:
        Schedule.parse(text, rate=100, warmup=1, duration=10, cooldown=1)
