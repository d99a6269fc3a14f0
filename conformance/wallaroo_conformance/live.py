"""placeholder"""
from __future__ import annotations
def check_live(*a): return [],[]
