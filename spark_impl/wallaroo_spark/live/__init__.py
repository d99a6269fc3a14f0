"""Live runs, in the driver: TCP in, the input log, a streaming query, TCP out, the checkpoint."""
