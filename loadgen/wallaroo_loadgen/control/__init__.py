"""What runs in the process that a user starts: it leads runs, collects figures, judges them."""
