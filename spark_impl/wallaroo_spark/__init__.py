"""Wallaroo on Apache Spark: the same applications, as Structured Streaming queries.

Theory of operation, from the outside in:

- `engine` answers the engine protocol; `many` runs bounded cases, `serve` live ones.
- `plan` says where an application's state is held: components, on levels.
- `flow` is an application's code between two state partitions, `states` and `segments` are the
  entities, `operators` joins them: blocks of messages in, rows of blocks out.
- `batch` and `stream` put operators into Spark's plans; `job` and `rows` say what travels.
- `session` and `java` bring Spark up, `shipping` brings the application to the workers.
"""
