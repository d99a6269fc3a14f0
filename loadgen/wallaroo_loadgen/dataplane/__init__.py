"""The code of the sender and receiver processes, which move the messages and read the clock."""
