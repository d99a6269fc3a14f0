"""What holds for the language itself, whichever engine runs an application."""
