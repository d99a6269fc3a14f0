"""What is right: rules, the reference's answer, facts, laws, and how a trace differs."""
