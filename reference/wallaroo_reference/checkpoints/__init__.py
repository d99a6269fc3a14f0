"""Checkpoints of a machine: its cells in slices, and the file they are stored in."""
