"""What is right: rules, the reference's answer, laws, and how a trace differs."""
