"""A followed record as a trace: a span for the record, for each step, for each output.

The parent of a message's span is the span of the message that it was made from: that of the nearest
earlier step at which the message's lineage is the beginning of its own. A message that a window
gave in a record's turn has the record as its parent.
"""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context,
)

from wallaroo.metrics.following import Followed, Visit
from wallaroo.operations import Branch, Collect, Merge
from wallaroo.text import encodable
from wallaroo.topology import Application, Node, Sink, Source, Step

_Made = list[tuple[Visit, Span]]


def make_spans(tracer: Tracer, application: Application, followed: Followed) -> None:
    """Make the spans of a record.

    Args:
        tracer: makes them.
        application: what the record went through.
        followed: the record.
    """
    root = tracer.start_span(
        f"frame {encodable(followed.source)}",
        kind=SpanKind.CONSUMER,
        attributes={
            "wallaroo.source": encodable(followed.source),
            "wallaroo.lineage": str(followed.sequence),
            "wallaroo.calls_left_out": followed.visits.left_out,
        },
        start_time=followed.arrived,
    )
    made: dict[int, _Made] = {}
    ends = []
    for visit in followed.visits.kept:
        node = application.nodes[visit.node]
        parent = _parent(application, made, visit) or root
        span = tracer.start_span(
            _name(node),
            context=set_span_in_context(parent),
            kind=SpanKind.PRODUCER if isinstance(node, Sink) else SpanKind.INTERNAL,
            attributes={
                "wallaroo.pipeline": encodable(node.pipeline),
                "wallaroo.position": application.position(node),
                "wallaroo.lineage": ".".join(map(str, visit.lineage)),
            },
            start_time=visit.began,
        )
        made.setdefault(visit.node, []).append((visit, span))
        ended = visit.ended
        if visit.error is not None:
            kind, text = map(encodable, visit.error)
            told = {"exception.type": kind, "exception.message": text}
            span.add_event("exception", told, timestamp=visit.ended)
            span.set_status(Status(StatusCode.ERROR, f"{kind}: {text}"))
        elif isinstance(node, Sink) and node.id in followed.delivered:
            span.add_event("encoded", timestamp=visit.ended)
            ended = max(ended, followed.delivered[node.id])
        ends.append((span, ended))
    for span, ended in reversed(ends):
        span.end(ended)
    root.end(max([followed.ended, *[ended for _, ended in ends]]))


def _parent(application: Application, made: dict[int, _Made], visit: Visit) -> Span | None:
    """Return the span of the message that a message was made from."""
    for origin in _origins(application, visit.node):
        for before, span in reversed(made.get(origin, [])):
            if visit.lineage[: len(before.lineage)] == before.lineage:
                return span
    return None


def _origins(application: Application, index: int) -> Iterator[int]:
    """Yield the nodes whose messages come to a node; those that pass messages on have no calls."""
    node = application.nodes[index]
    for origin in () if isinstance(node, Source) else node.inputs:
        before = application.nodes[origin]
        if isinstance(before, Step) and isinstance(before.operation, (Branch, Collect, Merge)):
            yield from _origins(application, origin)
        else:
            yield origin


def _name(node: Node) -> str:
    if isinstance(node, Source):
        return f"decode {encodable(node.pipeline)}"
    if isinstance(node, Sink):
        return f"sink {encodable(node.pipeline)}/{node.index}"
    return f"step {encodable(node.name)}"
