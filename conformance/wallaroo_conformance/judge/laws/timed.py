"""Graphs, keys, time and windows; the special before the general, as everywhere."""

from __future__ import annotations

from dataclasses import replace

from wallaroo_conformance.judge.differences import KINDS, Sign
from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.law import Law, law
from wallaroo_conformance.judge.laws.timed_special import NOT_ORDER, SPECIAL_TIMED_LAWS

_LATE = frozenset[Sign]({"more late", "lost late"})
"""Signs of late messages, which no count window has."""

_LAWS: tuple[Law, ...] = (
    law(
        "key-3/named", {Fact.STATE_NAMED},
        "state computations that give the same state_name share it",
        "each has the state of its own name",
    ),
    law(
        "time-4/before", {Fact.FIRED_BEFORE_OWN},
        "what a record makes due comes before its own message",
        "the message goes down first, into windows that should have fired",
        frozenset({"order", "lineage"}),
    ),
    law(
        "time-4/lost", {Fact.FIRED_BY_LOST},
        "a frame that gives no message moves time all the same, and makes windows due",
        "windows have their turn only with a message",
    ),
    law(
        "time-3/least", {Fact.SEVERAL_WAYS},
        "a step's watermark is the least of its sources'",
        "each source's own watermark counts for its messages, or the greatest of them",
    ),
    law(
        "time-3/ways",
        # Where all ends at once, no delay counts: time must have gone on before.
        {Fact.DELAYED_WAY, Fact.MERGED_WITH_ITSELF, Fact.TIME_WENT_ON},
        "where a source comes to a step over several ways, the greatest of their delays counts",
        "the delay of the shortest way is subtracted, or that of the last one",
        signs={"more late"},
    ),
    law(
        "graph-3/twice", {Fact.MERGED_WITH_ITSELF},
        "a message that reaches a merge over two ways comes twice",
        "the union leaves out repetitions",
        NOT_ORDER,
    ),
    law(
        "graph-3/merge", {Fact.MERGED},
        "behind a merge come the messages of both sides",
        "one side is forgotten, or overtakes the other",
        NOT_ORDER,
    ),
    law(
        "graph-2/branches", {Fact.BRANCHED},
        "a pipeline used twice gives its messages to each branch, one after the other",
        "branches are taken in another order or not numbered, one gets all items first, or all but "
        "one are forgotten",
        KINDS,
    ),
    law(
        "window-6/unplaced",
        {Fact.LATE_LETTER, Fact.CHAINED, Fact.FIRED_BY_TIMEOUT, Fact.SOURCE_ENDED},
        "a late message that can be placed in no window is a dead letter",
        "it is lost in silence, since there is no window to place it in",
        frozenset({"letters"}), signs={"lost late"},
    ),
    law(
        "window-8/several", {Fact.TIMEOUT_OF_SEVERAL},
        "a count window whose timeout comes gives all messages that it has",
        "it waits for the others, or the timeout runs from the last message",
        unless=_LATE,
    ),
    law(
        "time-4/timeout", {Fact.FIRED_BY_TIMEOUT, Fact.FIRED_BEFORE_OWN},
        "a count window whose timeout has passed fires before the record's own message comes to it",
        "the message is counted in the window that should have fired",
    ),
    law(
        "window-8/timeout", {Fact.FIRED_BY_TIMEOUT},
        "a count window fires a timeout after its first message, by arrival time",
        "the timeout runs by event time, or from the last message",
        unless=_LATE,
    ),
    law(
        "window-8/time", {Fact.FIRED_COUNT, Fact.CHAINED},
        "what a count window gives has the event time of its last message",
        "it has the greatest event time in the window, or the time at which it fired",
    ),
    law(
        "window-8/count", {Fact.FIRED_COUNT},
        "a count window fires with its last message",
        "it counts one too many or too few, or messages that have failed",
    ),
    law(
        "time-3/delays", {Fact.DELAYED_WAY},
        "a step's watermark is its sources', less the delays of the windows on the way",
        "what a delayed window gives comes when the next step's windows have fired",
        frozenset({"missing", "extra", "letters", "windows", "late"}), {"letters"},
    ),
    law(
        "time-4/later", {Fact.CHAINED},
        "what a window gives comes to later steps before their watermarks have moved on",
        "all watermarks move on first, and what a window gives is late",
        signs={"more late"},
    ),
    law(
        "window-4/chained", {Fact.CHAINED},
        "a window's message has the window's end minus a nanosecond as event time",
        "it has the time at which it fired, or its end, and falls into the next window",
    ),
    law(
        "time-3/idle", {Fact.IDLE},
        "the watermark of a source that is idle runs on by arrival time",
        "it waits for ever, or runs on too early",
    ),
    law(
        "window-6/placed", {Fact.LATE_PLACED},
        "a late message may go into the oldest window that has not fired",
        "it goes into the newest, or gets lost",
    ),
    law(
        "time-4/together", {Fact.DUE_TOGETHER},
        "windows due together fire by end and key",
        "they fire in the order in which they were opened, or each shard numbers its own",
        frozenset({"order", "lineage", "changed"}),
    ),
    law(
        "time-4/letters", {Fact.FIRED, Fact.OUTPUT_RAISED},
        "dead letters of what a record makes due come before the record's own",
        "the record's own dead letter is written first",
        frozenset({"order"}),
    ),
    law(
        "time-4/ends", {Fact.ONE_KEY_DUE},
        "windows of one key that are due together fire by end",
        "they fire in the order in which they were opened",
        frozenset({"order", "lineage"}),
    ),
    law(
        "window-7/joined", {Fact.FIRED_SESSION, Fact.LATE},
        "a late message that overlaps no open session joins none",
        "it joins one that it only touches",
        frozenset({"changed", "letters", "late", "windows"}), signs={"new bounds"},
    ),
    law(
        "window-7/passed", {Fact.FIRED_SESSION, Fact.LATE_LETTER},
        "a message that overlaps no open session is late as soon as its own interval has passed",
        "it is late a nanosecond later, or the gap is not added",
        signs={"lost late"},
    ),
    law(
        "window-6/letter", {Fact.LATE_LETTER},
        "a message is late if every window that it belongs to has fired",
        "a message within the delay is late, or a late one is lost in silence",
    ),
    law(
        "time-2/kept", {Fact.EVENT_TIME, Fact.COMPUTED, Fact.FIRED},
        "messages made from a message keep its event time",
        "they have the time at which they were made",
        frozenset({"letters", "changed", "windows", "late", "extra", "missing"}),
    ),
    law(
        "time-1/tick", {Fact.TICKED},
        "a tick takes a sequence number, and fires what is due",
        "ticks are not counted, or nothing fires without a message",
        KINDS,
    ),
    law(
        "window-5/own", {Fact.PANES_ALTERED},
        "what combine and output do to accumulators shows in no other window",
        "the pane that the next window needs is handed out itself, or copied in part",
        frozenset({"changed", "windows"}),
    ),
    law(
        "window-5/panes", {Fact.PANES_COMBINED},
        "a window's accumulator is that of its panes, combined in order of time",
        "they are combined in another order, or one accumulator stands in two windows",
        frozenset({"changed"}),
    ),
    law(
        "window-7/merged", {Fact.SESSIONS_COMBINED},
        "sessions that overlap become one, combined in order of their first event times",
        "the bounds are not widened, or the accumulators come in the order of arrival",
    ),
    law(
        "window-7/late", {Fact.IN_TIME_BY_SESSION},
        "a message that overlaps an open session is in time, though it would be late by itself",
        "its time alone decides, whatever is open",
        signs={"more late"},
    ),
    law(
        "window-7/early", {Fact.FIRED_SESSION},
        "where windows are sessions, a message is late only if it overlaps no open one and its own "
        "interval has passed",
        "its time alone decides, or the gap is not added",
        signs={"more late"},
    ),
    law(
        "window-2/edge", {Fact.AT_EDGE, Fact.WINDOWED},
        "a message at the very beginning of a window lies in it, and not in the one before",
        "windows are rounded down from a time one less",
        signs={"more late"},
    ),
    law(
        "window-6/early", {Fact.WINDOWED},
        "a message is late only if every window that it belongs to has fired",
        "the delay is not added, or only one of the message's windows is looked at",
        signs={"more late"},
    ),
    law(
        "window-2/sliding", {Fact.FIRED_SLIDING},
        "a message is in each window that its event time lies in",
        "it is put into one window too many, or too few",
        unless={"window lost"},
    ),
    law(
        "time-3/arrival", {Fact.ARRIVAL_TIME, Fact.FIRED},
        "without event_time, time goes on with every record of the log",
        "only the source's own frames move it",
    ),
    law(
        "time-5/ended", {Fact.SOURCE_ENDED, Fact.FIRED},
        "when every source has ended, every window has fired",
        "what is open when input stops is never given",
        KINDS, {"windows", "missing"},
    ),
    law(
        "window-3/due", {Fact.FIRED},
        "a window fires when its step's watermark reaches its end",
        "it fires a little later, when the next message comes",
        frozenset({"missing", "windows"}), {"missing", "windows"},
    ),
    law(
        "window-7/sessions", {Fact.FIRED_SESSION},
        "a session ends a gap after its last message; touching is not overlapping",
        "messages exactly a gap apart are taken together",
    ),
    law(
        "window-3/delay", {Fact.DELAYED},
        "a window fires when its step's watermark reaches its end and the delay",
        "the delay is not added, or added twice",
    ),
    law(
        "time-4/sequence", {Fact.FIRED},
        "a window's message has the sequence of the record that made the window due",
        "it has that of the record after it",
        frozenset({"lineage"}),
    ),
    law(
        "window-10/gone", {Fact.FIRED},
        "a window that has fired is gone",
        "it stays, empty",
        frozenset({"windows"}),
    ),
    law(
        "window-3/once", {Fact.FIRED},
        "a window fires once, and is gone",
        "it fires again with each message that comes later",
        frozenset({"extra"}), unless={"new bounds"},
    ),
    law(
        "window-4/result", {Fact.FIRED},
        "what update, combine and output return counts, and they see only their own objects",
        "None from update is taken for the new accumulator",
        frozenset({"letters", "letter fields"}),
    ),
    law(
        "window-6/again", {Fact.LATE},
        "what is late comes into no window that has fired",
        "the window opens again, and fires once more",
        signs={"lost late"},
    ),
    law(
        "window-4/accumulator", {Fact.FIRED},
        "what update and combine return replaces the accumulator, and None leaves it",
        "None is taken for the new accumulator, or a first one is shared, or combined once more",
        frozenset({"changed", "windows"}), signs={"same bounds"},
    ),
    law(
        "window-4/bounds", {Fact.FIRED},
        "output gets the window's start and end",
        "the end is that of the last message, or the last nanosecond",
        frozenset({"changed"}), signs={"other ends"},
    ),
    law(
        "window-2/bounds", {Fact.FIRED_RANGE},
        "a window has the bounds that the grid gives it",
        "a message at an edge is put into the window before, or windows begin elsewhere",
        signs={"new bounds"},
    ),
    law(
        "window-2/keys", {Fact.FIRED_RANGE, Fact.KEY_STAYED},
        "a key's messages are in the windows of one grid, whatever came before of other keys",
        "a new key's windows begin at its first message, or at the watermark",
    ),
    law(
        "window-3/lost", {Fact.FIRED},
        "every window that has a message fires",
        "it is stored under one time and looked up under another",
        frozenset({"missing"}), signs={"outputs lost"},
    ),
    law(
        "window-2/grid", {Fact.FIRED_RANGE},
        "windows lie on one grid for all keys",
        "a key's first message begins its grid, or a gap shifts it",
    ),
    law(
        "window-4/output", {Fact.FIRED},
        "a window gives what output returns of its key, accumulator and bounds",
        "output gets the key's first window, or its last",
    ),
    law(
        "window-8/early", {Fact.COUNTING, Fact.WINDOWS_OPEN},
        "a count window fires with its last message, or when its timeout has passed",
        "keys are counted together, or the timeout runs by event time",
        frozenset({"extra", "windows", "keys"}), {"extra"},
    ),
    law(
        "window-3/early", {Fact.WINDOWS_OPEN},
        "a window does not fire before its step's watermark has reached its end",
        "it fires with its last message, or as soon as another source is ahead",
        frozenset({"extra", "windows"}), {"extra", "windows"},
    ),
    law(
        "key-2/taken", {Fact.KEY_TAKEN},
        "state and windows behind collect have one key",
        "they have the keys that messages had before",
    ),
    law(
        "key-2/collect", {Fact.COLLECTED},
        "collect gives every message one key",
        "messages keep the key that they had",
    ),
    law(
        "key-1/stays", {Fact.KEY_STAYED},
        "a key stays with its message and all messages made from it",
        "a computation's result has no key",
    ),
    law(
        "key-1/made", {Fact.KEY_STAYED, Fact.COMPUTED},
        "what a computation makes of a message has the message's key",
        "a computation's result has no key",
    ),
    law(
        "key-1/window", {Fact.KEY_STAYED, Fact.CHAINED},
        "what a window gives has the window's key",
        "it has no key, or that of the message that made the window fire",
    ),
    law(
        "key-3/output", {Fact.OWN_STATE},
        "a state computation of pipelines returns its output alone, and its state is kept",
        "the output is taken for a pair, or the state kept only with an output",
    ),
    law(
        "key-2/one", {Fact.ONE_KEY},
        "state and windows without a key have one",
        "each message has a key of its own",
    ),
    law(
        "graph-4/values", {Fact.GENERATED},
        "a generator's values are messages",
        "they are decoded",
    ),
    # What a reduced case often has for no reason: other cases must say that it matters.
    law(
        "time-4/own", {Fact.FIRED_BEFORE_OWN},
        "a record's own message comes behind what it makes due",
        "it goes down first, into windows that should have fired",
        frozenset({"missing", "extra", "changed", "letters", "windows"}),
    ),
    law(
        "time-1/arrival", {Fact.SEVERAL_ARRIVALS},
        "each record has an arrival time of its own",
        "all frames of a batch have that of the first",
    ),
    law(
        "graph-1/topology", {Fact.TIMED},
        "the calls of either form make the topology that runs",
        "a step or a sink is lost",
        KINDS,
    ),
)  # fmt: skip


_GIVE_NO_KEYS = ("time-", "window-", "graph-")


def _without_keys(one: Law) -> Law:
    """Return a law that other keys do not show broken: what it is about gives no entity its key."""
    return replace(one, shows=one.shows - {"keys"})


TIMED_LAWS: tuple[Law, ...] = tuple(
    [
        _without_keys(one) if one.rule.startswith(_GIVE_NO_KEYS) else one
        for one in (*SPECIAL_TIMED_LAWS, *_LAWS)
    ]
)
