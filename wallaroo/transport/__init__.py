"""The edges both engines share: framed TCP in, TCP out, dead letters to a file, a durable log.

`listener.Listener` and `sink.TCPSink` are bound to an asyncio event loop, which
`loop_thread.LoopThread` runs in a thread. `input_log.InputLog` makes frames durable before they
count as received. Nothing here interprets a topology.
"""
