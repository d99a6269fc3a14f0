"""Timed cases: graphs, keys, event times and windows, with records that have arrival times."""
