"""What decoders, computations and encoders give."""

from __future__ import annotations

from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.law import CONTENT, Law, law

RESULT_LAWS: tuple[Law, ...] = (
    law(
        "compute-2/bad", {Fact.BAD_ITEMS},
        "str, bytes, mappings, sets and what cannot be iterated are not a multi result",
        "anything that can be iterated is",
    ),
    law(
        "compute-1/filter", {Fact.COMPUTATION_FILTERS},
        "None filters the message",
        "None is passed on as a message",
    ),
    law(
        "compute-1/falsy", {Fact.COMPUTATION_GIVES_FALSY},
        "only None filters: 0, '', b'' and False are messages",
        "the result is tested for truth",
    ),
    law(
        "compute-1/falsy-containers", {Fact.COMPUTATION_GIVES_EMPTY},
        "only None filters: empty lists, dictionaries and tuples are messages",
        "the result is tested for truth",
    ),
    law(
        "state-5/falsy", {Fact.STATE_COMPUTATION_GIVES_FALSY},
        "only None sends nothing",
        "the output is tested for truth",
    ),
    law(
        "compute-2/falsy", {Fact.MULTI_GIVES_FALSY},
        "only None is left out of a multi result",
        "items are tested for truth",
    ),
    law(
        "compute-2/gaps", {Fact.MULTI_LEAVES_GAPS},
        "items that are None are left out, and counted by indices",
        "None is passed on, or indices are counted after leaving out",
    ),
    law(
        "state-3/no-items", {Fact.MULTI_GIVES_NONE, Fact.STATE_CHANGED},
        "after changed=True the entity is what the call left, though it gave no message",
        "the state is written only with items",
        frozenset({"entities"}),
    ),
    law(
        "compute-2/none", {Fact.MULTI_GIVES_NONE},
        "None and an empty iterable give no message",
        "None is not expected where a list is",
    ),
    law(
        "state-5/kept", {Fact.STATE_CHANGED_NOTHING_SENT},
        "None as output sends nothing, and the state is kept all the same",
        "the state is written only with an output",
    ),
    law(
        "state-5/nothing", {Fact.STATE_COMPUTATION_GIVES_NONE},
        "None as output sends nothing, whatever changed says",
        "None is passed on as a message",
    ),
    law(
        "decode-1/filter", {Fact.DECODER_FILTERS},
        "None from the decoder filters the message",
        "None is passed on as a message",
    ),
    law(
        "sink-1/refused", {Fact.OUTPUT},
        "bytes are an output, and text that UTF-8 takes is one",
        "the one or the other is refused",
        signs={"more encode"},
    ),
    law(
        "sink-1/annotation", {Fact.ENCODER_ANNOTATED},
        "what an encoder returns counts, not what its annotation announces",
        "the annotation is believed, and the result not looked at",
    ),
    law(
        "sink-1/none", {Fact.ENCODER_FILTERS},
        "None from an encoder writes nothing",
        "None is written, or is an error",
    ),
    law(
        "sink-1/bad", {Fact.ENCODE_LETTER},
        "what is neither bytes nor text that UTF-8 takes is a dead letter of that sink alone",
        "it is turned into text, or ends more than this sink's output",
    ),
    law(
        "sink-1/empty", {Fact.ENCODER_GIVES_FALSY},
        "no bytes are an output too",
        "the result is tested for truth",
    ),
    law(
        "sink-2/several", {Fact.SEVERAL_SINKS},
        "each of several sinks gets every message",
        "the sinks share what is meant for each",
    ),
    law(
        "frame-2/zero", {Fact.EMPTY_FRAME},
        "a frame of length 0 is a frame like any other",
        "an empty payload is taken for no payload",
    ),
    law(
        "decode-1/falsy", {Fact.DECODER_GIVES_FALSY},
        "only None from the decoder filters the message",
        "the message is tested for truth",
    ),
    law(
        "dead-1/decode", {Fact.DECODE_LETTER},
        "a decoder that raises makes a dead letter of its frame",
        "the frame is dropped in silence, or ends the run",
    ),
    law(
        "dead-1/unportable", {Fact.UNPORTABLE_LETTER},
        "what does not survive pickling is a dead letter",
        "it is passed on by reference, or ends the run",
    ),
    law(
        "dead-3/raised", {Fact.UNUSUAL_ERROR},
        "every exception of user code is a dead letter",
        "some exceptions have a meaning of their own to the engine, such as StopIteration",
        CONTENT - {"entities", "existence"},
        unless={"more bad-result", "more bad-key", "more unportable"},  # a letter all the same
    ),
    law(
        "dead-1/raised", {Fact.RAISED_LETTER},
        "user code that raises makes a dead letter of its message",
        "the message is dropped in silence, or the exception ends the run",
        CONTENT - {"entities", "existence"},
    ),
    law(
        "order-1/entity", {Fact.MET_AGAIN},
        "an entity meets its messages in order of lineage",
        "messages of a batch come to their entity in any order",
        frozenset({"changed"}),
    ),
    law(
        "state-1/exists", {Fact.SEVERAL_KEYS},
        "an entity exists from its first message on",
        "some entities get lost where many are kept together",
        frozenset({"existence"}),
    ),
    law(
        "decode-1/again", {Fact.DECODED_AGAIN},
        "the decoder is called for each frame, also for a payload that came before",
        "messages are remembered by their payloads, and handed out again",
        frozenset({"changed", "letters"}),
    ),
)  # fmt: skip
