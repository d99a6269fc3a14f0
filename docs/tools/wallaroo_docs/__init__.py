"""The documents' machinery: finds the examples in the Markdown, runs them, writes their results."""
