"""Wallaroo on Apache Spark: the same applications, as Structured Streaming queries.

The code of each folder runs in one kind of process; ``spark_impl/README.md`` says in which, and
describes the way of a frame through the folders.
"""
