"""The reference engine in process, against loops written by hand that call the same functions.

``python benchmarks/in_process.py [--rounds N] [--messages N]``: word count and market spread,
compiled and interpreted, and the interpreter's cost as entities grow. The goals stand beside the
figures: compiled at most 1.15 times the loop (1.10 is the aim), interpreter at most 12 times with
entities under 1 KB.
"""

from __future__ import annotations

import argparse
import pickle
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

import market_spread
import word_count
from facts import Figures, add_json_option, machine_facts, ratios, side_by_side
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.isolated.interpreter import Interpreter

FIGURES = Figures(__file__)
ADDRESSES = ["--in", "127.0.0.1:0,127.0.0.1:0", "--out", "127.0.0.1:0"]


def word_lines(words: int, vocabulary: int, seed: int) -> list[bytes]:
    """Return lines of ten words each, made of `vocabulary` different ones."""
    chance = random.Random(seed)
    known = [f"{chance.choice('abcdefghijklmnopqrstuvwxyz')}{n}" for n in range(vocabulary)]
    chosen = chance.choices(known, k=words)
    return [" ".join(chosen[start : start + 10]).encode() for start in range(0, words, 10)]


def word_count_by_hand(lines: list[bytes]) -> list[bytes]:
    """Word count as one would write it without an engine."""
    decode = word_count.decode_text.decode
    split = word_count.split_into_words.compute_multi
    partition = word_count.first_letter.partition
    count = word_count.count_word.compute
    encode = word_count.encode_count.encode
    states = {key: word_count.WordTotals() for key in word_count.PARTITIONS}
    outputs = []
    for line in lines:
        for word in split(decode(line)):
            output, _changed = count(word, states[partition(word)])
            if output is not None:
                outputs.append(encode(output).encode())
    return outputs


def market_frames(messages: int, seed: int) -> list[tuple[str, list[bytes]]]:
    """Return market data and orders in turns of a hundred, for a hundred symbols."""
    chance = random.Random(seed)
    symbols = [
        line.strip().rjust(4).encode()
        for line in market_spread.SYMBOLS.read_text().splitlines()[:100]
    ]
    transacted = b"20261121-12:00:00.000"
    frames: list[tuple[str, list[bytes]]] = []
    for start in range(0, messages, 200):
        data, orders = [], []
        for index in range(100):
            bid = 10 + chance.random()
            spread = 0.01 if chance.random() < 0.7 else 0.2
            symbol = chance.choice(symbols)
            data.append(market_spread.MARKET_DATA.pack(2, symbol, transacted, bid, bid + spread))
            order_id = b"%06d" % ((start + index) % 1000000)
            symbol = chance.choice(symbols)
            orders.append(
                market_spread.ORDER.pack(1, 1, 7, order_id, symbol, 100.0, 10.5, transacted)
            )
        frames += [("Market Data", data), ("Orders", orders)]
    return frames


def market_spread_by_hand(frames: list[tuple[str, list[bytes]]]) -> list[bytes]:
    """Market spread as one would write it without an engine."""
    decode_order = market_spread.decode_order.decode
    decode_data = market_spread.decode_market_data.decode
    partition = market_spread.partition_by_symbol.partition
    update = market_spread.update_market_data.compute
    check = market_spread.CheckOrder(lambda: 1).compute
    encode = market_spread.encode_order_result.encode
    symbols = market_spread.load_symbols(market_spread.SYMBOLS)
    states = {key: market_spread.SymbolData() for key in symbols}
    outputs = []
    for source, payloads in frames:
        if source == "Orders":
            for payload in payloads:
                order = decode_order(payload)
                result, _changed = check(order, states[partition(order)])
                if result is not None:
                    outputs.append(encode(result))
        else:
            for payload in payloads:
                data = decode_data(payload)
                update(data, states[partition(data)])
    return outputs


Run = Callable[[], list[bytes]]


def by_machine(machine: Compiled | Interpreter, frames: list[tuple[str, list[bytes]]]) -> Run:
    """Return a run that feeds a machine as the server does, a batch at a time."""

    def run() -> list[bytes]:
        for source, payloads in frames:
            machine.feed(source, payloads)
        (outputs,) = machine.outputs.values()
        return outputs

    return run


def batches(lines: list[bytes]) -> list[tuple[str, list[bytes]]]:
    """Divide word count's lines into batches, as reads from a socket would."""
    return [("Split and Count", lines[start : start + 100]) for start in range(0, len(lines), 100)]


def compare(name: str, title: str, contenders: dict[str, Callable[[], Run]], rounds: int) -> None:
    """Check that the contenders agree; print and keep each one's cost and ratio to the first's."""
    results = {contender: prepare()() for contender, prepare in contenders.items()}
    baseline = next(iter(contenders))
    for contender, outputs in results.items():
        assert outputs == results[baseline], f"{title}: {contender} disagrees with {baseline}"
    messages = len(results[baseline])
    seconds = side_by_side(dict(contenders), rounds, time.process_time)
    print(f"\n{title} ({messages} outputs, median of {rounds} rounds)")
    for contender, ratio in ratios(seconds, baseline).items():
        each = statistics.median(seconds[contender]) / messages * 1e9
        print(f"  {contender:<12} {each:8.0f} ns/output   {ratio:6.2f} x {baseline}")
        FIGURES.add(f"{name}/{contender}", each, "ns/output", ratio=ratio, baseline=baseline)


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--messages", type=int, default=100_000)
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())

    words = word_count.application_setup(ADDRESSES)
    market = market_spread.application_setup([*ADDRESSES, "--clock", "1"])
    for vocabulary in (100, 1_000, 2_500, 10_000, 100_000):
        lines = word_lines(options.messages, vocabulary, seed=1)
        machine = Compiled(words)
        machine.feed("Split and Count", lines)
        states = [pickle.dumps(state) for state in machine.stores["word totals"].entities.values()]
        size = statistics.median([len(state) for state in states])
        payloads = batches(lines)
        contenders: dict[str, Callable[[], Run]] = {
            "by-hand": lambda: partial(word_count_by_hand, lines),  # noqa: B023 - called in this turn
            "compiled": lambda: by_machine(Compiled(words), payloads),  # noqa: B023 - called in this turn
        }
        if vocabulary <= 10_000:
            contenders["interpreter"] = lambda: by_machine(Interpreter(words), payloads)  # noqa: B023 - the same
        FIGURES.add(f"word-count/{vocabulary}/entity", size, "bytes")
        title = f"word count, entities of {size:,.0f} bytes"
        compare(f"word-count/{vocabulary}", title, contenders, options.rounds)
    frames = market_frames(options.messages, seed=2)
    compare(
        "market-spread",
        "market spread",
        {
            "by-hand": lambda: partial(market_spread_by_hand, frames),
            "compiled": lambda: by_machine(Compiled(market), frames),
            "interpreter": lambda: by_machine(Interpreter(market), frames),
        },
        options.rounds,
    )
    FIGURES.write(options.json)


if __name__ == "__main__":
    main()
