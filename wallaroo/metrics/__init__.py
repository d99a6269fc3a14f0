"""What a running application does, as figures; what shows them is `wallaroo.monitor`."""
