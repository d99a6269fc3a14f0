"""The commands ``wallaroo conform`` and ``wallaroo replay``."""
