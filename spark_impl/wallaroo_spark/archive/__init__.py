"""Makes the archive of Spark's classes: ``python -m wallaroo_spark.archive``."""
