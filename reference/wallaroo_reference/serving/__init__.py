"""A live run: asyncio around a machine."""
