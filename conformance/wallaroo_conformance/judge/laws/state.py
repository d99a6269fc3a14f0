"""What goes wrong in a call with state, and what is shared."""

from __future__ import annotations

from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.law import STATE, Law, law

STATE_LAWS: tuple[Law, ...] = (
    law(
        "state-4/secret", {Fact.STATE_ALTERED_SILENTLY},
        "after changed=False the entity is what it was, even if the call altered it",
        "the state is handed out itself, and never put back",
        STATE,
    ),
    law(
        "state-3/equal", {Fact.STATE_MADE_EQUAL},
        "after changed=True the entity is what the call left, even if it equals what was there",
        "the state is compared with what it was, and not written if the two are equal",
        STATE,
    ),
    law(
        "state-7/late", {Fact.STATE_ALTERED_THEN_RAISED},
        "after a computation raised the entity is as before the call",
        "the state is handed out itself, and never put back",
        STATE,
    ),
    law(
        "state-2/pair", {Fact.BAD_PAIR},
        "a result that is not (output, bool) is a dead letter and leaves the entity as it was",
        "it is unpacked all the same, or its flag taken for true or false",
        STATE,
    ),
    law(
        "compute-2/raises", {Fact.MULTI_RAISES_CONSUMED},
        "if consuming a multi result raises, the whole call has raised and no item goes on",
        "items are sent on while the rest is still to come",
    ),
    law(
        "compute-2/own-list", {Fact.MULTI_GIVES_OWN_LIST, Fact.MET_AGAIN},
        "a multi result is consumed before its first item goes on, even if it is the state's "
        "list",
        "the list is iterated while later steps visit the state and alter it",
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
        "state-8/others", {Fact.STATE_BESIDE_OTHERS},
        "entities belong to the state partition, whichever source's messages come in between",
        "each source has state of its own",
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
        "each sink's encoder gets a message of its own",
        "all sinks get the same object",
    ),
    law(
        "state-1/raises", {Fact.BUILDER_RAISES},
        "a builder that raises is a dead letter, and there is no entity",
        "the failure is remembered, or ends the run",
    ),
)  # fmt: skip
