"""The topology drawn: what each form says, and that no name can break it."""

import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from textwrap import dedent

import pytest
from builder_parts import sink, source
from small_steps import decode
from small_windows import Total

import wallaroo
from wallaroo.drawing.layout import HEIGHT, Layout
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


@wallaroo.partition
def first_byte(message):
    return message[:1]


class Count:
    pass


def step(name):
    @wallaroo.state_computation(name=name)
    def compute(message, state):
        return message, True

    return compute


def market_spread():
    return load_application(EXAMPLES / "market_spread.py", placeholders=True)


def crossing():
    """Three pipelines that visit two partitions in different orders, some twice."""
    ab = wallaroo.ApplicationBuilder("crossing")
    for name, visited in (("one", "ABA"), ("two", "BA"), ("three", "CAB")):
        ab.new_pipeline(name, source())
        for partition in visited:
            ab.to_state_partition(step(f"at {partition}"), Count, partition, first_byte)
        ab.to_sinks([sink(), sink(7003)])
    return ab.build()


def totals(name):
    class Named(Total):
        def name(self):
            return name

    return Named()


class Beat:
    def initial_value(self):
        return b"x"

    def apply(self, last):
        return None


def when(message):
    return 0


@wallaroo.state_computation(name="kept", state=Count, expire_after=wallaroo.hours(1))
def kept(message, state):
    return message


@wallaroo.computation(name="pass on")
def pass_on(message):
    return message


def branched():
    """Branches of which one merges with another pipeline, windows, and three ends."""
    clicks = wallaroo.source(
        "clicks",
        wallaroo.TCPSourceConfig(
            "127.0.0.1", 0, decode, event_time=when, idle_after=wallaroo.seconds(5)
        ),
    )
    beats = wallaroo.source("beats", wallaroo.GenSourceConfig(Beat()))
    keyed = clicks.key_by(first_byte)
    sliding = (
        wallaroo.range_windows(wallaroo.minutes(1))
        .with_slide(wallaroo.seconds(10))
        .with_delay(wallaroo.seconds(2))
        .with_late_data_policy("drop")
    )
    per_key = keyed.to(sliding.over(totals("per minute"))).to_sinks([sink(), sink(7003)])
    visits = keyed.to(wallaroo.session_windows(wallaroo.minutes(30)).over(totals("visits"))).done()
    both = keyed.merge(beats.to(pass_on).collect()).to(kept)
    some = both.to(wallaroo.count_windows(5).with_timeout(wallaroo.seconds(1)).over(Total))
    return wallaroo.build_application(
        "branched", per_key, visits, some.to_sink(sink(7004)), both.done()
    )


def diamond():
    """A pipeline that branches and is merged with itself, and one that merges with it."""
    begin = wallaroo.source("one", source())
    other = wallaroo.source("two", source())
    there = begin.to(pass_on).merge(begin)
    return wallaroo.build_application("diamond", there.merge(other).to_sink(sink()))


def named(name):
    ab = wallaroo.ApplicationBuilder(name).new_pipeline(name, source())
    return ab.to_state_partition(step(name), Count, name, first_byte).to_sink(sink()).build()


def test_the_tree_shows_pipelines_and_who_shares_a_partition():
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


def test_the_tree_shows_branches_merges_keys_windows_and_times():
    assert tree(branched()) == dedent(
        """\
        application branched
        ├─ pipeline clicks
        │  ├─ source  127.0.0.1, any port (decoder decode, event time when, idle after 5 s)
        │  ├─ key     first_byte
        │  ├─ branch  0
        │  │  ├─ window  per minute (range 1 min, slide 10 s, delay 2 s, late drop)
        │  │  ├─ sink 0  127.0.0.1:7002 (encoder encode)
        │  │  └─ sink 1  127.0.0.1:7003 (encoder encode)
        │  ├─ branch  1
        │  │  ├─ window  visits (sessions, gap 30 min)
        │  │  └─ done    no sink
        │  └─ branch  2
        │     ├─ merge              clicks and beats
        │     ├─ state computation  kept → kept
        │     ├─ branch             0
        │     │  ├─ window  Total (count 5, timeout 1 s)
        │     │  └─ sink 2  127.0.0.1:7004 (encoder encode)
        │     └─ branch             1
        │        └─ done  no sink
        ├─ pipeline beats
        │  ├─ source       generator Beat
        │  ├─ computation  pass on
        │  ├─ key          () (one key for all)
        │  └─ merge        clicks and beats, in pipeline clicks
        └─ state partitions
           └─ kept  any key, Count, expires after 1 h"""
    )


def test_mermaid_shows_each_way_and_each_end():
    lines = [line.strip() for line in mermaid(branched()).splitlines()]
    assert [line for line in lines if "done" in line] == [
        'done8(("done"))',
        "node8 --> done8",
        'done17(("done"))',
        "node17 --> done17",
    ]
    assert {"node11 --> node12", "node10 --> node12"} < set(lines)  # the merge has two inputs
    assert (
        'node4[["window<br><b>per minute</b>'
        '<br>range 1 min, slide 10 s, delay 2 s, late drop"]]' in lines
    )
    assert 'node2{{"key<br><b>first_byte</b>"}}' in lines
    assert 'node12["merge<br><b>clicks and beats</b>"]' in lines


@pytest.mark.parametrize("name", HARD_NAMES)
def test_no_name_breaks_mermaid(name):
    for line in mermaid(named(name)).splitlines():
        labels = re.findall(r'"([^"]*)"', line)
        assert line.count('"') == 2 * len(labels)
        for label in labels:
            plain = label.replace("<br>", "").replace("<b>", "").replace("</b>", "")
            plain = re.sub(r"#\d+;", "", plain)
            assert not set(plain) & set('<>#;&`%{}[]"\\')


@pytest.mark.parametrize("name", HARD_NAMES)
def test_no_name_breaks_svg(name):
    root = ET.fromstring(svg(named(name)))
    shown = name.replace("\n", "\\n").replace("\ud800", "\\ud800")
    assert root.findtext(f"{SVG}title") == f"Topology of {shown}"
    assert f"state computation, {shown}, key first_byte" in [
        t.text for t in root.iter(f"{SVG}title")
    ]


def test_svg_is_described_for_those_who_do_not_see_it():
    root = ET.fromstring(svg(market_spread()))
    assert root.get("role") == "img"
    labelled_by = (root.get("aria-labelledby") or "").split()
    assert labelled_by == [root.find(f"{SVG}{kind}").get("id") for kind in ("title", "desc")]
    assert root.findtext(f"{SVG}desc") == tree(market_spread())


@pytest.mark.parametrize("make", [market_spread, crossing, branched, diamond])
def test_boxes_do_not_overlap_and_no_line_crosses_one(make):
    plan = Layout(make())
    boxes = [*plan.nodes, *plan.partitions]
    for number, one in enumerate(boxes):
        assert 0 <= one.x < one.right <= plan.width
        assert 0 <= one.y < one.bottom <= plan.height
        for other in boxes[number + 1 :]:
            apart = one.right <= other.x or other.right <= one.x
            assert apart or one.bottom <= other.y or other.bottom <= one.y
    for corners in [*plan.ties, *plan.flows, *plan.dones]:
        for (x1, y1), (x2, y2) in itertools.pairwise(corners):
            for box in boxes:
                across = max(min(x1, x2), box.x + 1) < min(max(x1, x2), box.right - 1)
                along = max(min(y1, y2), box.y + 1) < min(max(y1, y2), box.bottom - 1)
                inside_x = box.x < x1 < box.right and x1 == x2
                inside_y = box.y < y1 < box.bottom and y1 == y2
                assert not (inside_x and along), (corners, box)
                assert not (inside_y and across), (corners, box)


def test_a_long_name_is_shortened_and_kept_in_the_tooltip():
    name = "a very long name " * 20
    root = ET.fromstring(svg(named(name)))
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert any(text.startswith("a very long") and text.endswith("…") for text in texts)
    assert any(name in (title.text or "") for title in root.iter(f"{SVG}title"))
    assert max(box.height for box in Layout(named(name)).nodes) == HEIGHT


@pytest.mark.parametrize("make", [market_spread, crossing, branched, diamond])
def test_every_flow_of_the_plan_is_in_the_picture(make):
    application = make()
    plan = Layout(application)
    root = ET.fromstring(svg(application))
    paths = [path.get("d", "") for path in root.iter(f"{SVG}path") if path.get("class") == "flow"]
    assert len(paths) == len(plan.flows) + len(plan.dones)
    # A corner between the ends of a flow is rounded.
    bends = sum(len(corners) - 2 for corners in [*plan.flows, *plan.dones])
    assert sum(path.count("Q") for path in paths) == bends


def test_the_tree_names_the_windows_that_a_builder_gave_a_name_of_their_own():
    windows = wallaroo.count_windows(2).over(Total())
    builder = wallaroo.ApplicationBuilder("named").new_pipeline("p", source())
    application = builder.to_window(windows, first_byte, "pairs").to_sink(sink()).build()
    assert " → pairs\n" in tree(application)
