"""How fast is it? Open-loop load for anything that talks Wallaroo's TCP, and latency to believe."""
