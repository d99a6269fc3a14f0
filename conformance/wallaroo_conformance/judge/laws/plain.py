"""State, routing and results at their plainest, and what every case has."""

from __future__ import annotations

from wallaroo_conformance.judge.differences import KINDS
from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.law import STATE, Law, law

PLAIN_LAWS: tuple[Law, ...] = (
    law(
        "state-2/refused", {Fact.ENTITY_BUILT},
        "every pair of an output and a bool is a result",
        "some outputs are taken for no result",
        signs={"more bad-result"},
    ),
    law(
        "compute-2/refused", {Fact.MULTI},
        "whatever gives items one after the other is a multi result",
        "only lists are, or an empty one is none",
        signs={"more bad-result"},
    ),
    law(
        "state-9/apart", {Fact.SEVERAL_STATE_PARTITIONS},
        "state partitions with different names share nothing",
        "entities are found by key alone",
    ),
    law(
        "state-4/unchanged", {Fact.STATE_UNCHANGED},
        "after changed=False the entity is what it was before the call",
        "the flag is not looked at",
        STATE,
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
        "compute-2/state", {Fact.MULTI_WITH_STATE},
        "a multi state computation sends each of its items",
        "only the first item is sent, or the list itself, or a generator changes the state in vain",
    ),
    law(
        "compute-2/items", {Fact.MULTI},
        "each item of a multi result is a message",
        "only the first item is sent, or the list itself, or not all of many items",
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
    # The plainest of all.
    law(
        "sink-1/own-kind", {Fact.ENCODER_UNUSUAL},
        "what an encoder gives is written, of whichever kind of bytes or text it is",
        "an output's exact type is looked at, or its own methods are asked",
    ),
    law(
        "sink-1/utf-8", {Fact.OUTPUT_BEYOND_ASCII},
        "text is written as UTF-8, each character as it is",
        "it is normalised, or written in another encoding",
        frozenset({"changed"}),
    ),
    law(
        "compute-1/result", {Fact.COMPUTED},
        "a computation maps a message to a message",
        "some results have a meaning of their own to the engine",
    ),
    law(
        "state-1/waits", frozenset(),
        "there is no entity before its first message",
        "entities of listed keys are built when the run begins",
        frozenset({"existence"}),
    ),
    # What every case has.
    law(
        "decode-1/payload", {Fact.DECODED},
        "the decoder gets each payload, once, without header",
        "header or neighbouring bytes leak into the payload",
        frozenset({"changed", "letters", "entities", "existence", "keys", "letter fields"}),
    ),
    law(
        "order-2/exact", {Fact.DECODED},
        "the output of each sink is one exact byte string per input log",
        "messages are lost, repeated or altered on the way",
        KINDS,
    ),
)  # fmt: skip
