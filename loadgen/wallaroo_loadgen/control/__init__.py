"""The code of the process that a user starts: it leads runs, collects figures, judges them."""
