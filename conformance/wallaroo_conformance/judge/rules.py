"""The register of rules: every rule of the specification, once, in the specification's order.

Laws, mutants, tests and reports name a rule by its id; everything else about it is here.
`tests/docs/test_rules.py` compares the register with the headings in ``docs/spec``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Chapter:
    """A chapter of the specification.

    Args:
        name: of its file in ``docs/spec``, without the ending.
        title: its heading.
    """

    name: str
    title: str


@dataclass(frozen=True)
class Rule:
    """A rule of the specification.

    Args:
        id: such as ``dead-4``.
        title: its heading, without markup.
        chapter: where it stands.
    """

    id: str
    title: str
    chapter: Chapter

    @property
    def link(self) -> str:
        """Where it stands, seen from the folder of the specification."""
        return f"{self.chapter.name}.md#{self.id}"

    def __str__(self) -> str:
        return f"{self.id}: {self.title}"


_FRAMING = Chapter("framing", "Framing")
_COMPUTING = Chapter("decode-compute", "Decode and compute")
_ROUTING = Chapter("routing", "Routing")
_STATE = Chapter("state", "State")
_ORDER = Chapter("order", "Order")
_SINKS = Chapter("sinks", "Sinks and dead letters")
_STOPPING = Chapter("stopping", "Stopping")
_BUILDING = Chapter("building", "Building")
_RECOVERY = Chapter("recovery", "Recovery")
_GRAPHS = Chapter("graphs", "Graphs")
_KEYS = Chapter("keys", "Keys")
_TIME = Chapter("time", "Time")
_WINDOWS = Chapter("windows", "Windows")
_KAFKA = Chapter("kafka", "Kafka")

_RULES: tuple[Rule, ...] = (
    Rule("frame-1", "A header tells the payload's length", _FRAMING),
    Rule("frame-2", "An empty payload is a frame", _FRAMING),
    Rule("frame-3", "A header that cannot be met closes its connection", _FRAMING),
    Rule("frame-4", "A connection may end inside a frame", _FRAMING),
    Rule("frame-5", "The sequence keeps each connection's order", _FRAMING),
    Rule("decode-1", "The decoder gets each payload once", _COMPUTING),
    Rule("compute-1", "Only None filters", _COMPUTING),
    Rule("compute-2", "A multi computation's result is consumed first", _COMPUTING),
    Rule("compute-3", "to_parallel means what to means", _COMPUTING),
    Rule("route-1", "One key, one entity", _ROUTING),
    Rule("route-2", "What a key is, and when two are the same", _ROUTING),
    Rule("route-3", "Listed keys are all there are", _ROUTING),
    Rule("route-4", "A key's partition number never changes", _ROUTING),
    Rule("route-5", "64-bit keys", _ROUTING),
    Rule("route-6", "to_stateful has one entity", _ROUTING),
    Rule("state-1", "An entity is built once, when its first message comes", _STATE),
    Rule("state-2", "A state computation returns a pair", _STATE),
    Rule("state-3", "True keeps what the computation left", _STATE),
    Rule("state-4", "False keeps what was there before", _STATE),
    Rule("state-5", "None sends nothing, and the state is kept all the same", _STATE),
    Rule("state-6", "An output is what it was when the call ended", _STATE),
    Rule("state-7", "A computation that raises changes nothing", _STATE),
    Rule("state-8", "Pipelines that name the same partition share it", _STATE),
    Rule("state-9", "Partitions with different names share nothing", _STATE),
    Rule("order-1", "Lineage decides", _ORDER),
    Rule("order-2", "One input log, one output", _ORDER),
    Rule("sink-1", "What an encoder may return", _SINKS),
    Rule("sink-2", "Each sink gets every message", _SINKS),
    Rule("sink-3", "A sink may be away", _SINKS),
    Rule("sink-9", "A sink's peer may remember", _SINKS),
    Rule("dead-1", "What a dead letter tells", _SINKS),
    Rule("dead-2", "One bad message harms no other", _SINKS),
    Rule("dead-3", "What ends the run instead", _SINKS),
    Rule("dead-4", "--on-error stop ends the run at the first dead letter", _SINKS),
    Rule("stop-1", "A stop goes in order", _STOPPING),
    Rule("build-1", "What cannot be right is refused", _BUILDING),
    Rule("build-2", "An engine says beforehand what it cannot run", _BUILDING),
    Rule("recover-1", "Each logged frame takes effect once", _RECOVERY),
    Rule("recover-2", "Sinks get every output at least once", _RECOVERY),
    Rule("recover-3", "A part of another checkpoint is refused", _RECOVERY),
    Rule("recover-4", "States that would be built otherwise are refused", _RECOVERY),
    Rule("scale-1", "A run may go on with other partitions, or on another engine", _RECOVERY),
    Rule("scale-2", "The old checkpoint stays as it was", _RECOVERY),
    Rule("graph-1", "Two forms, one application", _GRAPHS),
    Rule("graph-2", "A pipeline used twice branches", _GRAPHS),
    Rule("graph-3", "A merge is the union", _GRAPHS),
    Rule("graph-4", "A generator is a source without a network", _GRAPHS),
    Rule("graph-5", "Names say who is meant", _GRAPHS),
    Rule("key-1", "A key stays with its message", _KEYS),
    Rule("key-2", "Without a key, all messages have one", _KEYS),
    Rule("key-3", "A state computation of pipelines returns its output alone", _KEYS),
    Rule("key-4", "An entity may expire", _KEYS),
    Rule("key-5", "An application may bring its own codec", _KEYS),
    Rule("time-1", "The log is all that time is", _TIME),
    Rule("time-2", "Every message has an event time", _TIME),
    Rule("time-3", "Watermarks say how far time has come", _TIME),
    Rule("time-4", "What is due comes before the record's own message", _TIME),
    Rule("time-5", "A bounded log ends every source", _TIME),
    Rule("window-1", "How windows are declared", _WINDOWS),
    Rule("window-2", "Range windows lie on one grid", _WINDOWS),
    Rule("window-3", "A window fires once", _WINDOWS),
    Rule("window-4", "What an aggregation does", _WINDOWS),
    Rule("window-5", "Messages are taken in panes", _WINDOWS),
    Rule("window-6", "A late message goes where the policy says", _WINDOWS),
    Rule("window-7", "Sessions that overlap become one", _WINDOWS),
    Rule("window-8", "Count windows", _WINDOWS),
    Rule("window-9", "A message that fails at a window never came to it", _WINDOWS),
    Rule("window-10", "Memory follows what is open", _WINDOWS),
    Rule("window-11", "A trace lists open windows", _WINDOWS),
    Rule("kafka-1", "Records are numbered by their offsets", _KAFKA),
    Rule("kafka-6", "A partition may be added", _KAFKA),
    Rule("kafka-7", "A decoder gets the value, or the record", _KAFKA),
    Rule("kafka-8", "The record's own time may be the event time", _KAFKA),
    Rule("kafka-9", "Each partition has a watermark of its own", _KAFKA),
    Rule("kafka-10", "A bounded read has one exact result", _KAFKA),
    Rule("kafka-13", "An encoder says what is sent, and the key says where", _KAFKA),
    Rule("kafka-14", "Outputs stand in order of lineage", _KAFKA),
    Rule("kafka-17", "What breaks the rules cannot be set", _KAFKA),
    Rule("kafka-11", "Only committed records are read", _KAFKA),
    Rule("kafka-5", "What is gone is never passed over in silence", _KAFKA),
    Rule("kafka-12", "Brokers that are away are waited for", _KAFKA),
    Rule("kafka-15", "Readers of committed records see each output once", _KAFKA),
    Rule("kafka-16", "Two runs, or a lost position, are noticed", _KAFKA),
)

RULES: Mapping[str, Rule] = {rule.id: rule for rule in _RULES}
"""Every rule by its id, in the order of the specification."""


def rule_id(text: str) -> str:
    """Return `text` if it is the id of a rule.

    Raises:
        ValueError: it is not.
    """
    if text not in RULES:
        raise ValueError(f"{text!r} is not a rule of the specification (see rules.py)")
    return text
