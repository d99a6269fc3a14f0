"""What user code gave, judged, for the reference and for adapters: results, keys, whole calls."""
