"""The edges both engines share: framed TCP in, TCP out, dead letters to a file, a durable log.

`interfaces` names the parts in the order a frame meets them; `edges.Edges` makes them for a run.
They are bound to an asyncio event loop, which `threads.LoopThread` runs in a thread. Nothing here
interprets a topology.
"""
