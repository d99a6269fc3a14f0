"""Whether runs are worse than others, as far as repeated runs can tell: arithmetic, no input."""
