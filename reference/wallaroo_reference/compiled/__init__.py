"""The fast way to the same results, trusting user code: a function generated from the topology."""
