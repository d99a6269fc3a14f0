"""How fast is it? Open-loop load for any application that takes frames, and its latency."""
