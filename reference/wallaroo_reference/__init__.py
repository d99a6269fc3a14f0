"""The reference engine: pure Python, one process, standard library only.

`interpreter` says what an application means; `compiled` runs it as fast as a loop written by hand;
`server` puts either behind TCP.
"""
