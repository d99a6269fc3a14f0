"""Messages and expected outputs, one file for each application, and the plan of a run."""
