"""The laws of cases, in the order of the specification's rules.

A law holds for a case if the engine's whole trace is the reference's: outputs to the byte and in
order, dead letters, final entities. Which laws a case *exercises* is found by `exercising`, and
`observing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from wallaroo_conformance.judge.differences import KINDS, Kind
from wallaroo_conformance.judge.law import CONTENT, Law, law

LAWS: tuple[Law, ...] = (
    law("frame-2/zero", "a frame of length 0 is a frame like any other"),
    law("decode-1/filter", "None from the decoder filters the message"),
    law("decode-1/falsy", "only None from the decoder filters the message"),
    law("decode-1/payload",
        "the decoder gets each payload, once, without header", CONTENT | {"letter fields"}),
    law("compute-1/filter", "None filters the message"),
    law("compute-1/falsy",
        "only None filters: 0, '', b'', False and empty containers are messages"),
    law("compute-1/result", "a computation maps a message to a message"),
    law("compute-2/raises",
        "if consuming a multi result raises, the whole call has raised and no item goes on"),
    law("compute-2/bad",
        "str, bytes, mappings, sets and what cannot be iterated are not a multi result"),
    law("compute-2/gaps",
        "items that are None, and no others, are left out, and counted by indices"),
    law("compute-2/none", "None and an empty iterable give no message"),
    law("compute-2/items",
        "each item is a message, in the order in which the result gives it when it is iterated"),
    law("compute-3/parallel",
        "to_parallel means the same as to, and what comes out keeps its lineage", KINDS),
    law("route-1/hidden",
        "what a partition function or key extractor does to the message is invisible"),
    law("route-1/raises", "a message whose partition function raises meets no entity"),
    law("route-1/again", "messages with the same key meet the same entity"),
    law("route-1/apart", "messages with different keys never share an entity"),
    law("route-2/alike", "keys are the same when types and values are, at every depth"),
    law("route-2/given",
        "every text, bytes, int and tuple of these is a key, and an entity has it as it was "
        "given", CONTENT | {"numbers"}),
    law("route-2/bad", "a value that is not a key is a dead letter, not a guess"),
    law("route-3/unknown", "where keys are listed, a message with another is a dead letter"),
    law("route-3/listed", "a listed key has its entity"),
    law("route-4/number",
        "an entity's partition number is the stable hash of its key, of the number of "
        "partitions", {"numbers"}),
    law("route-5/refused", "every int from 0 to 2**64 - 1 is a key"),
    law("route-5/range",
        "64-bit keys are ints from 0 to 2**64 - 1; else the message is a dead letter"),
    law("route-6/single", "to_stateful has one entity"),
    law("state-1/falsy",
        "no state is asked whether it is true: a false one is a state like any other"),
    law("state-1/raises", "a builder that raises is a dead letter, and there is no entity"),
    law("state-1/built",
        "an entity is built when its first message comes, and exists from then on, as built"),
    law("state-1/waits", "there is no entity before its first message", {"existence"}),
    law("state-2/pair",
        "a result that is not (output, bool) is a dead letter and leaves the entity as it was"),
    law("state-2/refused", "every pair of an output and a bool is a result"),
    law("state-3/changed", "after changed=True the entity is what the computation left"),
    law("state-4/secret",
        "after changed=False the entity is what it was, even if the call altered it"),
    law("state-5/falsy", "only None sends nothing"),
    law("state-5/nothing", "None as output sends nothing, whatever changed says"),
    law("state-6/alias", "an output is what it was when the call ended, and the state likewise"),
    law("state-6/builder", "entities are their own, even if the builder hands out one object"),
    law("state-6/encoders", "each sink's encoder gets a message of its own"),
    law("state-7/late", "after a computation raised the entity is as before the call"),
    law("state-8/shared", "pipelines that name the same state partition share its entities"),
    law("state-9/apart", "state partitions with different names share nothing"),
    law("order-1/lineage",
        "a message's lineage is its frame's number and its index in each multi output, and dead "
        "letters come in its order", {"lineage", "order"}),
    law("order-1/outputs",
        "each sink gets its outputs in order of lineage, depth first", {"order"}),
    law("order-1/depth",
        "a message is taken through all steps before the next item of its multi output"),
    law("order-1/entity", "an entity meets its messages in order of lineage"),
    law("order-2/batches", "the result is the same however the input is divided into batches"),
    law("order-2/partitions", "the result is the same for any number of partitions"),
    law("order-2/exact", "the output of each sink is one exact byte string per input log", KINDS),
    law("sink-1/refused", "bytes are an output, and text that UTF-8 takes is one"),
    law("sink-1/none", "None from an encoder writes nothing"),
    law("sink-1/bad",
        "what is neither bytes nor text that UTF-8 takes is a dead letter of that sink alone"),
    law("sink-1/empty", "no bytes are an output too"),
    law("sink-1/utf-8", "text is written as UTF-8, each character as it is"),
    law("sink-2/several", "each of several sinks gets every message"),
    law("dead-1/fields",
        "a dead letter tells lineage, source, pipeline, step, sink, key, reason, error type and "
        "payload", {"letter fields"}),
    law("dead-1/decode", "a decoder that raises makes a dead letter of its frame"),
    law("dead-1/unportable", "what does not survive pickling is a dead letter"),
    law("dead-1/raised", "user code that raises makes a dead letter of its message"),
    law("dead-2/others", "one bad message harms no other"),
    law("dead-3/exit",
        "SystemExit ends the run; what came before is delivered, and it is no dead letter itself"),
    law("dead-3/raised", "every exception of user code is a dead letter"),
    law("dead-4/stop",
        "the run ends at the first dead letter in order, and nothing after it takes effect"),
    law("graph-1/done", "a pipeline that is done runs as one with a sink does"),
    law("graph-1/topology", "the calls of either form make the topology that runs", KINDS),
    law("graph-2/branches",
        "a pipeline used twice gives its messages to each branch, one after the other", KINDS),
    law("graph-3/twice", "a message that reaches a merge over two ways comes twice"),
    law("graph-3/merge",
        "behind a merge come the messages of both sides", CONTENT | {"letter fields"}),
    law("graph-4/failed", "a generator that raises is a dead letter, and its source ends"),
    law("graph-4/values", "a generator's values are messages"),
    law("key-1/failed",
        "a message that fails at a key extractor is a dead letter with the extractor's name",
        CONTENT | {"letter fields"}),
    law("key-1/stays", "a key stays with its message and all messages made from it"),
    law("key-2/single",
        "state and windows without a key have one, (), which every message has",
        CONTENT | {"numbers"}),
    law("key-2/collect", "collect gives every message one key"),
    law("key-3/named", "state computations that give the same state_name share it"),
    law("key-3/output",
        "a state computation of pipelines returns its output alone, and its state is kept"),
    law("key-4/expired", "an entity last visited expire_after or longer ago is gone"),
    law("key-4/kept", "a visit keeps an entity for expire_after"),
    law("key-5/refused", "what an application's own codec raises is a dead letter, unportable"),
    law("key-5/codec", "an application's own codec stands for pickle"),
    law("time-1/clock",
        "arrival times never decrease: a clock that goes back repeats the last time"),
    law("time-1/tick", "a tick takes a sequence number, and fires what is due", KINDS),
    law("time-2/bad",
        "what is not an event time, or raises, makes a dead letter and moves no time"),
    law("time-2/hidden", "what event_time does to the message is invisible"),
    law("time-2/moment",
        "a datetime is an event time, exact to the microsecond, whatever its zone"),
    law("time-2/kept",
        "a message has the event time that it was given, and messages made from it keep it"),
    law("time-3/least", "a step's watermark is the least of its sources'"),
    law("time-3/delays",
        "a step's watermark is its sources', less the delays of the windows on the way"),
    law("time-3/idle", "the watermark of a source that is idle runs on by arrival time"),
    law("time-3/arrival", "without event_time, time goes on with every record of the log"),
    law("time-4/later",
        "what a window gives comes to later steps before their watermarks have moved on"),
    law("time-4/together",
        "windows due together fire by end and key", CONTENT | {"lineage", "order"}),
    law("time-4/sequence",
        "what a record makes due comes before its own message, and has its sequence number",
        CONTENT | {"lineage", "order"}),
    law("time-5/ended", "when every source has ended, every window has fired", KINDS),
    law("window-2/large",
        "windows lie on one grid, to the nanosecond, however large their times are"),
    law("window-2/sliding", "a message is in each window that its event time lies in"),
    law("window-2/grid", "a window has the bounds that one grid gives it for all keys"),
    law("window-3/once",
        "a window fires once, when its step's watermark reaches its end, and is gone"),
    law("window-3/delay", "a window fires when its step's watermark reaches its end and the delay"),
    law("window-3/early", "a window does not fire before its step's watermark has reached its end"),
    law("window-4/false",
        "an accumulator or a result that is false counts as any other; None alone is special"),
    law("window-4/nothing", "None from output gives nothing"),
    law("window-4/chained",
        "a window's message has the window's end minus a nanosecond as event time"),
    law("window-4/output",
        "a window gives what output returns of its key, accumulator and bounds; what update and "
        "combine return is the accumulator, unless it is None", CONTENT | {"letter fields"}),
    law("window-5/own",
        "what is handed out again, or altered by combine and output, shows in no other window"),
    law("window-5/panes", "a window's accumulator is that of its panes, combined in order of time"),
    law("window-6/partly",
        "a message for which some windows have fired joins the others, and is counted",
        CONTENT | {"letter fields"}),
    law("window-6/dropped", "a late message that the policy drops is counted"),
    law("window-6/fires", "a late message may fire a window of its own, at once"),
    law("window-6/placed", "a late message may go into the oldest window that has not fired"),
    law("window-6/letter", "a message is late if every window that it belongs to has fired"),
    law("window-6/early", "a message is late only if every window that it belongs to has fired"),
    law("window-7/merged",
        "sessions that overlap become one, combined in order of their first event times"),
    law("window-7/sessions",
        "a session ends a gap after its last message; touching is not overlapping, and what "
        "overlaps an open session is in time"),
    law("window-8/timeout",
        "a count window fires a timeout after its first message, by arrival time"),
    law("window-8/count", "a count window fires with its last message"),
    law("window-8/early",
        "a count window fires with its last message, or when its timeout has passed"),
    law("window-9/payload",
        "a dead letter of a window's message has no payload", {"letter fields"}),
    law("window-9/update", "a message whose update raises has no effect on the step's windows"),
    law("window-9/combine",
        "a combine that raises is a dead letter, and other windows are unharmed"),
    law("window-9/output",
        "an output that raises is a dead letter with step and key, and the window is gone"),
    law("window-10/gone", "a window that has fired is gone", {"windows"}),
    law("window-11/open",
        "open windows are listed with step, key, bounds, and accumulator", {"windows"}),
    law("kafka-1/numbers",
        "offsets that hold nothing leave their numbers unused", CONTENT | {"lineage"}),
    law("kafka-1/read",
        "each record has a number, as has what says which partitions are read",
        CONTENT | {"lineage"}),
    law("kafka-6/added",
        "a partition that is added is read, and holds time back from its first record on"),
    law("kafka-7/record",
        "a decoder of records gets value, key, headers, timestamp, topic, partition and offset"),
    law("kafka-7/tombstone",
        "a record without a value goes to a decoder of records only, else it is filtered",
        CONTENT | {"letter fields"}),
    law("kafka-8/timestamp", "kafka_timestamp takes the record's own timestamp"),
    law("kafka-8/none", "a record without a timestamp is a dead letter, bad-time"),
    law("kafka-9/least", "the watermark of a topic's source is the least of its partitions'"),
    law("kafka-10/ended", "a partition ends by itself, and holds no time back from then on"),
    law("kafka-13/output",
        "an output has the value, key, headers, and timestamp that the encoder and the message "
        "give"),
    law("kafka-13/key",
        "the partition is the one that is given, or the key decides, as in Java's producer"),
    law("kafka-13/number",
        "without partition and key, the number of the record that caused the output decides"),
    law("kafka-13/bad", "what is no output, has a bad partition, or is too large is a dead letter"),
    law("kafka-14/order", "within a partition outputs stand in order of lineage", {"order"}),
)  # fmt: skip

EVERYWHERE = frozenset({"decode-1/payload", "order-2/exact", "state-1/waits"})
"""Laws that nearly every case exercises."""

ANSWERS = law(
    "build-2/answers",
    "an engine that cannot run an application says so when it is asked, before it reads input",
)
"""Broken by `UnsupportedTopology` from `run`, which no difference of traces shows."""

DUE = law(
    "time-1/due",
    "if nothing comes any more, an engine knows when time alone makes something due",
)
"""What an engine that can step is asked: `stepping`."""


def laws_of(exercised: Set[str], kinds: Set[Kind], met: Mapping[str, int]) -> tuple[Law, ...]:
    """Return the laws that a failing case may have broken, one of each rule.

    These are the laws that the case exercises and that speak of what differs. The most particular
    comes first: the law that the fewest of all cases have met. Laws that were met equally often
    stand in the order of the specification.

    Args:
        exercised: ids of the laws that the case exercises.
        kinds: how the engine differs.
        met: cases that have exercised a law, by the law's id.
    """
    found = [law for law in LAWS if law.fits(exercised, kinds)]
    by_rule: dict[str, Law] = {}
    for one in sorted(found, key=lambda one: met.get(one.id, 0)):
        by_rule.setdefault(one.rule, one)
    return tuple(by_rule.values())
