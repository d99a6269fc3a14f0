from __future__ import annotations

import argparse


def check_app(options: argparse.Namespace) -> int:
    raise NotImplementedError
