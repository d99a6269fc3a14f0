"""The figures of a running application; `wallaroo.monitor` shows them."""
