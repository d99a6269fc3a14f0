"""Commands of the reference engine: rerun, explain."""
