"""Runs with bounded input, in the driver: many cases in one job, and their traces."""
