"""Wallaroo on Apache Spark: the same applications, as Structured Streaming queries.

A room is a folder, and tells in which process its code runs; ``spark_impl/README.md`` shows them
all and follows a frame through them.
"""
