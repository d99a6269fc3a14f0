"""Results of runs, for people and for other tools: terminal, HTML report, files."""
