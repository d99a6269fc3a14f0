"""Spark itself, used by the driver: Java, the JVM, the session, and how code gets to workers."""
