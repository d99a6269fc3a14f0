"""How a case is run: what ends it, where a batch ends, in which order things come.

A reduction removes these first, so those that are left are needed for the failure.
"""

from __future__ import annotations

from wallaroo_conformance.judge.differences import KINDS
from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.law import CONTENT, Law, law

RUN_LAWS: tuple[Law, ...] = (
    law(
        "dead-4/stop", {Fact.STOPPED},
        "the run ends at the first dead letter in order, and nothing after it takes effect",
        "messages after the one that failed are processed, or outputs before it are not "
        "delivered",
    ),
    law(
        "dead-3/exit", {Fact.EXITED},
        "SystemExit ends the run; what came before is delivered, and it is no dead letter itself",
        "it catches BaseException, or leaves out what came before",
    ),
    law(
        "compute-3/parallel", {Fact.PARALLEL},
        "to_parallel means the same as to, and what comes out keeps its lineage",
        "results are taken in the order in which they are ready",
        KINDS,
    ),
    law(
        "order-1/nested", {Fact.LETTER_OF_NESTED_ITEM},
        "an item's lineage has a number for each multi output on its way",
        "the number of the last one stands for all of them",
        CONTENT | {"lineage"},
    ),
    law(
        "order-1/gaps", {Fact.MULTI_LEAVES_GAPS, Fact.LETTER},
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
        "order-2/batches", {Fact.SEVERAL_BATCHES},
        "the result is the same however the input is divided into batches",
        "something is lost, repeated or forgotten where one batch ends and the next begins",
    ),
    law(
        "order-1/letters", {Fact.LETTER},
        "dead letters come in order of lineage, step and sink",
        "steps are run one after the other over many messages",
        frozenset({"order"}),
    ),
    law(
        "compute-2/shape", {Fact.MULTI_ODD},
        "items come in the order in which the result gives them when it is iterated",
        "a list of a kind of its own is copied past its own iterator, or an iterator refused",
    ),
    law(
        "order-1/outputs", {Fact.OUTPUTS},
        "each sink gets its outputs in order of lineage, depth first",
        "outputs of one message are sent breadth first, or messages overtake one another",
        frozenset({"order"}),
    ),
    law(
        "order-1/sources", {Fact.STATE_BESIDE_OTHERS},
        "entities meet the frames of several sources in the order of their sequence",
        "the frames of a batch are grouped by source",
        frozenset({"changed"}),
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
        "dead-2/items", {Fact.LETTERS_OF_SEVERAL_ITEMS},
        "one bad message harms no other item of the same multi output",
        "what goes wrong with one item takes the rest along",
        frozenset({"missing", "letters", "entities"}), unless={"all lost"},
    ),
    law(
        "dead-2/letters", {Fact.LETTERS_WITHOUT_STATE},
        "one bad message harms no other, even another bad one",
        "what goes wrong with one message takes its neighbours along",
        frozenset({"letters"}), unless={"all lost"},
    ),
    law(
        "state-6/items", {Fact.MULTI_GIVES_SAME_OBJECT},
        "each item of a multi output is its own",
        "items are sent by reference",
    ),
)  # fmt: skip
