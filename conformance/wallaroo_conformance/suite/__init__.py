"""The suite as pytest runs it: ``pytest --wallaroo-engine=NAME``."""
