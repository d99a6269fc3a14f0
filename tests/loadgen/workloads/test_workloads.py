"""Each workload against the application it is for, run in process on the reference engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from wallaroo_loadgen.dataplane.receiver import Splitter
from wallaroo_loadgen.workloads.plan import build
from wallaroo_loadgen.workloads.protocol import IGNORED, UNMATCHED, Options, Workload, WorkloadError

from wallaroo import testing
from wallaroo.frames import FrameParser, frames
from wallaroo.loading import load_application

EXAMPLES = Path(__file__).parents[3] / "examples"
SYMBOLS = str(EXAMPLES / "data" / "symbols.txt")

CASES: dict[str, dict[str, str]] = {
    "word_count": {},
    "market_spread": {"symbols": SYMBOLS},
    "log_status": {"lines": "50"},
}


def payloads(data: bytes) -> list[bytes]:
    parser = FrameParser()
    found = parser.feed(data)
    assert parser.error is None
    assert parser.pending == 0
    return found


def first_payloads(workload: Workload, stream: int, messages: int) -> list[bytes]:
    """Return a stream's first payloads, fetched in uneven blocks."""
    found: list[bytes] = []
    size = 1
    while len(found) < messages:
        block = workload.streams[stream].block(len(found), min(size, messages - len(found)))
        some = payloads(block.data)
        assert np.cumsum([len(item) + 4 for item in some]).tolist() == block.ends.tolist()
        found += some
        size = size % 97 + 7
    return found


def outputs_of(name: str, workload: Workload, inputs: list[tuple[int, bytes]]) -> list[bytes]:
    """Return what the example makes of (source, payload) pairs, split as the workload says."""
    arguments = ["--out", "127.0.0.1:1", "--in", "127.0.0.1:2,127.0.0.1:3"]
    if name != "market_spread":
        arguments[-1] = "127.0.0.1:2"
    application = load_application(str(EXAMPLES / f"{name}.py"), arguments)
    pipelines = list(application.sources)
    result = testing.run(application, [(pipelines[source], item) for source, item in inputs])
    assert result.dead_letters == []
    return Splitter(workload.framing).split(b"".join(result.output))


@pytest.mark.parametrize("name", sorted(CASES))
def test_what_the_application_answers_is_what_is_expected(name: str) -> None:
    values = CASES[name]
    workload = build(name, Options(seed=5, connections=3, run=77, values=values))
    messages = 300
    inputs = [
        (source, item) for source, data in workload.preparation().items() for item in payloads(data)
    ]
    probes = [
        (source, item) for source, data in workload.probe(0).items() for item in payloads(data)
    ]
    payloads_of = [
        first_payloads(workload, stream, messages) for stream in range(len(workload.streams))
    ]
    turns = [
        (workload.streams[stream].source, items[turn])
        for turn in range(messages)
        for stream, items in enumerate(payloads_of)
    ]
    outputs = outputs_of(name, workload, inputs + probes + turns)
    assert workload.answers(outputs)
    assert not workload.answers([]) or name == "market_spread"  # which remembers what is proven
    streams, numbers = workload.match(outputs)
    assert not (streams == UNMATCHED).any()
    for stream, sending in enumerate(workload.streams):
        here = numbers[streams == stream]
        assert sorted(here.tolist()) == list(range(sending.expected(messages)))
        assert (sending.cause(here) < messages).all()
    assert (streams == IGNORED).any()


@pytest.mark.parametrize("name", [*sorted(CASES), "echo"])
def test_the_arithmetic_goes_both_ways(name: str) -> None:
    values = CASES.get(name, {})
    workload = build(name, Options(connections=2, values=values))
    for stream in workload.streams:
        expected = stream.expected(20_000)
        if not expected:
            continue
        causes = stream.cause(np.arange(expected))
        assert (np.diff(causes) >= 0).all()
        for message in (0, 1, 4095, 4096, 12_345):
            assert stream.expected(message + 1) - stream.expected(message) == int(
                (causes == message).sum()
            )
    assert sum(stream.share for stream in workload.streams) == pytest.approx(1)


@pytest.mark.parametrize("name", [*sorted(CASES), "echo"])
def test_nothing_that_comes_raises(name: str) -> None:
    values: Mapping[str, str] = CASES.get(name, {})
    workload = build(name, Options(values=values))
    rubbish = [b"", b"\xff\xfe", b"a => b", b" => 1", b"x => " + b"9" * 40, b"2000-01-01 200 x"]
    rubbish += [bytes(size) for size in (46, 55)]
    rubbish += [b"\xff" * 46, b"\xff" * 55, b"0000-00-00 200 1", b"9999-12-31"]
    streams, _ = workload.match(rubbish)
    assert (streams == UNMATCHED).all()
    assert not workload.answers(rubbish)


def test_an_output_of_another_run_matches_nothing() -> None:
    first = build("word_count", Options(run=1))
    second = build("word_count", Options(run=2))
    word = payloads(first.streams[0].block(0, 1).data)[0].split()[0]
    assert first.match([word + b" => 1"]).streams.tolist() == [0]
    assert second.match([word + b" => 1"]).streams.tolist() == [UNMATCHED]


def test_the_same_seed_makes_the_same_messages() -> None:
    one, same, other = (build("word_count", Options(seed=seed)) for seed in (4, 4, 5))
    assert one.streams[0].block(0, 50).data == same.streams[0].block(0, 50).data
    assert one.streams[0].block(0, 50).data != other.streams[0].block(0, 50).data


def test_a_recorded_file_is_replayed_and_matched_by_position(tmp_path: Path) -> None:
    file = tmp_path / "frames"
    file.write_bytes(frames([b"a", b"", b"ccc"]))
    workload = build("replay", Options(values={"file": str(file), "outputs": "2"}))
    assert first_payloads(workload, 0, 7) == [b"a", b"", b"ccc", b"a", b"", b"ccc", b"a"]
    assert workload.match([b"x"] * 3).numbers.tolist() == [0, 1, 2]
    assert workload.match([b"x"] * 2).numbers.tolist() == [3, 4]
    assert workload.streams[0].cause(np.arange(5)).tolist() == [0, 0, 1, 1, 2]


def rerun_of(path: Path, records: int, causes: list[tuple[str, int]]) -> str:
    """Write what `wallaroo rerun --json` prints for outputs of sinks, by record."""
    forms: list[dict[str, object]] = [{"begin": {"records": records}}]
    forms += [{"output": {"sink": sink, "record": record}} for sink, record in causes]
    forms.append({"window": {"step": "w"}})
    path.write_text("".join([json.dumps(form) + "\n" for form in forms]))
    return str(path)


def test_an_output_of_a_window_answers_the_message_that_made_it_fire(tmp_path: Path) -> None:
    file = tmp_path / "frames"
    file.write_bytes(frames([b"a", b"b", b"c", b"d"]))
    causes = [("p/0", 1), ("p/1", 0), ("p/0", 1), ("p/0", 2)]
    values = {"file": str(file), "outputs": rerun_of(tmp_path / "rerun", 4, causes)}
    workload = build("replay", Options(values={**values, "sink": "p/0"}))
    (stream,) = workload.streams
    assert [stream.expected(messages) for messages in range(5)] == [0, 0, 2, 3, 3]
    found = workload.match([b"x"] * 3)
    assert found.streams.tolist() == [0, 0, 0]
    assert stream.cause(found.numbers).tolist() == [1, 1, 2]
    assert "is not waited for" in workload.counted
    with pytest.raises(WorkloadError, match=r"one of those that have outputs in .*: p/0, p/1"):
        build("replay", Options(values=values))
    values["outputs"] = rerun_of(tmp_path / "rerun", 5, causes)
    for outputs, words in (
        (values["outputs"], "is about 5 records, and there are 4 frames"),
        (__file__, "is not what `wallaroo rerun DIR APP --json` prints"),
        ("none", "outputs is a whole number"),
    ):
        with pytest.raises(WorkloadError, match=words):
            build("replay", Options(values={**values, "sink": "p/0", "outputs": outputs}))


def test_where_it_is_not_known_what_outputs_answer_none_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "frames"
    file.write_bytes(frames([b"a", b"b"]))
    workload = build("replay", Options(values={"file": str(file), "outputs": "any"}))
    assert workload.streams[0].expected(2) == 0
    assert workload.match([b"x"] * 2).streams.tolist() == [IGNORED, IGNORED]
    assert workload.unanswered


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("tunnel", {}, "no workload is called 'tunnel'"),
        ("word_count", {"word": "3"}, "no option is called 'word'"),
        ("word_count", {"words": "many"}, "whole number"),
        ("word_count", {"words": "0"}, "1 to 1000"),
        ("market_spread", {}, "needs -o symbols=FILE"),
        ("market_spread", {"symbols": SYMBOLS, "reject": "0"}, "nothing comes out"),
        ("market_spread", {"symbols": SYMBOLS, "reject": "2"}, "0 to 1"),
        ("market_spread", {"symbols": "/no/such"}, "No such file"),
        ("market_spread", {"symbols": __file__}, "4 characters at most"),
        ("market_spread", {"symbols": SYMBOLS, "reject": "some"}, "reject is a number, not 'some'"),
        ("market_spread", {"symbols": SYMBOLS, "quotes": "1"}, "quotes is above 0 and below 1"),
        ("replay", {"file": __file__, "framing": "lins"}, "lines or frames, not 'lins'"),
        ("replay", {}, "needs -o file=FILE"),
        ("replay", {"file": "/no/such"}, "No such file"),
        ("no_such.py", {}, "no workload file"),
    ],
)
def test_what_cannot_work_says_why(name: str, values: dict[str, str], words: str) -> None:
    with pytest.raises(WorkloadError, match=words):
        build(name, Options(values=values))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "has no frame"),
        (b"\0\0\0\x05ab", "ends inside frame 1"),
        (b"\0\0\0\x01a\xff\xff\xff\xff", "frame 2"),
    ],
)
def test_a_file_that_is_no_frames_says_where(tmp_path: Path, data: bytes, words: str) -> None:
    file = tmp_path / "frames"
    file.write_bytes(data)
    with pytest.raises(WorkloadError, match=words):
        build("replay", Options(values={"file": str(file)}))


NOTHING_SENT = """
from wallaroo_loadgen.workloads.echo import Echo

def workload(options):
    made = Echo(options)
    made.framing, made.streams = "lines", []
    return made
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def workload(options):\n    return 1 / 0\n", r"mine.py:2: ZeroDivisionError"),
        ("def workload(options)\n", r"mine.py:1: SyntaxError"),
        ("x = 1\n", r"no function workload"),
        ("import no_such_module\n", r"mine.py:1: ModuleNotFoundError"),
        ("def workload(options):\n    return 5\n", r"has no 'sources'"),
        (NOTHING_SENT.replace("lines", "lins"), r"framing is 'lines' or 'frames', not 'lins'"),
        (NOTHING_SENT, r"there are no streams, so nothing would be sent"),
    ],
)
def test_a_workload_file_with_an_error_says_where(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(WorkloadError, match=words):
        build(str(file), Options())
