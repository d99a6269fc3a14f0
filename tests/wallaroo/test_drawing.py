"""The topology drawn: what each form says, and that no name can break it."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from textwrap import dedent

import pytest

import wallaroo
from wallaroo.drawing.layout import HEIGHT, layout
from wallaroo.drawing.mermaid import mermaid
from wallaroo.drawing.svg import svg
from wallaroo.drawing.tree import tree
from wallaroo.loading import load_application

EXAMPLES = Path(__file__).parents[2] / "examples"
SVG = "{http://www.w3.org/2000/svg}"
HARD_NAMES = [
    '"quoted"',
    "<b>bold</b> & so",
    "two\nlines",
    "Wörter 単語 🦘",
    "`x`; --> %%{init}%%",
    "\ud800",
]


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> bytes:
    return payload


@wallaroo.encoder
def encode(message: bytes) -> bytes:
    return message


@wallaroo.partition
def first_byte(message: bytes) -> bytes:
    return message[:1]


class Count:
    pass


def source() -> wallaroo.TCPSourceConfig:
    return wallaroo.TCPSourceConfig("127.0.0.1", 0, decode)


def sink(port: int = 7002) -> wallaroo.TCPSinkConfig:
    return wallaroo.TCPSinkConfig("127.0.0.1", port, encode)


def step(name: str) -> object:
    @wallaroo.state_computation(name=name)
    def compute(message: bytes, state: Count) -> tuple[bytes, bool]:
        return message, True

    return compute


def market_spread() -> wallaroo.Application:
    return load_application(EXAMPLES / "market_spread.py", placeholders=True)


def crossing() -> wallaroo.Application:
    """Three pipelines that visit two partitions in different orders, some twice."""
    ab = wallaroo.ApplicationBuilder("crossing")
    for name, visited in (("one", "ABA"), ("two", "BA"), ("three", "CAB")):
        ab.new_pipeline(name, source())
        for partition in visited:
            ab.to_state_partition(step(f"at {partition}"), Count, partition, first_byte)
        ab.to_sinks([sink(), sink(7003)])
    return ab.build()


def named(name: str) -> wallaroo.Application:
    ab = wallaroo.ApplicationBuilder(name).new_pipeline(name, source())
    return ab.to_state_partition(step(name), Count, name, first_byte).to_sink(sink()).build()


def test_the_tree_shows_pipelines_and_who_shares_a_partition() -> None:
    assert tree(market_spread()) == dedent(
        """\
        application Market Spread
        ├─ pipeline Orders
        │  ├─ source             127.0.0.1, any port (decoder decode_order)
        │  ├─ state computation  check order (key partition_by_symbol) → symbol-data
        │  └─ sink               127.0.0.1, any port (encoder encode_order_result)
        ├─ pipeline Market Data
        │  ├─ source             127.0.0.1, any port (decoder decode_market_data)
        │  ├─ state computation  update market data (key partition_by_symbol) → symbol-data
        │  └─ done               no sink
        └─ state partitions
           └─ symbol-data  300 64-bit keys, SymbolData, shared by Orders and Market Data"""
    )


def test_mermaid_ties_a_shared_partition_to_each_of_its_steps() -> None:
    lines = [line.strip() for line in mermaid(market_spread()).splitlines()]
    assert lines[0] == "flowchart LR"
    assert [line for line in lines if "-.-" in line] == ["node1 -.- state0", "node4 -.- state0"]
    assert [line for line in lines if "-->" in line] == [
        "node4 --> done1",
        "node0 --> node1",
        "node1 --> node2",
        "node3 --> node4",
    ]
    [state] = [line for line in lines if line.startswith("state0")]
    assert state == (
        'state0[("state shared by 2 pipelines<br><b>symbol-data</b>'
        '<br>300 64-bit keys, SymbolData")]'
    )


@pytest.mark.parametrize("name", HARD_NAMES)
def test_no_name_breaks_mermaid(name: str) -> None:
    for line in mermaid(named(name)).splitlines():
        labels = re.findall(r'"([^"]*)"', line)
        assert line.count('"') == 2 * len(labels)
        for label in labels:
            plain = label.replace("<br>", "").replace("<b>", "").replace("</b>", "")
            plain = re.sub(r"#\d+;", "", plain)
            assert not set(plain) & set('<>#;&`%{}[]"\\')


@pytest.mark.parametrize("name", HARD_NAMES)
def test_no_name_breaks_svg(name: str) -> None:
    root = ET.fromstring(svg(named(name)))
    shown = name.replace("\n", "\\n").replace("\ud800", "\\ud800")
    assert root.findtext(f"{SVG}title") == f"Topology of {shown}"
    assert f"state computation, {shown}, key first_byte" in [
        t.text for t in root.iter(f"{SVG}title")
    ]


def test_svg_shows_a_shared_partition_once_with_a_tie_from_each_pipeline() -> None:
    root = ET.fromstring(svg(market_spread()))
    kinds = [group.get("class") for group in root.iter(f"{SVG}g")]
    assert kinds == ["source", "stateful", "sink", "source", "stateful", "partition shared"]
    ties = [path for path in root.iter(f"{SVG}path") if path.get("class") == "tie"]
    assert len(ties) == 2


def test_svg_is_described_for_those_who_do_not_see_it() -> None:
    root = ET.fromstring(svg(market_spread()))
    assert root.get("role") == "img"
    labelled_by = (root.get("aria-labelledby") or "").split()
    assert labelled_by == [root.find(f"{SVG}{kind}").get("id") for kind in ("title", "desc")]
    assert root.findtext(f"{SVG}desc") == tree(market_spread())


def test_steps_that_share_a_partition_are_level() -> None:
    plan = layout(market_spread())
    application = market_spread()
    x = [box.x for box, node in zip(plan.nodes, application.nodes, strict=True)]
    assert x[1] == x[4] == plan.partitions[0].x


@pytest.mark.parametrize("make", [market_spread, crossing])
def test_boxes_do_not_overlap_and_ties_cross_none(make: object) -> None:
    plan = layout(make())  # type: ignore[operator]
    boxes = [*plan.nodes, *plan.partitions]
    for number, one in enumerate(boxes):
        assert 0 <= one.x < one.right <= plan.width
        assert 0 <= one.y < one.bottom <= plan.height
        for other in boxes[number + 1 :]:
            apart = one.right <= other.x or other.right <= one.x
            assert apart or one.bottom <= other.y or other.bottom <= one.y
    for corners in plan.ties:
        for (x1, y1), (x2, y2) in itertools.pairwise(corners):
            for box in boxes:
                across = max(min(x1, x2), box.x + 1) < min(max(x1, x2), box.right - 1)
                along = max(min(y1, y2), box.y + 1) < min(max(y1, y2), box.bottom - 1)
                inside_x = box.x < x1 < box.right and x1 == x2
                inside_y = box.y < y1 < box.bottom and y1 == y2
                assert not (inside_x and along), (corners, box)
                assert not (inside_y and across), (corners, box)


def test_a_long_name_is_shortened_and_kept_in_the_tooltip() -> None:
    name = "a very long name " * 20
    root = ET.fromstring(svg(named(name)))
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert any(text.startswith("a very long") and text.endswith("…") for text in texts)
    assert any(name in (title.text or "") for title in root.iter(f"{SVG}title"))
    assert max(box.height for box in layout(named(name)).nodes) == HEIGHT
