"""Wallaroo on Apache Spark: the same applications, as Structured Streaming queries.

Each folder is named after the process in which its code runs; ``spark_impl/README.md`` describes
all folders and the way of a frame through them.
"""
