"""Load tests led by Locust: `locust -f loadgen/locustfile.py`, and see loadgen/README.md."""

from wallaroo_loadgen.with_locust.plane import LoadUser, install

install()

__all__ = ["LoadUser"]
