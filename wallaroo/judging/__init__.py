"""Judging what user code gave, for engines and adapters: results, keys, whole calls."""
