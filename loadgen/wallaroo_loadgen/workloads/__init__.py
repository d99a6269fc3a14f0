"""What is sent and what should come back, one file for each application, and the plan of a run."""
