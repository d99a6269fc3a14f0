"""A recorded input log run once more, without a network: what came out, and where it came from."""
