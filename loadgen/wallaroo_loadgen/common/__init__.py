"""Schedules and histograms: arithmetic that every process of a run shares."""
