"""The laws: which rule a case speaks about, and which difference from the reference breaks it.

A law holds for a case if the engine's whole trace is the reference's: outputs to the byte and in
order, dead letters, final entities. A case *exercises* a law if it has met the facts the law needs.
When a case fails, it is reduced first, so that what is left of it is there because it must be;
the *blame* then falls on the first law in `LAWS` that the reduced case exercises and that speaks of
this kind of difference. The order is from what a reduction would have removed had it been able to
(batch boundaries, a second source, a mark in a payload) to what every case has.
"""

from __future__ import annotations

from collections.abc import Iterable

from wallaroo_conformance.judge.differences import KINDS, Kind
from wallaroo_conformance.judge.fact import Fact, Facts
from wallaroo_conformance.judge.law import CONTENT, Law, law

_ORDER: frozenset[Kind] = frozenset({"order"})
_STATE: frozenset[Kind] = CONTENT - {"existence"}  # whether there is an entity is state-1's matter


LAWS: tuple[Law, ...] = (
    # How the case is run: a reduction takes this away first.
    law(
        "dead-4/stop", {Fact.STOPPED},
        "the run ends at the first dead letter in order, and nothing after it takes effect",
        "messages after the one that failed are processed, or what precedes it is not delivered",
    ),
    law(
        "dead-3/exit", {Fact.EXITED},
        "SystemExit ends the run; what came before is delivered, and it is no dead letter itself",
        "it catches BaseException, or leaves out what preceded",
    ),
    law(
        "compute-3/parallel", {Fact.PARALLEL},
        "to_parallel means the same as to, and what comes out keeps its lineage",
        "results are taken in the order in which they are ready",
        KINDS,
    ),
    law(
        "compute-2/numbers", {Fact.MULTI_LEAVES_GAPS, Fact.LETTER},
        "indices of a multi output count what is left out",
        "items are numbered after leaving out None",
        frozenset({"lineage"}),
    ),
    law(
        "order-1/lineage", {Fact.LETTER},
        "a message's lineage is its frame's number and its place in each multi output",
        "frames or items are numbered otherwise",
        frozenset({"lineage"}),
    ),
    law(
        "dead-1/fields", {Fact.LETTER},
        "a dead letter tells lineage, source, pipeline, step, sink, key, reason, error type and "
        "payload",
        "a field is filled from the wrong place, such as the payload from the current message",
        frozenset({"letter fields"}),
    ),
    law(
        "route-4/number", {Fact.ENTITIES},
        "an entity's partition number is the stable hash of its key, of the number of partitions",
        "Python's hash(), which PYTHONHASHSEED changes, or another encoding of the key",
        frozenset({"numbers"}),
    ),
    law(
        "order-2/cuts", {Fact.CUT},
        "the result is the same however the input is cut into batches",
        "something is lost, repeated or forgotten where one batch ends and the next begins",
    ),
    law(
        "order-1/outputs", {Fact.OUTPUTS},
        "each sink gets its outputs in order of lineage, depth first",
        "outputs of one message are sent breadth first, or messages overtake one another",
        _ORDER,
    ),
    law(
        "order-1/letters", {Fact.LETTER},
        "dead letters come in order of lineage, step and sink",
        "steps are run one after the other over many messages",
        frozenset({"order"}),
    ),
    law(
        "order-1/depth", {Fact.SEVERAL_ITEMS_MEET_AGAIN},
        "a message is taken through all steps before the next item of its multi output",
        "steps are run one after the other over many messages",
    ),
    law(
        "order-2/partitions", {Fact.SEVERAL_PARTITIONS, Fact.OTHER_PARTITION},
        "the result is the same for any number of partitions",
        "an entity or a message is looked for in the wrong partition",
    ),
    law(
        "dead-2/others", {Fact.LETTER_BESIDE_OUTPUTS, Fact.SEVERAL_MESSAGES},
        "one bad message harms no other",
        "what goes wrong with one message takes its neighbours along",
        frozenset({"missing", "extra", "changed"}),
    ),
    law(
        "dead-2/letters", {Fact.LETTERS_WITHOUT_STATE},
        "one bad message harms no other, bad as that may be itself",
        "what goes wrong with one message takes its neighbours along",
        frozenset({"letters"}),
    ),
    law(
        "state-6/items", {Fact.MULTI_GIVES_SAME_OBJECT},
        "each item of a multi output is its own",
        "items are sent by reference",
    ),
    # Routing.
    law(
        "route-2/alike", {Fact.KEYS_ALIKE},
        "keys are the same when types and values are, at every depth",
        "keys are turned into text, normalised, or compared with ==",
    ),
    law(
        "route-5/range", {Fact.BAD_U64_KEY},
        "64-bit keys are ints from 0 to 2**64 - 1; else the message is a dead letter",
        "the number is cut to 64 bits, or its type is not looked at",
    ),
    law(
        "route-2/bad", {Fact.BAD_KEY},
        "what is no key is a dead letter, not a guess",
        "a subclass of str or int, or something unhashable, is let through, or ends the run",
    ),
    law(
        "route-5/extreme", {Fact.EXTREME_U64_KEY},
        "keys up to 2**64 - 1 are keys",
        "they are stored as signed 64-bit integers",
    ),
    law(
        "route-2/unusual", {Fact.UNUSUAL_KEY},
        "any text, bytes and tuples are keys, without normalisation",
        "keys take a way that only plain text survives",
    ),
    law(
        "route-3/unknown", {Fact.UNKNOWN_KEY_LETTER},
        "where keys are listed, a message with another is a dead letter",
        "it is dropped in silence, or given an entity",
    ),
    law(
        "route-1/hidden", {Fact.ROUTE_ALTERS},
        "what a partition function does to the message is invisible, and it is called once",
        "it is given the message itself instead of a copy",
    ),
    # State: what goes wrong in a call, and what is shared.
    law(
        "state-4/secret", {Fact.STATE_ALTERED_SILENTLY},
        "after changed=False the entity is what it was before the call",
        "the state is handed out itself, and never put back",
        _STATE,
    ),
    law(
        "state-7/late", {Fact.STATE_ALTERED_THEN_RAISED},
        "after a computation raised the entity is as before the call",
        "the state is handed out itself, and never put back",
        _STATE,
    ),
    law(
        "state-2/pair", {Fact.BAD_PAIR},
        "a result that is no (output, bool) is a dead letter and leaves the entity as it was",
        "it is unpacked all the same, or its flag taken for true or false",
        _STATE,
    ),
    law(
        "compute-2/raises", {Fact.MULTI_RAISES_CONSUMED},
        "if consuming a multi result raises, the whole call has raised and no item goes on",
        "items are sent on while the rest is still to come",
    ),
    law(
        "compute-2/own-list", {Fact.MULTI_GIVES_OWN_LIST, Fact.MET_AGAIN},
        "a multi result is consumed before its first item goes on, though it be the state's list",
        "the list is gone through while later steps visit the state and alter it",
    ),
    law(
        "dead-1/unportable-state", {Fact.STATE_COMPUTATION_UNPORTABLE},
        "what does not survive pickling is a dead letter of the whole call, the entity as before",
        "state and outputs are written one after the other",
    ),
    law(
        "state-9/names", {Fact.EQUAL_KEYS_APART},
        "state partitions with different names share nothing, even for equal keys",
        "entities are found by key alone",
    ),
    law(
        "state-8/shared", {Fact.PARTITION_SHARED},
        "pipelines that name the same state partition share its entities",
        "each pipeline has state of its own",
    ),
    law(
        "state-6/alias", {Fact.STATE_SHARES},
        "an output is what it was when the call ended, and the state likewise",
        "outputs are sent by reference and change afterwards",
    ),
    law(
        "state-6/builder", {Fact.BUILDER_SHARES, Fact.SEVERAL_KEYS},
        "entities are their own, even if the builder hands out one object",
        "what the builder returns is kept without a copy",
    ),
    law(
        "state-6/encoders", {Fact.ENCODER_ALTERS_SHARED},
        "each sink's encoder has a message of its own",
        "all sinks get the same object",
    ),
    law(
        "state-1/raises", {Fact.BUILDER_RAISES},
        "a builder that raises is a dead letter, and there is no entity",
        "the failure is remembered, or ends the run",
    ),
    # Results.
    law(
        "compute-2/bad", {Fact.BAD_ITEMS},
        "str, bytes, mappings, sets and what cannot be iterated are no multi result",
        "anything that can be iterated is",
    ),
    law(
        "compute-1/filter", {Fact.COMPUTATION_FILTERS},
        "None filters the message",
        "None is passed on as a message",
    ),
    law(
        "compute-1/falsy", {Fact.COMPUTATION_GIVES_FALSY},
        "only None filters: 0, '', b'', [] and False are messages",
        "the result is tested for truth",
    ),
    law(
        "compute-1/falsy-containers", {Fact.COMPUTATION_GIVES_EMPTY},
        "only None filters: 0, '', b'', [] and False are messages",
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
        "dead-3/raised", {Fact.RAISED_LETTER},
        "every exception of user code is a dead letter",
        "some exceptions have a meaning of their own to the engine, such as StopIteration",
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
    # State and routing, in the simplest cases.
    law(
        "state-9/apart", {Fact.SEVERAL_STATE_PARTITIONS},
        "state partitions with different names share nothing",
        "entities are found by key alone",
    ),
    law(
        "state-4/unchanged", {Fact.STATE_UNCHANGED},
        "after changed=False the entity is what it was before the call",
        "the flag is not looked at",
        _STATE,
    ),
    law(
        "state-3/falsy", {Fact.FALSY_STATE, Fact.MET_AGAIN},
        "a state that is false is a state like any other",
        "the state is tested for truth to learn whether there is an entity",
        _STATE,
    ),
    law(
        "route-6/single", {Fact.SINGLE_MET_AGAIN},
        "to_stateful has one entity",
        "messages are routed where there is nothing to route by",
    ),
    law(
        "route-1/again", {Fact.MET_AGAIN},
        "messages with the same key meet the same entity",
        "the entity is looked for elsewhere, or made anew",
    ),
    law(
        "route-1/apart", {Fact.SEVERAL_KEYS},
        "messages with different keys never share an entity",
        "entities are found by something coarser than the key",
    ),
    law(
        "route-3/listed", {Fact.LISTED_KEY},
        "a listed key has its entity",
        "keys are listed in one form and looked up in another",
    ),
    law(
        "compute-2/state", {Fact.MULTI_WITH_STATE},
        "a multi state computation sends each of its items",
        "only the first item is sent, or the list itself",
    ),
    law(
        "compute-2/items", {Fact.MULTI},
        "each item of a multi result is a message",
        "only the first item is sent, or the list itself",
    ),
    law(
        "state-3/changed", {Fact.STATE_CHANGED},
        "after changed=True the entity is what the computation left",
        "the entity is not written back",
    ),
    law(
        "state-1/built", {Fact.ENTITY_BUILT},
        "an entity is built when its first message comes, and exists from then on, as built",
        "the entity appears only once a call has succeeded",
    ),
    # What every case has.
    law(
        "decode-1/payload", {Fact.DECODED},
        "the decoder gets each payload, once, without header",
        "header or neighbouring bytes leak into the payload",
        frozenset({"changed", "letters", "entities", "existence", "letter fields"}),
    ),
    law(
        "order-2/exact", {Fact.DECODED},
        "the output of each sink is one exact byte string per input log",
        "messages are lost, repeated or altered on the way",
        KINDS,
    ),
)  # fmt: skip
"""From the most particular to what every case has; see the module's text."""


def exercised(facts: Facts) -> tuple[Law, ...]:
    """Return the laws that a case with these facts exercises."""
    return tuple([law for law in LAWS if law.needs <= facts])


def blame(facts: Facts, kinds: Iterable[Kind], ended: str | None = None) -> Law:
    """Return the law that gets the blame for a reduced case with these facts and differences.

    Args:
        facts: what the case has met.
        kinds: how the traces differ.
        ended: how the run ended early, as `end_of` says. Where the ends differ, they are the fault:
            if the case failed without an early end, the reduction would have removed it.
    """
    kinds = frozenset(kinds)
    if "ended" in kinds and ended is not None:
        return _ENDS[ended]
    return next((law for law in LAWS if law.blamed_for(facts, kinds)), _EXACT)


_BY_ID = {law.id: law for law in LAWS}
_EXACT = _BY_ID["order-2/exact"]
_ENDS = {"on-error": _BY_ID["dead-4/stop"], "exit": _BY_ID["dead-3/exit"]}

ANSWERS = law(
    "build-2/answers",
    {Fact.DECODED},
    "an engine that cannot run an application says so when it is asked, before it reads input",
    "check() accepts what run() then refuses",
)
"""Blamed for `UnsupportedTopology` from `run`, which no difference between traces shows."""
