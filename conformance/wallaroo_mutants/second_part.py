"""The mutants of graphs, keys, time and windows."""

from __future__ import annotations

from typing import Any

import wallaroo_reference.isolated.walk
from wallaroo_conformance.killing import Mutant
from wallaroo_reference.isolated.copies import CodedCopies
from wallaroo_reference.isolated.watermarks import Watermarks
from wallaroo_reference.places import Store

from wallaroo_mutants import graphing, sessions_counts, timing, windowing
from wallaroo_mutants.engine import altered, interpreted


def _steps(rule: str, name: str, says: str, *broken: Any) -> Mutant:
    made = windowing.with_steps(*broken)
    return altered(rule, name, says, (wallaroo_reference.isolated.walk, "window_step", made))


_g, _s, _t, _w = graphing, sessions_counts, timing, windowing

SECOND_PART_MUTANTS: tuple[Mutant, ...] = (
    interpreted(
        "graph-1", "pipelines without sinks not run", "a lazy engine, asked for outputs",
        _g.RunsWhatLeadsToSinks,
    ),
    interpreted("graph-2", "branches backwards", "a stack for a queue", _g.BranchesBackwards),
    interpreted("graph-2", "one branch only", "one consumer supported", _g.OneBranchOnly),
    interpreted(
        "graph-2", "branches unnumbered", "a lineage without the way", _g.BranchesUnnumbered
    ),
    interpreted("graph-3", "merge loses duplicates", "a union of sets", _g.MergeWithoutRepetitions),
    interpreted(
        "graph-3", "dead letters behind a merge named by their source", "the message's source told",
        _g.LettersNamedBySource,
    ),
    interpreted(
        "graph-4", "a generator's failure untold", "`except: return`", _g.FailureOfGeneratorUntold
    ),
    interpreted(
        "dead-3", "a generator's exit is a failure", "`except BaseException`",
        _g.ExitOfGeneratorIsFailure,
    ),
    interpreted("graph-4", "a generator's first value lost", "`apply` called first", _g.ValuesLost),
    interpreted(
        "key-1", "key lost behind a computation", "an envelope not passed on",
        _g.KeyLostBehindComputation,
    ),
    interpreted("key-1", "key lost behind a window", "a new envelope", _g.KeyLostBehindWindow),
    interpreted(
        "key-1", "key found for one branch kept for the next", "a context not put back",
        _g.KeyForLaterBranches,
    ),
    interpreted("key-1", "key of before where none is found", "`except: pass`", _g.KeyOfBefore),
    interpreted(
        "key-1", "keys remembered by message", "`@lru_cache` on an extractor",
        _g.KeyOfEqualMessage,
    ),
    altered(
        "route-2", "windows kept by the text of their keys", "keys of a JSON object",
        (wallaroo_reference.isolated.walk, "judged_key", _g.known_by_text),
    ),
    interpreted("key-2", "collect keeps the key", "a step that does nothing", _g.CollectKeepsKey),
    interpreted("key-2", "each record a key of its own", "a null key hashed", _g.KeyOfItsOwn),
    interpreted(
        "key-3", "state of pipelines kept with output only", "`if output: put(state)`",
        _g.KeepsStateWithOutputOnly,
    ),
    interpreted(
        "key-3", "a pair of pipelines unpacked", "pairs told by their look",
        _g.PairOfPipelinesUnpacked,
    ),
    interpreted(
        "key-4", "a call that fails is no visit", "noted when all went well",
        _g.FailingIsNoVisit,
    ),
    interpreted(
        "key-4", "entities expire behind the windows that are due", "timers after rows",
        _t.ExpiresBehindWhatIsDue,
    ),
    altered(
        "key-4", "entities expire a nanosecond late", "`>` for `>=`",
        (Store, "expire", _t.expires_late),
    ),
    altered(
        "key-4", "entities expire a nanosecond early", "a clock that is rounded",
        (Store, "expire", _t.expires_early),
    ),
    altered(
        "key-4", "only the first visit counts", "time to live since it was written",
        (Store, "visit", _t.first_visit_counts),
    ),
    interpreted(
        "key-5", "pickle where a codec is meant", "a default not overridden", _g.CodecUnused
    ),
    altered(
        "key-5", "numbers without the codec", "what cannot be altered needs no copy",
        (CodedCopies, "freeze", _g.frozen_numbers_apart),
    ),
    interpreted(
        "key-5", "accumulators pickled where a codec is meant", "one place forgotten",
        _g.AccumulatorsPickled,
    ),
    interpreted(
        "dead-1", "a generator's value has the payload of a frame", "a field not cleared",
        _t.PayloadOfBefore,
    ),
    interpreted("time-1", "ticks uncounted", "a timer that is no input", _t.TicksUncounted),
    interpreted("time-1", "ticks fire nothing", "only messages move time", _t.TicksFireNothing),
    interpreted(
        "time-2", "event time alters message", "no copy", _t.EventTimeTakesMessage
    ),
    interpreted(
        "time-2", "arrival time where there is no event time", "a default for what fails",
        _t.ArrivalTimeInstead,
    ),
    interpreted("time-2", "no event time for 0", "`time or now`", _t.ZeroIsNoTime),
    _steps("window-2", "ends of windows in 64 bits", "a `long` that overflows", _t.EndsIn64Bits),
    interpreted("time-2", "no event time for the last one", "`<=` for `<`", _t.LastIsNoTime),
    interpreted(
        "time-2", "event time lost behind a computation", "a new envelope", _t.EventTimeLost
    ),
    altered(
        "time-3", "greatest watermark of all sources", "a watermark of the shard that is ahead",
        (Watermarks, "of", _t.greatest_of_sources),
    ),
    altered(
        "time-3", "no source left is the end", "`min(default=inf)`",
        (Watermarks, "of", _t.forever_without_sources),
    ),
    altered(
        "time-3", "idle sources run on too early", "elapsed system time is added",
        (Watermarks, "_of_source", _t.idle_at_once),
    ),
    altered(
        "time-3", "a source's watermark never goes back", "the greatest kept in the wrong place",
        (Watermarks, "of", _t.never_back),
    ),
    interpreted("time-3", "delays of the shortest way", "`min` for `max`", _t.ShortestWay),
    altered(
        "time-3", "idle sources hold back for ever", "a partition without messages",
        (Watermarks, "_of_source", _t.never_idle),
    ),
    altered(
        "time-3", "arrival time goes on with frames only", "a clock read where a frame comes",
        (Watermarks, "arrive", _t.only_own_frames),
    ),
    altered(
        "time-3", "a log that begins at 0 has not begun", "`if not first`",
        (Watermarks, "arrive", _t.begun_when_not_0),
    ),
    altered(
        "time-3", "delays on the way forgotten", "one watermark for all steps",
        (Watermarks, "of", _t.delays_ignored),
    ),
    interpreted(
        "time-4", "own dead letter first", "errors written at once, windows afterwards",
        _t.OwnLetterFirst,
    ),
    _steps("time-4", "windows due together in any order", "a hash table's order", _w.AnyOrder),
    _steps("time-4", "windows due together as they were opened", "a hash table", _w.AsOpened),
    interpreted(
        "time-4", "own message before what is due", "timers after rows", _t.OwnMessageFirst
    ),
    interpreted("time-4", "later steps before earlier ones", "a stack", _t.LaterStepsFirst),
    altered(
        "time-5", "windows open when input stops", "what is open is never given",
        (Watermarks, "end", _t.never_ended),
    ),
    _steps("window-2", "one window too many", "`<=` for `<`", _w.OneWindowTooMany),
    _steps("window-2", "an edge in the window before", "rounded up, less one", _w.EdgeBefore),
    _steps("window-2", "one window too few", "rounded up", _w.OneWindowTooFew),
    _steps(
        "window-2", "a new key's first message lost", "a first window by the watermark",
        _w.FirstWindowByWatermark,
    ),
    _steps("window-2", "windows found by a division of floats", "`/` for `//`", _w.FloatDivision),
    _steps("window-2", "a grid of each key's own", "it begins with a message", _w.GridOfEachKey),
    _steps("window-2", "a grid that shifts after a gap", "begun again", _w.GridAfterGap),
    _steps("window-3", "windows fire a nanosecond late", "`>` for `>=`", _w.FiresLate),
    _steps("window-3", "the delay forgotten", "fires at its end", _w.ForgetsDelay),
    _steps("window-3", "the delay rounded up to the slide", "whole slides", _w.RoundsDelayUp),
    _steps("window-4", "a window's end within it", "`end - 1`, its last moment", _w.EndWithin),
    _steps("window-4", "what a window gives has its end", "off by one", _w.TimeIsEnd),
    _steps(
        "window-4", "None from update begins again", "the result is taken", _w.NoneIsAccumulator
    ),
    _steps("window-4", "None from a window passed on", "a filter forgotten", _w.NonePassedOn),
    _steps("window-5", "panes combined backwards", "a stack", _w.PanesBackwards),
    _steps("window-5", "panes combined as they came", "order of insertion", _w.PanesAsTheyCame),
    _steps(
        "window-4", "one first accumulator for all panes", "a default argument",
        _w.SharedAccumulator,
    ),
    _steps(
        "window-5", "an accumulator shared between windows", "combined in place",
        _w.OneAccumulatorForWindows,
    ),
    _steps("window-6", "late messages open windows again", "no memory", _w.FiresAgain),
    _steps("window-6", "late within the delay", "the end counts alone", _w.LateWithinDelay),
    _steps(
        "window-6", "late behind the watermark", "its time counts, not its window's end",
        _w.LateBehindWatermark,
    ),
    _steps(
        "window-6", "late messages lost in silence", "logged at trace level",
        _w.SilentlyLate, _s.SilentlyLateSession,
    ),
    _steps("window-6", "dropped messages uncounted", "`return`", _w.DropsUncounted),
    _steps("window-6", "partly late uncounted", "late or not, no third", _w.PartlyUncounted),
    _steps(
        "window-6", "a late message's window on the grid", "the one it missed",
        _w.PerMessageOnGrid,
    ),
    _steps(
        "window-6", "a late message's own window is a session", "one length for all windows",
        _s.OwnWindowIsSession,
    ),
    _steps(
        "window-6", "late messages placed in the second oldest", "off by one",
        _w.PlacesInSecondOldest,
    ),
    _steps("window-7", "sessions that touch taken together", "`<=`", _s.TouchingSessions),
    _steps("window-7", "in time as its own session ends", "`<` for `<=`", _s.InTimeAtItsEnd),
    _steps("window-7", "sessions not widened", "the first one's end", _s.NarrowSessions),
    _steps("window-7", "sessions combined backwards", "new before old", _s.SessionsBackwards),
    _steps("window-7", "late though its session is open", "by itself", _s.LateThoughMet),
    _steps("window-8", "one more to a count", "`>` for `>=`", _s.OneMoreToCount),
    _steps(
        "window-8", "what a count window gives has its greatest time", "its end, less one",
        _s.CountHasGreatestTime,
    ),
    _steps("window-8", "keys counted together", "one counter a step", _s.KeysCountedTogether),
    _steps("window-8", "timeout by event time", "one clock for all", _s.TimeoutByEventTime),
    _steps(
        "window-8", "timeout of the window before", "a timer that is not cancelled",
        _s.TimeoutOfTheWindowBefore,
    ),
    _steps("window-8", "timeout from the last message", "an idle timeout", _s.TimeoutFromLast),
    interpreted(
        "window-9", "a window that fails takes others along", "one `try` around all of them",
        _t.OneFailureATurn,
    ),
    interpreted(
        "window-9", "a payload behind collect", "an envelope made anew", _g.PayloadBehindCollect
    ),
    _steps("window-9", "failed messages counted", "counted before the call", _s.CountsFailed),
    _steps("window-9", "a failed message opens a window", "no undo", _w.FailedUpdateOpens),
    _steps(
        "window-9", "sessions lost when combine raises", "taken out first",
        _s.LosesSessionsThatFail,
    ),
    _steps("window-9", "sessions altered when combine raises", "no copy", _s.SessionsHandedOut),
    _steps("window-10", "windows that have fired listed", "never removed", _w.StaysListed),
    _steps("window-11", "one pane listed", "what is stored is shown", _w.ListsFirstPane),
)  # fmt: skip
