"""The reference engine: pure Python, one process, standard library only.

`interpreter` defines what an application means; `compiled` runs it as fast as a loop written by
hand; `server` runs either of them over TCP.
"""
