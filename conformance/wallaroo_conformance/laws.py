"""The laws: which rule a case speaks about, and which difference from the reference breaks it.

A law holds for a case if the engine's whole trace is the reference's: outputs to the byte and in
order, dead letters, final entities. A case *exercises* a law if it has met the facts the law needs.
When a case fails, it is reduced first, so that what is left of it is there because it must be;
the *blame* then falls on the first law in `LAWS` that the reduced case exercises and that speaks of
this kind of difference. The order is from what a reduction would have removed had it been able to
(batch cuts, a second source, a mark in a payload) to what every case has.
"""

from __future__ import annotations

from collections.abc import Iterable

from wallaroo_conformance.differences import KINDS, Kind
from wallaroo_conformance.facts import Facts
from wallaroo_conformance.law import CONTENT, Law, law

_ORDER: frozenset[Kind] = frozenset({"order"})
_STATE: frozenset[Kind] = CONTENT - {"existence"}  # whether there is an entity is state-1's matter


LAWS: tuple[Law, ...] = (
    # What a reduction takes away first: how the case is run.
    law(
        "dead-4/stop", "ended by on-error",
        "the run ends at the first dead letter in order, and nothing after it takes effect",
        "messages after the one that failed are processed, or what precedes it is not delivered",
    ),
    law(
        "dead-3/exit", "ended by exit",
        "SystemExit ends the run; what came before is delivered, and it is no dead letter itself",
        "it catches BaseException, or leaves out what preceded",
    ),
    law(
        "compute-3/parallel", "parallel",
        "to_parallel means the same as to, and what comes out keeps its lineage",
        "results are taken in the order in which they are ready",
        KINDS,
    ),
    law(
        "compute-2/numbers", "multi leaves gaps; dead letter",
        "indices of a multi output count what is left out",
        "items are numbered after leaving out None",
        frozenset({"lineage"}),
    ),
    law(
        "order-1/lineage", "dead letter",
        "a message's lineage is its frame's number and its place in each multi output",
        "frames or items are numbered otherwise",
        frozenset({"lineage"}),
    ),
    law(
        "dead-1/fields", "dead letter",
        "a dead letter tells lineage, source, pipeline, step, sink, key, reason, error type and "
        "payload",
        "a field is filled from the wrong place, such as the payload from the current message",
        frozenset({"letter fields"}),
    ),
    law(
        "route-4/number", "entities",
        "an entity's partition number is the stable hash of its key, of the number of partitions",
        "Python's hash(), which PYTHONHASHSEED changes, or another encoding of the key",
        frozenset({"numbers"}),
    ),
    law(
        "order-2/cuts", "cut into batches",
        "the result is the same however the input is cut into batches",
        "something is lost, repeated or forgotten where one batch ends and the next begins",
    ),
    law(
        "order-1/outputs", "outputs",
        "each sink gets its outputs in order of lineage, depth first",
        "outputs of one message are sent breadth first, or messages overtake one another",
        _ORDER,
    ),
    law(
        "order-1/letters", "dead letter",
        "dead letters come in order of lineage, step and sink",
        "steps are run one after the other over many messages",
        frozenset({"order"}),
    ),
    law(
        "order-1/depth", "several items met an entity twice",
        "a message is taken through all steps before the next item of its multi output",
        "steps are run one after the other over many messages",
    ),
    law(
        "order-2/partitions", "several partitions; partition other than 0",
        "the result is the same for any number of partitions",
        "an entity or a message is looked for in the wrong partition",
    ),
    law(
        "dead-2/others", "dead letter beside outputs; several messages",
        "one bad message harms no other",
        "what goes wrong with one message takes its neighbours along",
        frozenset({"missing", "extra", "changed"}),
    ),
    law(
        "dead-2/letters", "dead letters of several frames, no state involved",
        "one bad message harms no other, bad as that may be itself",
        "what goes wrong with one message takes its neighbours along",
        frozenset({"letters"}),
    ),
    law(
        "state-6/items", "multi gives one object twice",
        "each item of a multi output is its own",
        "items are sent by reference",
    ),
    # Routing.
    law(
        "route-2/alike", "keys look alike",
        "keys are the same when types and values are, at every depth",
        "keys are turned into text, normalised, or compared with ==",
    ),
    law(
        "route-5/range", "bad 64-bit key",
        "64-bit keys are ints from 0 to 2**64 - 1; else the message is a dead letter",
        "the number is cut to 64 bits, or its type is not looked at",
    ),
    law(
        "route-2/bad", "bad key",
        "what is no key is a dead letter, not a guess",
        "a subclass of str or int, or something unhashable, is let through, or ends the run",
    ),
    law(
        "route-5/extreme", "extreme 64-bit key",
        "keys up to 2**64 - 1 are keys",
        "they are stored as signed 64-bit integers",
    ),
    law(
        "route-2/unusual", "unusual key",
        "any text, bytes and tuples are keys, without normalisation",
        "keys take a way that only plain text survives",
    ),
    law(
        "route-3/unknown", "dead letter: unknown-key",
        "where keys are listed, a message with another is a dead letter",
        "it is dropped in silence, or given an entity",
    ),
    law(
        "route-1/hidden", "partition function alters message",
        "what a partition function does to the message is invisible, and it is called once",
        "it is given the message itself instead of a copy",
    ),
    # State: what goes wrong in a call, and what is shared.
    law(
        "state-4/secret", "state altered in secret",
        "after changed=False the entity is what it was before the call",
        "the state is handed out itself, and never put back",
        _STATE,
    ),
    law(
        "state-7/late", "state altered, then raised",
        "after a computation raised the entity is as before the call",
        "the state is handed out itself, and never put back",
        _STATE,
    ),
    law(
        "state-2/pair", "bad pair",
        "a result that is no (output, bool) is a dead letter and leaves the entity as it was",
        "it is unpacked all the same, or its flag taken for true or false",
        _STATE,
    ),
    law(
        "compute-2/raises", "multi raises while it is consumed",
        "if consuming a multi result raises, the whole call has raised and no item goes on",
        "items are sent on while the rest is still to come",
    ),
    law(
        "compute-2/own-list", "multi gives a list of its state; entity met again",
        "a multi result is consumed before its first item goes on, though it be the state's list",
        "the list is gone through while later steps visit the state and alter it",
    ),
    law(
        "dead-1/unportable-state", "state computation gives what cannot be pickled",
        "what does not survive pickling is a dead letter of the whole call, the entity as before",
        "state and outputs are written one after the other",
    ),
    law(
        "state-9/names", "equal keys in several partitions",
        "state partitions with different names share nothing, even for equal keys",
        "entities are found by key alone",
    ),
    law(
        "state-8/shared", "partition shared by pipelines",
        "pipelines that name the same state partition share its entities",
        "each pipeline has state of its own",
    ),
    law(
        "state-6/alias", "state shares an object with a message",
        "an output is what it was when the call ended, and the state likewise",
        "outputs are sent by reference and change afterwards",
    ),
    law(
        "state-6/builder", "builder hands out one object; several keys",
        "entities are their own, even if the builder hands out one object",
        "what the builder returns is kept without a copy",
    ),
    law(
        "state-6/encoders", "encoder alters message of several sinks",
        "each sink's encoder has a message of its own",
        "all sinks get the same object",
    ),
    law(
        "state-1/raises", "builder raises",
        "a builder that raises is a dead letter, and there is no entity",
        "the failure is remembered, or ends the run",
    ),
    # Results.
    law(
        "compute-2/bad", "bad items",
        "str, bytes, mappings, sets and what cannot be iterated are no multi result",
        "anything that can be iterated is",
    ),
    law(
        "compute-1/filter", "computation: none",
        "None filters the message",
        "None is passed on as a message",
    ),
    law(
        "compute-1/falsy", "computation: falsy",
        "only None filters: 0, '', b'', [] and False are messages",
        "the result is tested for truth",
    ),
    law(
        "compute-1/falsy-containers", "computation: empty",
        "only None filters: 0, '', b'', [] and False are messages",
        "the result is tested for truth",
    ),
    law(
        "state-5/falsy", "state computation sends falsy",
        "only None sends nothing",
        "the output is tested for truth",
    ),
    law(
        "compute-2/falsy", "multi gives falsy",
        "only None is left out of a multi result",
        "items are tested for truth",
    ),
    law(
        "compute-2/gaps", "multi leaves gaps",
        "items that are None are left out, and counted by indices",
        "None is passed on, or indices are counted after leaving out",
    ),
    law(
        "compute-2/none", "multi gives none",
        "None and an empty iterable give no message",
        "None is not expected where a list is",
    ),
    law(
        "state-5/kept", "state changed, nothing sent",
        "None as output sends nothing, and the state is kept all the same",
        "the state is written only with an output",
    ),
    law(
        "state-5/nothing", "state computation sends nothing",
        "None as output sends nothing, whatever changed says",
        "None is passed on as a message",
    ),
    law(
        "decode-1/filter", "decoder filters",
        "None from the decoder filters the message",
        "None is passed on as a message",
    ),
    law(
        "sink-1/none", "encoder filters",
        "None from an encoder writes nothing",
        "None is written, or is an error",
    ),
    law(
        "sink-1/bad", "dead letter: encode",
        "what is neither bytes nor text that UTF-8 takes is a dead letter of that sink alone",
        "it is turned into text, or ends more than this sink's output",
    ),
    law(
        "sink-1/empty", "encoder gives falsy",
        "no bytes are an output too",
        "the result is tested for truth",
    ),
    law(
        "sink-2/several", "several sinks",
        "each of several sinks gets every message",
        "the sinks share what is meant for each",
    ),
    law(
        "frame-2/zero", "zero-length frame",
        "a frame of length 0 is a frame like any other",
        "an empty payload is taken for no payload",
    ),
    law(
        "decode-1/falsy", "decoder gives falsy",
        "only None from the decoder filters the message",
        "the message is tested for truth",
    ),
    law(
        "dead-1/decode", "dead letter: decode",
        "a decoder that raises makes a dead letter of its frame",
        "the frame is dropped in silence, or ends the run",
    ),
    law(
        "dead-1/unportable", "dead letter: unportable",
        "what does not survive pickling is a dead letter",
        "it is passed on by reference, or ends the run",
    ),
    law(
        "dead-3/raised", "dead letter: raised",
        "every exception of user code is a dead letter",
        "some exceptions have a meaning of their own to the engine, such as StopIteration",
        CONTENT - {"entities", "existence"},
    ),
    law(
        "order-1/entity", "entity met again",
        "an entity meets its messages in order of lineage",
        "messages of a batch come to their entity in any order",
        frozenset({"changed"}),
    ),
    law(
        "state-1/exists", "several keys",
        "an entity exists from its first message on",
        "some entities get lost where many are kept together",
        frozenset({"existence"}),
    ),
    # State and routing, at their plainest.
    law(
        "state-9/apart", "several state partitions",
        "state partitions with different names share nothing",
        "entities are found by key alone",
    ),
    law(
        "state-4/unchanged", "state unchanged",
        "after changed=False the entity is what it was before the call",
        "the flag is not looked at",
        _STATE,
    ),
    law(
        "route-6/single", "single entity met again",
        "to_stateful has one entity",
        "messages are routed where there is nothing to route by",
    ),
    law(
        "route-1/again", "entity met again",
        "messages with the same key meet the same entity",
        "the entity is looked for elsewhere, or made anew",
    ),
    law(
        "route-1/apart", "several keys",
        "messages with different keys never share an entity",
        "entities are found by something coarser than the key",
    ),
    law(
        "route-3/listed", "listed key",
        "a listed key has its entity",
        "keys are listed in one form and looked up in another",
    ),
    law(
        "compute-2/state", "multi with state",
        "a multi state computation sends each of its items",
        "only the first item is sent, or the list itself",
    ),
    law(
        "compute-2/items", "multi",
        "each item of a multi result is a message",
        "only the first item is sent, or the list itself",
    ),
    law(
        "state-3/changed", "state changed",
        "after changed=True the entity is what the computation left",
        "the entity is not written back",
    ),
    law(
        "state-1/built", "entity built",
        "an entity is built when its first message comes, and exists from then on, as built",
        "the entity appears only once a call has succeeded",
    ),
    # What every case has.
    law(
        "decode-1/payload", "decoded",
        "the decoder gets each payload, once, without header",
        "header or neighbouring bytes leak into the payload",
        frozenset({"changed", "letters", "entities", "existence", "letter fields"}),
    ),
    law(
        "order-2/exact", "decoded",
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
    """Return the law that a reduced case with these facts and differences speaks of.

    Args:
        facts: what the case has met.
        kinds: how the traces differ.
        ended: how the run ended early, of `end_of`. Where the ends differ, it is nothing else: if
            the case failed without them, the reduction would have taken them away.
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
    "decoded",
    "an engine that cannot run an application says so when it is asked, before it reads input",
    "check() accepts what run() then refuses",
)
"""Blamed for `UnsupportedTopology` from `run`, which no difference of traces shows."""
