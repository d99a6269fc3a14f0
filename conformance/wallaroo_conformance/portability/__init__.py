"""Does a user's own application mean the same everywhere, and every time?"""
