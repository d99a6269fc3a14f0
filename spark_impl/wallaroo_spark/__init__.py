"""Wallaroo on Apache Spark: the same applications, as Structured Streaming queries.

The code of each folder runs in one kind of process; ``docs/architecture.md`` says in which, and
follows a frame through the folders.
"""
