"""What runs in the sender and receiver processes: they move the messages and read the clock."""
