"""Pytest fixtures, available wherever wallaroo is installed.

``def test_it(wallaroo_run): assert wallaroo_run(application, {"p": [b"x"]}).output == [b"X"]``
"""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def wallaroo_run() -> Any:
    """`wallaroo.testing.run`, which runs an application without a network."""
    from wallaroo.testing import run  # imported late: a plugin must not slow every pytest start

    return run


@pytest.fixture
def wallaroo_session() -> Any:
    """`wallaroo.testing.Session`, which steps through an application: send, let time pass, look."""
    from wallaroo.testing import Session  # imported late, as above

    return Session
