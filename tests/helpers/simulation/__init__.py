"""Deterministic simulation: the engine as it is, on a network, disk and clock that a seed decides.

Nothing of the engine is replaced. What it asks of the operating system is: the calls of `os`,
`socket`, `fcntl`, `sqlite3` and `time` that concern the simulated machine are answered by a model
(`calls`), and asyncio's own event loop waits in a selector that lets simulated time pass (`loop`).

- `world`: the clock, what will happen, the steps of a life, and its end by a crash.
- `disk`, `network`, `database`: the models. After a crash of the process a disk holds what was
  written; after a power failure what was synced, and any part of the rest.
- `brokers`, `kafka_client`: brokers with transactions; what the engine calls of their client.
- `threads`: the engine's own, which wait for the disk, for brokers and for each other.
- `peers`: senders and receivers, which notice what they are told.
- `plans`: one run as a value, drawn from a seed; what fails is made smaller.
- `serving`, `logs`, `recordings`: the server without a checkpoint; an input log by itself.
- `cases`, `topic_cases`: applications of generated cases on the server with a checkpoint, and all
  that comes of them; `topics`: what others send to topics, and when brokers are away.
- `stored`: the state in their checkpoints, looked at and written anew between two lives.
- `bounds`: of buffers and batches, which are small in some lives.
- `spark`: the same on the Spark engine, with a few lines in place of its JVM.
- `planted`: faults put into the engine (`planted.toml`), each of which has to be found.

One run has several *lives*: the engine is started, does its work, and crashes at a step that the
plan says; the last life is stopped in order. A *step* is a call to the system or a turn of the
loop.
"""
