"""The commands `wallaroo load` and `wallaroo compare`."""
