"""The generated code of a window step: what a message does there, and what a window gives.

A message usually comes to a range window that is open already: then two dictionary lookups find its
accumulator, and `update` is called, all in the generated code. For everything else, `take` of
`ranges.py` is called.
"""

from __future__ import annotations

from dataclasses import replace

from wallaroo.keys import SINGLE_KEY, identity
from wallaroo.operations import Windowed
from wallaroo.topology import Step
from wallaroo.trace import Reason
from wallaroo.windows import RangeWindows
from wallaroo_reference.compiled.codegen_text import Spot, Text, identifier, lineage_of, shown

ALL = repr(SINGLE_KEY)
"""The expression for the key of messages that have no other key (key-2)."""


def write_put(
    text: Text, indent: int, index: int, operation: Windowed, message: str, key: str, known: str
) -> None:
    """Write what a message does at a window step.

    Args:
        text: the program.
        indent: levels of the code around.
        index: the step's node.
        operation: the step's operation.
        message: the message's variable.
        key: the expression for its key, unless the step finds a key of its own.
        known: the variable that holds the key's identity; empty: there is none.
    """
    route = operation.route
    if route is not None:
        key = f"k{index}"
        find = text.call("partition", index, route.call, route.name)
        text.line(indent, f"{key} = {find}({message})")
    assert text.spot is not None
    loops = text.spot.loops
    text.spot = replace(text.spot, key=key, half="window")
    if isinstance(operation.windows, RangeWindows):
        identity_text, missing = known or f"n{index}", text.use("MISSING")
        if key == ALL:
            identity_text = repr(identity(SINGLE_KEY))
        elif not known:
            text.line(indent, f"{identity_text} = {key} if {text.exactness(key)} else {missing}")
        panes, update = text.use(f"panes_{index}"), operation.aggregation
        call = text.call("update", index, update.call, update.name)
        text.line(indent, "try:")
        text.line(indent + 1, f"p{index} = {panes}[time // {operation.windows.pane}]")
        text.line(indent + 1, f"a{index} = p{index}[{identity_text}]")
        text.line(indent, "except KeyError:")
        text.line(indent + 1, f"a{index} = {missing}")
        text.line(indent, f"if a{index} is not {missing}:")
        if text.keeps:
            pane = f"time // {operation.windows.pane}"
            text.line(
                indent + 1, f"{text.use(f'changed_at_{index}')}[{pane}, {identity_text}] = None"
            )
        text.line(indent + 1, f"r{index} = {call}({message}, a{index})")
        text.line(indent + 1, f"if r{index} is not None:")
        text.line(indent + 2, f"p{index}[{identity_text}] = r{index}")
        text.line(indent, "else:")
        indent += 1
    text.line(indent, f"f{index} = take_{index}({message}, {key}, time)")
    text.engine_line(indent, f"if f{index} is not None:")
    text.engine_line(
        indent + 1,
        f"fire_{index}(payload if f{index}[-1] else None, {lineage_of(loops)}, *f{index})",
    )


def write_take_out(text: Text, index: int, step: Step, operation: Windowed) -> int:
    """Begin the function that processes what a window gives, down to its message m<index>.

    Its arguments are those of a `wallaroo.windowing.kinds.Firing`. `payload` is that of the frame
    only for a window of its own that a late message has got (window-6).
    """
    aggregation = operation.aggregation
    head = text.head(f"fire_{index}(payload, lineage, key, start, end, time, parts, shared, own")
    text.spot = Spot(
        step.pipeline, step.name, step.position, None, Reason.RAISED, (), key="key", half=""
    )
    text.line(1, f"# what {shown(step.name)} gives")
    text.line(1, "try:")
    text.line(2, f"a{index} = combined_{index}(parts, shared)")
    output = text.call("output", index, aggregation.output, identifier(aggregation.name))
    bounds = f", {text.use('WindowBounds')}(start, end)" if aggregation.wants_window else ""
    text.line(2, f"m{index} = {output}(key, a{index}{bounds})")
    text.line(2, "payload = None")
    return head
