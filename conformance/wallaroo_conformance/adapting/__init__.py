"""What adapters need of an application: its calls, its windows, its order of steps."""
