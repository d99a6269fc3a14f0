"""User code while it runs: where it failed, what it printed and logged."""
