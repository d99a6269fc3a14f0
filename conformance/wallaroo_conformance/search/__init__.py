"""Looking for a case on which an engine fails: jobs, judging, reduction."""
