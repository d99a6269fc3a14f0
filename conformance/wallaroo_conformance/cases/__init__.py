"""What an application and its input can be: operators, generation, reduction, stored cases."""
