"""Plain data that the driver and the workers exchange; imports nothing of the other rooms."""
