"""Checks that a user's own application means the same everywhere, and every time."""
