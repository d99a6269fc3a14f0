"""Plain data that the driver and the workers exchange; imports none of the other folders."""
