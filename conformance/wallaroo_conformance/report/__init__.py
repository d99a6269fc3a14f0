"""What was found, for people and for CI: text, HTML, JUnit."""
