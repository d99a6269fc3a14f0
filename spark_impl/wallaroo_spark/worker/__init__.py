"""What runs in a Python worker on an executor: an application's code and its state."""
