"""The worker's operators put into Spark's plans: a batch job, a streaming query and its source."""
