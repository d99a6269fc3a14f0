"""Is an engine right? Cases, laws by rule, batched search and reduction, mutants, report."""
