"""The definition: what an application means, written down as plainly as we can.

`Definition` runs a bounded case and gives its trace. It was written from the rules and the
specification, without a look at any engine, and shares no code with one: it takes from `wallaroo`
the topology, the records and the form of a trace, and nothing that decides. It judges the reference
engine's interpreter, which judges all others
([why](../../../docs/decisions/definition.md)).

To be read against the rules, it has no short cuts: each value is kept as bytes and copied for each
call, a watermark is computed from the whole log so far, all windows are looked at for each record.
It knows no metrics, checkpoints, batches, findings or threads.
"""

from wallaroo_conformance.definition.running import Definition as Definition
