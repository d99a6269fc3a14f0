"""What `make demo` shows: a Wallaroo application at work on a real stream."""
