"""What timed cases have for a purpose: a mark, a policy, a codec, an odd event time."""

from __future__ import annotations

from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.law import CONTENT, Law, law

NOT_ORDER = CONTENT - {"order"}

SPECIAL_TIMED_LAWS: tuple[Law, ...] = (
    # What a part of a case is there for, and nothing else.
    law(
        "key-1/named", {Fact.KEY_EXTRACTOR_LETTER},
        "a dead letter of a key extractor has the extractor's name",
        "it has that of the step which needs the key",
        frozenset({"letter fields"}), signs={"told"},
    ),
    law(
        "graph-3/letter", {Fact.LETTER_OF_ANOTHER_SOURCE},
        "behind a merge a dead letter's pipeline is that of the left side's first source",
        "it is the source of the message",
        frozenset({"letter fields"}), signs={"told of a pipeline"},
    ),
    law(
        "dead-1/timed", {Fact.TIMED_LETTER},
        "a dead letter tells source, pipeline, step, sink, key, reason, error type and payload",
        "a field is filled from the wrong place, or left empty",
        frozenset({"letter fields"}), signs={"told"},
    ),
    law(
        "dead-1/value", {Fact.GENERATED},
        "a dead letter of a generator's value has no payload",
        "it has that of the frame before it",
        frozenset({"letter fields"}), signs={"told of a window"},
    ),
    law(
        "window-9/payload", {Fact.FIRED},
        "a dead letter of a window's message has no payload",
        "it has that of the record that made the window fire",
        frozenset({"letter fields"}), signs={"told of a window"},
    ),
    law(
        "graph-1/done", {Fact.DONE},
        "a pipeline that is done runs as one with a sink does",
        "what leads to no sink is not run",
    ),
    law(
        "key-5/refused", {Fact.CODEC, Fact.CODEC_REFUSES},
        "what an application's own codec raises is a dead letter, unportable",
        "pickle is used where the codec is meant, or the codec's exception ends the run",
    ),
    law(
        "key-5/codec", {Fact.CODEC},
        "an application's own codec stands for pickle",
        "the codec's bytes are read with pickle",
    ),
    law(
        "graph-4/failed", {Fact.GENERATOR_FAILED},
        "a generator that raises is a dead letter, and its source ends",
        "the source stays open, or the failure is not reported",
    ),
    law(
        "time-1/clock", {Fact.CLOCK_BACK},
        "arrival times never decrease: a clock that goes back repeats the last time",
        "the time is taken as it comes",
    ),
    law(
        "window-11/open", {Fact.WINDOWS_OPEN},
        "open windows are listed with step, key, bounds, and accumulator",
        "panes are not combined, or windows that hold nothing are listed",
        frozenset({"windows"}),
    ),
    law(
        "window-4/false", {Fact.AGGREGATION_FALSY},
        "an accumulator or a result that is false counts as any other; None alone is special",
        "it is asked for its truth, and what is false taken for None, or for nothing",
    ),
    law(
        "window-5/partly", {Fact.PANES_COMBINED, Fact.LATE_PARTLY},
        "panes are combined in order of time, also those into which messages came late",
        "they are combined in the order in which they were begun",
        frozenset({"changed"}),
    ),
    law(
        "window-6/partly", {Fact.LATE_PARTLY},
        "a message for which some windows have fired joins the others, and is counted",
        "it is counted as late, or not counted at all",
        frozenset({"late", "letters", "letter fields", "extra", "missing", "changed", "windows"}),
    ),
    law(
        "window-6/dropped", {Fact.LATE_DROPPED},
        "a late message that the policy drops is counted",
        "it is dropped in silence, or not dropped",
    ),
    law(
        "window-6/own", {Fact.LATE_FIRED, Fact.FIRED_SESSION},
        "a late message's own window is a nanosecond long where windows are sessions, too",
        "it is a session, and as long as the gap",
    ),
    law(
        "window-6/fires", {Fact.LATE_FIRED},
        "a late message may fire a window of its own, at once",
        "it has the bounds of the window that it missed",
    ),
    law(
        "time-2/bad", {Fact.BAD_TIME_LETTER},
        "a value that is not an event time is a dead letter and moves no time",
        "it is taken for a time, or for the arrival time",
    ),
    law(
        "time-2/raises", {Fact.EVENT_TIME_RAISES},
        "an event time that raises is a dead letter and moves no time",
        "the arrival time stands in for it",
    ),
    law(
        "route-2/extracted", {Fact.KEY_STAYED},
        "a key extractor may give every text, bytes, int and tuple of these",
        "a key that is false is taken for no key",
        signs={"more bad-key"},
    ),
    law(
        "time-2/hidden", {Fact.EVENT_TIME_ALTERS},
        "what event_time does to the message is invisible",
        "it is given the message itself instead of a copy",
    ),
    law(
        "time-2/zero", {Fact.TIME_ZERO},
        "0 is an event time like any other",
        "it is tested for truth, and taken for no time",
    ),
    law(
        "route-1/extractor", {Fact.EXTRACTOR_ALTERS},
        "what a key extractor does to the message is invisible",
        "it is given the message itself instead of a copy",
        CONTENT - {"keys", "order"},
    ),
    law(
        "time-2/moment", {Fact.EVENT_MOMENT},
        "a datetime is an event time, exact to the microsecond, whatever its zone",
        "it is made a float on the way, or its zone is left out",
    ),
    law(
        "window-2/last", {Fact.TIME_LAST, Fact.FIRED_RANGE},
        "windows of the last event times end behind these, as the grid says",
        "the end of a window is kept in 64 bits with a sign",
        signs={"other ends", "new bounds"},
    ),
    law(
        "time-2/last", {Fact.TIME_LAST},
        "event times up to 2**63 - 1 are like any other",
        "the last one is taken for none",
    ),
    law(
        "window-2/large", {Fact.LARGE_TIMES_FIRED},
        "windows lie on one grid, to the nanosecond, however large their times are",
        "windows are found by a division of floats",
    ),
    law(
        "window-9/within", {Fact.UPDATE_RAISED_WITHIN},
        "a message whose update raises leaves what its window already has",
        "the accumulator is half changed, or the window is gone",
    ),
    law(
        "window-9/update", {Fact.UPDATE_RAISED},
        "a message whose update raises has no effect on the step's windows",
        "it is counted, or its pane stays, or the accumulator is half changed",
    ),
    law(
        "window-9/combine", {Fact.COMBINE_RAISED},
        "a combine that raises is a dead letter, and other windows are unharmed",
        "the window stays, or the sessions are lost",
    ),
    law(
        "window-9/output", {Fact.OUTPUT_RAISED},
        "an output that raises is a dead letter with step and key, and the window is gone",
        "the window fires again, or the letter has the payload of another message",
        NOT_ORDER,
    ),
    law(
        "window-4/nothing", {Fact.WINDOW_GIVES_NONE},
        "None from output gives nothing",
        "None is passed on as a message",
    ),
    law(
        "key-1/failed", {Fact.KEY_EXTRACTOR_LETTER},
        "a message that fails at a key extractor is a dead letter with the extractor's name",
        "the message goes on with the key that it had",
        NOT_ORDER,
    ),
    law(
        "key-4/expired", {Fact.EXPIRED},
        "an entity last visited expire_after or longer ago is gone",
        "it expires a nanosecond late or early, or by event time",
        NOT_ORDER,
    ),
    law(
        "key-4/kept", {Fact.EXPIRING},
        "a visit keeps an entity for expire_after",
        "only the first visit counts",
        NOT_ORDER,
    ),
)  # fmt: skip
