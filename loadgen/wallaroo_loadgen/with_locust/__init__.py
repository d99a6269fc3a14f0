"""Locust instead of `wallaroo load`: its command line, workers and web page lead our runs."""
