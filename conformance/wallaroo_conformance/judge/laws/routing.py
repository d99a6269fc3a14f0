"""Which entity a message meets, and what is not a key."""

from __future__ import annotations

from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.law import CONTENT, STATE, Law, law

ROUTING_LAWS: tuple[Law, ...] = (
    law(
        "route-3/unknown", {Fact.UNKNOWN_KEY_LETTER},
        "where keys are listed, a message with another is a dead letter",
        "it is dropped in silence, or given an entity",
    ),
    law(
        "route-3/listed", {Fact.LISTED_KEY},
        "a listed key has its entity",
        "keys are listed in one form and looked up in another",
    ),
    law(
        "route-2/alike", {Fact.KEYS_ALIKE},
        "keys are the same when types and values are, at every depth",
        "keys are turned into text, normalised, or compared with ==",
    ),
    law(
        "route-5/refused", {Fact.U64_KEY},
        "every int from 0 to 2**64 - 1 is a key",
        "0 is taken for no key, or a large one for too large",
        signs={"more bad-key"},
    ),
    law(
        "route-2/refused", {Fact.KEY_FOUND},
        "every text, bytes, int and tuple of these is a key",
        "a key that is false is taken for no key",
        signs={"more bad-key"},
    ),
    law(
        "route-5/range", {Fact.BAD_U64_KEY},
        "64-bit keys are ints from 0 to 2**64 - 1; else the message is a dead letter",
        "the number is reduced to 64 bits, or its type is not looked at",
    ),
    law(
        "route-2/bad", {Fact.BAD_KEY},
        "a value that is not a key is a dead letter, not a guess",
        "a subclass of str or int, or something unhashable, is let through, or ends the run",
    ),
    law(
        "route-5/extreme", {Fact.EXTREME_U64_KEY},
        "keys up to 2**64 - 1 are keys",
        "they are stored as signed 64-bit integers",
    ),
    law(
        "state-1/asked", {Fact.FALSY_STATE},
        "no state is asked whether it is true",
        "the state is tested for truth, and some states refuse to answer",
        frozenset({"crash"}),
    ),
    law(
        "state-1/falsy", {Fact.FALSY_STATE, Fact.MET_AGAIN},
        "a state that is false is a state like any other",
        "the state is tested for truth to learn whether there is an entity",
        STATE,
    ),
    law(
        "route-2/unusual", {Fact.UNUSUAL_KEY},
        "any text, bytes and tuples are keys, without normalisation",
        "keys are converted in a way that only plain text survives",
    ),
    law(
        "route-1/hidden", {Fact.ROUTE_ALTERS},
        "what a partition function does to the message is invisible, and it is called once",
        "it is given the message itself instead of a copy",
    ),
    law(
        "route-1/raises", {Fact.ROUTE_RAISED},
        "a message whose partition function raises meets no entity",
        "it meets the entity of the message before it",
        CONTENT, {"letters", "entities"},
    ),
    law(
        "key-2/single", {Fact.SINGLE_MET},
        "the one entity of to_stateful has the key ()",
        "each message has a key of its own, or the entity has none",
        frozenset({"keys", "numbers"}),
    ),
    law(
        "key-2/unknown", {Fact.SINGLE_MET},
        "no message is without an entity where there is only one",
        "the message's key is looked up, though there is nothing to route by",
        signs={"more unknown-key"},
    ),
    law(
        "route-2/given", {Fact.KEY_FOUND},
        "an entity's key is what the partition function gave",
        "the key is converted, perhaps to text",
        frozenset({"keys", "numbers"}),
    ),
)  # fmt: skip
