"""What a run found, for people and for other tools: terminal, HTML report, files."""
