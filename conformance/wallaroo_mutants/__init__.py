"""Engines with a fault each: the proof that conformance can fail."""
