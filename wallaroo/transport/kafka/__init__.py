"""Kafka's edges: records come from partitions of a topic, and outputs go to partitions of one."""
