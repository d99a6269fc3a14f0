"""Schedules and histograms: arithmetic that every process of a run does alike."""
