"""The reference engine: pure Python, one process, standard library only.

`isolated` defines what an application means; `compiled` runs it as fast as a loop written by hand;
`serving` runs either of them over TCP, `checkpoints` keeps its state on disk, `replay` runs
recorded input again.
"""
