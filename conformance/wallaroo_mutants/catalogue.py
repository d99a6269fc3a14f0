"""All mutants, and the equivalent ones that must survive."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import wallaroo_reference.isolated.calls
import wallaroo_reference.isolated.interpreter
import wallaroo_reference.isolated.walk
import wallaroo_reference.places
from wallaroo_conformance.killing import Mutant
from wallaroo_reference.isolated.interpreter import Interpreter

from wallaroo.engine import Engine
from wallaroo_mutants import batching, functions, interpreters, stateful
from wallaroo_mutants.compiling import COMPILED_MUTANTS
from wallaroo_mutants.engine import MutantEngine, Patch, batches_replaced
from wallaroo_mutants.language import LANGUAGE_MUTANTS
from wallaroo_mutants.second_part import SECOND_PART_MUTANTS


def _interpreted(rule: str, name: str, says: str, machine: type[Interpreter]) -> Mutant:
    return Mutant(name, rule, says, partial(MutantEngine, name, machine))


def _patched(
    rule: str, name: str, says: str, *patches: Patch, machine: type[Interpreter] = Interpreter
) -> Mutant:
    return Mutant(name, rule, says, partial(MutantEngine, name, machine, patches))


def _keyed(rule: str, name: str, says: str, identity: Callable[[Any], Any]) -> Mutant:
    return _patched(rule, name, says, (wallaroo_reference.places, "identity", identity))


def _function(rule: str, name: str, says: str, replaced: str, by: Any) -> Mutant:
    return _patched(rule, name, says, (wallaroo_reference.isolated.walk, replaced, by))


def _judged(rule: str, name: str, says: str, judge: Any) -> Mutant:
    return _patched(rule, name, says, (wallaroo_reference.places.Store, "judge", judge))


_i, _s, _f, _b = interpreters, stateful, functions, batching

REFERENCE_MUTANTS: tuple[Mutant, ...] = (
    _interpreted(
        "frame-2", "zero-length frames lost", "`if payload:` in a reader", _i.SkipsEmpty
    ),
    _interpreted("decode-1", "header leaked", "an offset one too small", _i.LeaksHeader),
    _interpreted(
        "decode-1", "None from decoder passed on", "a filter forgotten", _i.PassesNoneFromDecoder
    ),
    _interpreted("compute-1", "falsy filtered", "`if result:`", _i.FiltersFalsy),
    _interpreted("compute-1", "None passed on", "a filter forgotten", _i.PassesNone),
    _interpreted(
        "compute-2", "only first of multi", "an iterator asked once", _i.FirstItemOnly
    ),
    _interpreted(
        "compute-2",
        "only first of multi with state",
        "the same where there is state",
        _i.FirstItemOnlyFromState,
    ),
    _interpreted("compute-2", "None items passed on", "a filter forgotten", _i.PassesNoneItems),
    _interpreted("compute-2", "falsy items left out", "`if item`", _i.FiltersFalsyItems),
    _interpreted(
        "order-1",
        "gaps not counted",
        "items are numbered after leaving out",
        _i.CountsWithoutGaps,
    ),
    _interpreted(
        "compute-2",
        "items sent while consuming",
        "a chain of generators",
        _i.SendsWhileConsuming,
    ),
    _function(
        "compute-2", "text taken for items", "`list(result)`", "items_of", _f.forgiving_items
    ),
    _interpreted(
        "compute-3", "parallel results as ready", "a pool without order", _i.ParallelAsReady
    ),
    _interpreted(
        "route-1", "partition function alters message", "no copy", _s.RouteTakesMessage
    ),
    _keyed("route-2", "keys by their text", "`str(key)`", _f.same_when_text_is),
    _keyed("route-2", "keys normalised", "a database's collation", _f.same_when_normalised),
    _keyed("route-2", "bools taken for ints", "`isinstance(key, int)`", _f.any_hashable),
    _interpreted(
        "route-2", "True finds the entity of 1", "looked up before it is judged", _s.TrueFindsOne
    ),
    _keyed("route-2", "ASCII-only routing", "`encode('ascii', 'ignore')`", _f.ascii_only),
    _interpreted(
        "route-3", "unknown keys swallowed", "a lookup with a default", _i.SwallowsUnknownKeys
    ),
    _interpreted(
        "route-3", "unknown keys welcome", "keys taken for a hint", _s.WelcomesUnknownKeys
    ),
    _patched(
        "route-4", "hash by PYTHONHASHSEED", "`hash(key) % n`",
        (wallaroo_reference.isolated.interpreter, "partition_number", _f.hash_number),
    ),
    _judged("route-5", "64-bit keys truncated", "`& 0xffff…`", _f.truncated),
    _judged("route-5", "64-bit keys signed", "a signed column", _f.signed),
    _interpreted(
        "route-6", "single entity doubled", "routing where there is none", _s.RoutesSingle
    ),
    _interpreted(
        "state-1", "entity after success only", "state written with results", _s.EntityAfterSuccess
    ),
    _interpreted(
        "state-1",
        "broken builder remembered",
        "a default put in before the builder is called",
        _s.RemembersBrokenBuilder,
    ),
    _function(
        "state-2", "any pair taken", "`output, changed = result`", "pair_of", _f.forgiving_pair
    ),
    _interpreted("state-3", "changes forgotten", "state not written back", _s.KeepsFirstState),
    _interpreted(
        "state-3", "state tested for truth", "`state or build()`", _s.StateTestedForTruth
    ),
    _interpreted("state-4", "flag ignored", "state always written back", _s.IgnoresFlag),
    _interpreted(
        "state-5",
        "state kept with output only",
        "`if output: put(state)`",
        _s.WritesStateWithOutputOnly,
    ),
    _interpreted(
        "state-5", "None from state passed on", "a filter forgotten", _i.PassesNoneFromState
    ),
    _interpreted(
        "state-5", "falsy from state filtered", "`if output:`", _i.FiltersFalsyFromState
    ),
    _interpreted("state-6", "outputs by reference", "no copy", _s.SendsByReference),
    _interpreted("state-6", "items by reference", "no copy", _i.SharesItems),
    _interpreted("state-6", "builder's object kept", "no copy", _s.SharesBuilt),
    _interpreted("state-6", "sinks share a message", "no copy", _i.SinksShareMessage),
    _interpreted("state-7", "no rollback", "state changed in place", _s.NoRollback),
    _interpreted(
        "state-8", "shared partitions unshared", "state named by its step", _s.UnsharesPartitions
    ),
    _interpreted(
        "state-9", "partitions shared", "entities found by key alone", _s.SharesPartitions
    ),
    _interpreted("order-1", "last item first", "a stack for a queue", _i.LastItemFirst),
    _interpreted("order-1", "breadth first", "a stage at a time", _i.BreadthFirst),
    _patched(
        "order-2",
        "last message of a batch dropped",
        "off by one",
        batches_replaced(_b.without_last),
    ),
    _patched(
        "order-2", "message at a batch boundary repeated",
        "off by one",
        batches_replaced(_b.last_again),
    ),
    _patched(
        "order-2",
        "last message of all lost",
        "a buffer not flushed",
        batches_replaced(_b.last_lost),
    ),
    _patched(
        "order-2",
        "state lost at a batch boundary",
        "state in memory",
        batches_replaced(_b.with_ends),
        machine=_b.ForgetsAtBoundary,
    ),
    _patched(
        "order-2",
        "state doubled by a retry",
        "a batch run again",
        batches_replaced(_b.with_ends),
        machine=_b.RetriesBatch,
    ),
    _interpreted("sink-1", "None written", "`encode(message) or b''`", _i.WritesNone),
    _interpreted("sink-1", "empty outputs dropped", "`if data:`", _i.DropsEmptyOutputs),
    _function(
        "sink-1", "anything written", "`str(output)`", "written_of", _f.replacing_written
    ),
    _interpreted("sink-2", "first sink only", "one consumer supported", _i.FirstSinkOnly),
    _interpreted(
        "dead-1", "payload of a letter lost", "a field not filled", _i.PayloadOfLetterLost
    ),
    _interpreted("dead-1", "letter without key", "a field not filled", _i.LetterWithoutKey),
    _interpreted(
        "dead-1", "decoder errors swallowed", "`except: continue`", _i.SwallowsDecoderErrors
    ),
    _interpreted(
        "dead-2", "message after a letter lost", "a batch given up", _i.GivesUpAfterLetter
    ),
    _interpreted(
        "dead-3",
        "StopIteration filters",
        "user code called by a generator",
        _i.StopIterationFilters,
    ),
    _interpreted(
        "dead-3", "exit taken for a stop", "one kind of end only", _i.TakesExitForStop
    ),
    _patched(
        "dead-3", "exit is a letter", "`except BaseException`",
        (wallaroo_reference.isolated.calls, "dead_letter_from", _f.exit_is_letter),
    ),
    _interpreted(
        "dead-4", "rest processed after a stop", "the flag looked at late", _i.FinishesAfterStop
    ),
    _interpreted(
        "dead-4", "stop missed at an encoder", "one way out of several", _i.MissesStopAtEncoder
    ),
    _interpreted(
        "dead-4", "stop told elsewhere", "the batch's first message", _i.TellsOfStopElsewhere
    ),
)  # fmt: skip

EQUIVALENT: tuple[Mutant, ...] = (
    _patched("", "batches of one message", "other batch sizes", batches_replaced(_b.one_at_a_time)),
    _patched(
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
        *SECOND_PART_MUTANTS,
        *(*EQUIVALENT, BROKEN_HARNESS),
    ]
