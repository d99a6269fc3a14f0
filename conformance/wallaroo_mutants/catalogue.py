"""All mutants, and the equivalent ones that must survive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import wallaroo_reference.isolated.calls
import wallaroo_reference.isolated.copies
import wallaroo_reference.isolated.interpreter
import wallaroo_reference.isolated.walk
import wallaroo_reference.places
from wallaroo_conformance.killing import Mutant

import wallaroo.judging
from wallaroo.engine import Engine
from wallaroo_mutants import batching, functions, interpreters, stateful
from wallaroo_mutants.compiling import COMPILED_MUTANTS
from wallaroo_mutants.compiling_windows import COMPILED_WINDOW_MUTANTS
from wallaroo_mutants.engine import MutantEngine, altered, batches_replaced, interpreted
from wallaroo_mutants.language import LANGUAGE_MUTANTS
from wallaroo_mutants.second_part import SECOND_PART_MUTANTS


def _keyed(rule: str, name: str, says: str, identity: Callable[[Any], Any]) -> Mutant:
    places = (wallaroo_reference.places, wallaroo.judging)  # keys that are listed, and others
    return altered(rule, name, says, *[(place, "identity", identity) for place in places])


def _function(rule: str, name: str, says: str, replaced: str, by: Any) -> Mutant:
    return altered(rule, name, says, (wallaroo_reference.isolated.walk, replaced, by))


def _judged(rule: str, name: str, says: str, judge: Any) -> Mutant:
    return altered(rule, name, says, (wallaroo_reference.places.Store, "judge", judge))


_i, _s, _f, _b = interpreters, stateful, functions, batching

REFERENCE_MUTANTS: tuple[Mutant, ...] = (
    interpreted(
        "frame-2", "zero-length frames lost", "`if payload:` in a reader", _i.SkipsEmpty
    ),
    interpreted("decode-1", "header leaked", "an offset one too small", _i.LeaksHeader),
    interpreted(
        "decode-1", "None from decoder passed on", "a filter forgotten", _i.PassesNoneFromDecoder
    ),
    interpreted("compute-1", "falsy filtered", "`if result:`", _i.FiltersFalsy),
    interpreted("compute-1", "None passed on", "a filter forgotten", _i.PassesNone),
    interpreted(
        "compute-2", "only first of multi", "an iterator asked once", _i.FirstItemOnly
    ),
    interpreted(
        "compute-2",
        "only first of multi with state",
        "the same where there is state",
        _i.FirstItemOnlyFromState,
    ),
    interpreted("compute-2", "None items passed on", "a filter forgotten", _i.PassesNoneItems),
    interpreted("compute-2", "falsy items left out", "`if item`", _i.FiltersFalsyItems),
    interpreted(
        "order-1",
        "gaps not counted",
        "items are numbered after leaving out",
        _i.CountsWithoutGaps,
    ),
    interpreted(
        "compute-2",
        "items sent while consuming",
        "a chain of generators",
        _i.SendsWhileConsuming,
    ),
    _function(
        "compute-2", "last portion lost", "an iterator read 64 items at a time", "items_of",
        _f.items_of_whole_portions,
    ),
    _function(
        "compute-2", "text taken for items", "`list(result)`", "items_of", _f.forgiving_items
    ),
    interpreted(
        "compute-3", "parallel results as ready", "a pool without order", _i.ParallelAsReady
    ),
    interpreted(
        "route-1", "partition function alters message", "no copy", _s.RouteTakesMessage
    ),
    _keyed("route-2", "keys by their text", "`str(key)`", _f.same_when_text_is),
    _keyed("route-2", "keys normalised", "a database's collation", _f.same_when_normalised),
    _keyed("route-2", "bools taken for ints", "`isinstance(key, int)`", _f.any_hashable),
    interpreted(
        "route-2", "True finds the entity of 1", "looked up before it is judged", _s.TrueFindsOne
    ),
    _keyed("route-2", "ASCII-only routing", "`encode('ascii', 'ignore')`", _f.ascii_only),
    interpreted(
        "route-3", "unknown keys swallowed", "a lookup with a default", _i.SwallowsUnknownKeys
    ),
    interpreted(
        "route-3", "unknown keys welcome", "keys taken for a hint", _s.WelcomesUnknownKeys
    ),
    altered(
        "route-4", "hash by PYTHONHASHSEED", "`hash(key) % n`",
        (wallaroo_reference.isolated.interpreter, "partition_number", _f.hash_number),
    ),
    _judged("route-2", "an empty key refused", "`if not key`", _f.never_empty),
    _judged("route-5", "64-bit key 0 refused", "`if not key`", _f.never_zero),
    _judged("route-5", "64-bit keys truncated", "`& 0xffff…`", _f.truncated),
    _judged("route-5", "64-bit keys signed", "a signed column", _f.signed),
    interpreted(
        "route-6", "single entity doubled", "routing where there is none", _s.RoutesSingle
    ),
    interpreted(
        "state-1", "entity after success only", "state written with results", _s.EntityAfterSuccess
    ),
    interpreted(
        "state-1",
        "broken builder remembered",
        "a default put in before the builder is called",
        _s.RemembersBrokenBuilder,
    ),
    _function(
        "state-2", "any pair taken", "`output, changed = result`", "pair_of", _f.forgiving_pair
    ),
    interpreted(
        "state-1", "oldest entities lost", "a cache of limited size", _s.KeepsTheLatest
    ),
    interpreted("state-3", "changes forgotten", "state not written back", _s.KeepsFirstState),
    interpreted("state-3", "equal states not written", "`if new != old`", _s.KeepsEqualState),
    interpreted(
        "state-1", "state tested for truth", "`state or build()`", _s.StateTestedForTruth
    ),
    altered(
        "state-4", "lists in dictionaries shared", "a copy that is not deep enough",
        (wallaroo_reference.isolated.copies, "_is_flat", _f.flat_if_a_dict),
    ),
    altered(
        "state-4", "dictionaries shared", "lists are copied, and nothing else",
        (wallaroo_reference.isolated.copies._Plain, "thaw", _f.thawed_without_dicts),
    ),
    interpreted("state-4", "flag ignored", "state always written back", _s.IgnoresFlag),
    interpreted(
        "state-4", "dropped state frozen", "`freeze(state)` before `changed`",
        _s.FreezesDroppedState,
    ),
    interpreted(
        "state-5",
        "state kept with output only",
        "`if output: put(state)`",
        _s.WritesStateWithOutputOnly,
    ),
    interpreted(
        "state-5", "None from state passed on", "a filter forgotten", _i.PassesNoneFromState
    ),
    interpreted(
        "state-5", "falsy from state filtered", "`if output:`", _i.FiltersFalsyFromState
    ),
    interpreted("state-6", "outputs by reference", "no copy", _s.SendsByReference),
    interpreted("state-6", "items by reference", "no copy", _i.SharesItems),
    interpreted("state-6", "builder's object kept", "no copy", _s.SharesBuilt),
    interpreted("state-6", "sinks share a message", "no copy", _i.SinksShareMessage),
    interpreted("state-7", "no rollback", "state changed in place", _s.NoRollback),
    interpreted(
        "state-8", "shared partitions unshared", "state named by its step", _s.UnsharesPartitions
    ),
    interpreted(
        "state-9", "partitions shared", "entities found by key alone", _s.SharesPartitions
    ),
    interpreted(
        "state-9",
        "partitions of like names shared",
        "a file or a variable for each, named by an identifier",
        _s.SharesPartitionsOfLikeNames,
    ),
    interpreted("order-1", "last item first", "a stack for a queue", _i.LastItemFirst),
    interpreted("order-1", "breadth first", "a stage at a time", _i.BreadthFirst),
    altered(
        "order-2",
        "last message of a batch dropped",
        "off by one",
        batches_replaced(_b.without_last),
    ),
    altered(
        "order-2", "message at a batch boundary repeated",
        "off by one",
        batches_replaced(_b.last_again),
    ),
    altered(
        "order-2",
        "last message of all lost",
        "a buffer not flushed",
        batches_replaced(_b.last_lost),
    ),
    altered(
        "order-2",
        "state lost at a batch boundary",
        "state in memory",
        batches_replaced(_b.with_ends),
        machine=_b.ForgetsAtBoundary,
    ),
    altered(
        "order-2",
        "state doubled by a retry",
        "a batch run again",
        batches_replaced(_b.with_ends),
        machine=_b.RetriesBatch,
    ),
    interpreted("sink-1", "None written", "`encode(message) or b''`", _i.WritesNone),
    interpreted("sink-1", "empty outputs dropped", "`if data:`", _i.DropsEmptyOutputs),
    _function("sink-1", "bytes refused", "text files only", "written_of", _f.written_text),
    _function(
        "sink-1", "anything written", "`str(output)`", "written_of", _f.replacing_written
    ),
    interpreted("sink-2", "first sink only", "one consumer supported", _i.FirstSinkOnly),
    altered(
        "dead-1", "not unpickled until needed", "`pickle.dumps` alone",
        (wallaroo_reference.isolated.walk, "freeze", _f.pickled_only),
    ),
    interpreted(
        "dead-1", "payload of a letter lost", "a field not filled", _i.PayloadOfLetterLost
    ),
    interpreted("dead-1", "letter without key", "a field not filled", _i.LetterWithoutKey),
    interpreted(
        "dead-1", "decoder errors swallowed", "`except: continue`", _i.SwallowsDecoderErrors
    ),
    interpreted(
        "dead-2", "message after a letter lost", "a batch given up", _i.GivesUpAfterLetter
    ),
    interpreted(
        "dead-3",
        "StopIteration filters",
        "user code called by a generator",
        _i.StopIterationFilters,
    ),
    interpreted(
        "dead-3", "exit taken for a stop", "one kind of end only", _i.TakesExitForStop
    ),
    altered(
        "dead-3", "exit is a letter", "`except BaseException`",
        (wallaroo_reference.isolated.calls, "dead_letter_from", _f.exit_is_letter),
    ),
    interpreted(
        "dead-4", "rest processed after a stop", "the flag looked at late", _i.FinishesAfterStop
    ),
    interpreted(
        "dead-4", "stop missed at an encoder", "one way out of several", _i.MissesStopAtEncoder
    ),
    interpreted(
        "dead-4", "last record taken back", "a transaction rolled back", _i.TakesBackTheLastRecord
    ),
    interpreted(
        "dead-4", "stop told elsewhere", "the batch's first message", _i.TellsOfStopElsewhere
    ),
)  # fmt: skip

EQUIVALENT: tuple[Mutant, ...] = (
    altered("", "batches of one message", "other batch sizes", batches_replaced(_b.one_at_a_time)),
    altered(
        "",
        "one source after the other",
        "reordered where no entity and no sink sees it",
        batches_replaced(_b.ended),
        machine=_b.BySource,
    ),
)  # fmt: skip
"""Mutants that break no rule: the suite must not kill them."""


class Silent(MutantEngine):
    """No engine but a broken harness: answers with fewer traces than cases."""

    def run_many(self, cases: Any) -> Any:
        """Lose one."""
        return super().run_many(cases)[1:]


def _silent() -> Engine:
    return Silent("broken harness")


BROKEN_HARNESS = Mutant(
    "traces lost", "", "answers with fewer traces than cases", _silent, incomplete=True
)
"""What a check must answer with exit code 2, not with a verdict."""


def mutants() -> list[Mutant]:
    """Return all of them: the entry point of the group ``wallaroo.mutants``."""
    return [
        *(*REFERENCE_MUTANTS, *COMPILED_MUTANTS, *LANGUAGE_MUTANTS),
        *(*SECOND_PART_MUTANTS, *COMPILED_WINDOW_MUTANTS),
        *(*EQUIVALENT, BROKEN_HARNESS),
    ]
