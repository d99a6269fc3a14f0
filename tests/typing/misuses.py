"""What is wrong to a type checker: each line that ends in ``# E: CODE``, and no other.

`test_typing.py` compares this with what mypy says. The module is never run.
"""

from __future__ import annotations

from collections.abc import Iterator

from applications import (
    Count,
    CountTwice,
    Decoder,
    Encoder,
    FirstLetter,
    Split,
    Totals,
    TotalsBuilder,
    application,
    by_length,
    count,
    decode,
    encode,
    first_letter,
    split,
)
from streams import Length, Longest, second, shout, total, words

import wallaroo
from wallaroo import kinds, testing

builder = wallaroo.ApplicationBuilder("app")
source = wallaroo.TCPSourceConfig("127.0.0.1", 0, decode)
sink = wallaroo.TCPSinkConfig("127.0.0.1", 0, encode)


# Decorators: their arguments, and what the function under them returns

wallaroo.decoder(header_length="4", length_fmt=">I")  # E: call-overload
wallaroo.decoder(4)  # E: call-overload
wallaroo.computation()  # E: call-arg
wallaroo.computation(name=5)  # E: arg-type
wallaroo.computation(decode)  # E: arg-type
wallaroo.encoder(5)  # E: arg-type
wallaroo.encoder(encode, decode)  # E: call-arg


@wallaroo.state_computation(name="the output alone")  # E: arg-type
def output_alone(word: str, totals: Totals) -> int:
    return 1


@wallaroo.state_computation(name="nothing")  # E: arg-type
def nothing(word: str, totals: Totals) -> None:
    totals.counts[word] = 1


@wallaroo.state_computation(name="no pair at times")  # E: arg-type
def no_pair_at_times(word: str, totals: Totals) -> tuple[int, bool] | None:
    return (1, True) if word else None


@wallaroo.state_computation(name="changed is a number")  # E: arg-type
def changed_is_a_number(word: str, totals: Totals) -> tuple[str, int]:
    return word, 1


@wallaroo.state_computation(name="three")  # E: arg-type
def three(word: str, totals: Totals) -> tuple[str, int, bool]:
    return word, 1, True


@wallaroo.state_computation(name="yields")  # E: arg-type
def yields(word: str, totals: Totals) -> Iterator[tuple[str, bool]]:
    yield word, True


@wallaroo.state_computation(name="async")  # E: arg-type
async def coroutine(word: str, totals: Totals) -> tuple[str, bool]:
    return word, True


@wallaroo.state_computation_multi(name="a list alone")  # E: arg-type
def list_alone(word: str, totals: Totals) -> list[str]:
    return [word]


@wallaroo.state_computation_multi(name="one output")  # E: type-var
def one_output(word: str, totals: Totals) -> tuple[int, bool]:
    return 1, True


@wallaroo.computation_multi(name="one message")  # E: type-var
def one_message(word: str) -> int:
    return len(word)


@wallaroo.encoder  # E: type-var
def encode_as_number(word: str) -> float:
    return 1.0


@wallaroo.encoder  # E: type-var
def encode_as_array(word: str) -> bytearray:
    return bytearray()


@wallaroo.partition  # E: type-var
def key_is_a_number(word: str) -> float:
    return 1.0


@wallaroo.partition  # E: type-var
def no_key_at_times(word: str) -> str | None:
    return word or None


@wallaroo.partition  # E: type-var
def key_is_a_list(word: str) -> list[str]:
    return [word]


# Decorated functions are what they were

split(b"bytes where text is meant")  # E: arg-type
split.compute_multi("one", "two")  # E: call-arg
split.compute("it is a multi computation")  # E: attr-defined
count("no state")  # E: call-arg
first_letter(5)  # E: arg-type
decode.header_length(4)  # E: call-arg


# A component of the wrong kind, or with methods that do not fit


class WithoutName:
    def compute(self, word: str) -> str:
        return word


class NameIsNoMethod(WithoutName):
    name = "a name"


class NeedsAnArgument(WithoutName):
    def __init__(self, given: str) -> None:
        self.given = given

    def name(self) -> str:
        return self.given


class CountAlone:
    def name(self) -> str:
        return "count"

    def compute(self, word: str, totals: Totals) -> int:
        return 1


class EncodeAsNumber:
    def encode(self, word: str) -> float:
        return 1.0


class HeaderAsText:
    def header_length(self) -> str:
        return "4"

    def payload_length(self, header: bytes) -> int:
        return 4

    def decode(self, payload: bytes) -> str:
        return ""


class KeyIsANumber:
    def partition(self, word: str) -> float:
        return 1.0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_text(payload: str) -> str:
    return payload


@wallaroo.computation(name="no message")
def no_message() -> str:
    return ""


@wallaroo.state_computation(name="no state")
def no_state(word: str) -> tuple[str, bool]:
    return word, True


def plain(word: str) -> str:
    return word


builder.to()  # E: call-arg
builder.to(count)  # E: arg-type
builder.to(Count)  # E: arg-type
builder.to(Count())  # E: arg-type
builder.to(CountTwice())  # E: arg-type
builder.to(encode)  # E: arg-type
builder.to(decode)  # E: arg-type
builder.to(first_letter)  # E: arg-type
builder.to(FirstLetter)  # E: arg-type
builder.to(plain)  # E: arg-type
builder.to(lambda word: word)  # E: arg-type
builder.to("split")  # E: arg-type
builder.to(no_message)  # E: arg-type
builder.to(WithoutName)  # E: arg-type
builder.to(NameIsNoMethod())  # E: arg-type
builder.to(NeedsAnArgument)  # E: arg-type
builder.to(NeedsAnArgument("given"))
builder.to_parallel(count)  # E: arg-type
builder.to_parallel(Count())  # E: arg-type

builder.to_stateful(count)  # E: call-overload
builder.to_stateful(count, Totals)  # E: call-overload
builder.to_stateful(count, Totals, None)  # E: call-overload
builder.to_stateful(split, Totals, "t")  # E: arg-type
builder.to_stateful(no_state, Totals, "t")  # E: arg-type
builder.to_stateful(CountAlone(), Totals, "t")  # E: call-overload
builder.to_stateful(Count, Totals, "t")  # E: call-overload
builder.to_stateful(count, Totals(), "t")  # E: call-overload
builder.to_stateful(count, dict, "t")  # E: misc

builder.to_state_partition(count, Totals)  # E: call-arg
builder.to_state_partition(Split(), Totals, "t", first_letter)  # E: arg-type
builder.to_state_partition(CountAlone(), Totals, "t", first_letter)  # E: arg-type
builder.to_state_partition(count, Totals(), "t", first_letter)  # E: arg-type
builder.to_state_partition(count, list, "t", first_letter)  # E: misc
builder.to_state_partition(count, TotalsBuilder, "t", first_letter)  # E: misc
builder.to_state_partition(count, lambda: Totals(), "t", first_letter)  # E: arg-type
builder.to_state_partition(count, Totals, 5, first_letter)  # E: arg-type
builder.to_state_partition(count, Totals, "t", split)  # E: arg-type
builder.to_state_partition(count, Totals, "t", plain)  # E: arg-type
builder.to_state_partition(count, Totals, "t", KeyIsANumber)  # E: arg-type
builder.to_state_partition(count, Totals, "t", first_letter, "abc")  # E: arg-type
builder.to_state_partition_u64(count, Totals, "t", first_letter)  # E: arg-type
builder.to_state_partition_u64(count, Totals, "t", by_length, ["a"])  # E: list-item

wallaroo.TCPSourceConfig("h", 1, encode)  # E: arg-type
wallaroo.TCPSourceConfig("h", 1, Encoder)  # E: arg-type
wallaroo.TCPSourceConfig("h", 1, decode_text)  # E: arg-type
wallaroo.TCPSourceConfig("h", 1, HeaderAsText())  # E: call-overload
wallaroo.TCPSourceConfig("h", 1, decode, max_size="1")  # E: call-overload
wallaroo.TCPSinkConfig("h", 1, decode)  # E: arg-type
wallaroo.TCPSinkConfig("h", 1, Decoder())  # E: arg-type
wallaroo.TCPSinkConfig("h", 1, EncodeAsNumber)  # E: arg-type
wallaroo.TCPSinkConfig("h", 1, plain)  # E: arg-type
wallaroo.TCPSinkConfig("h", None, encode)  # E: arg-type


# The other calls

wallaroo.ApplicationBuilder(5)  # E: arg-type
builder.new_pipeline("p", 7010)  # E: arg-type
builder.new_pipeline("p", sink)  # E: arg-type
builder.new_pipeline("p")  # E: call-arg
builder.to_sink(source)  # E: arg-type
builder.to_sinks(sink)  # E: arg-type
builder.to_sinks(None)  # E: arg-type
builder.done().build().nodes.append(1)  # E: attr-defined
wallaroo.tcp_parse_input_addrs(5)  # E: arg-type
testing.run(application, "payloads")  # E: arg-type
testing.run(application, {"p": [b"a"]}, isolation="none")  # E: arg-type
testing.run(application, {"p": [b"a"]}, on_error="ignore")  # E: arg-type
testing.run(application, {"p": [b"a"]}).output.decode()  # E: attr-defined


# A class that names its kind is told at the class


class Named(kinds.StateComputation[str, Totals, int]):
    def name(self) -> str:
        return "named"

    def compute(self, word: str, totals: Totals) -> int:  # E: override
        return 1


class WithoutPayloadLength(kinds.Decoder[str]):
    def header_length(self) -> int:
        return 4

    def decode(self, payload: bytes) -> str:
        return ""


WithoutPayloadLength()  # E: abstract


# Pipelines: messages and keys have to fit


@wallaroo.state_computation(name="other state", state=Totals)
def other_state(word: str, counts: dict[str, int]) -> int:
    return 1


@wallaroo.state_computation_multi(name="no messages", state=Totals)  # E: type-var
def no_messages(word: str, totals: Totals) -> int:
    return 1


class WithoutUpdate:
    def initial_accumulator(self) -> int:
        return 0

    def output(self, key: object, count: int) -> int:
        return count


class UpdateLosesTheType(WithoutUpdate):
    def update(self, word: str, count: int) -> str:
        return word


words.to(shout)
words.to(shout).to(shout)  # E: arg-type
words.to(Length).to(split)  # E: arg-type
words.to(Length).to(Split)  # E: arg-type
words.to(Length).to_parallel(Split())  # E: arg-type
words.to(Length).to(total)  # E: arg-type
words.to(Length).key_by(first_letter)  # E: arg-type
words.to(Length).to(second.over(Longest))  # E: arg-type
words.to(second.over(Longest))  # E: arg-type
words.to(Longest)  # E: arg-type
words.to(count)  # E: arg-type
words.to(Count())  # E: arg-type
words.to(other_state)  # E: misc
words.to_parallel(total)  # E: arg-type
words.key_by(split)  # E: arg-type
words.key_by(KeyIsANumber)  # E: type-var
words.to_sink(sink)  # E: arg-type
words.to_sinks([sink])  # E: list-item
words.merge(5)  # E: arg-type
second.over(WithoutUpdate)  # E: arg-type
second.over(UpdateLosesTheType())  # E: misc
builder.to(total)  # E: arg-type
builder.to_stateful(total, Totals, "t")  # E: arg-type
builder.to_window(second.over(Longest), by_length)  # E: arg-type
builder.to_window(Longest, first_letter)  # E: arg-type
wallaroo.TCPSourceConfig("h", 1, decode, event_time=bytes.hex)  # E: arg-type
wallaroo.GenSourceConfig(decode)  # E: arg-type
wallaroo.build_application("words", builder)  # E: arg-type
