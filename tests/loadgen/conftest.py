"""Targets as processes, and runs against them."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from ports import free_port
from wallaroo_loadgen.common.config import RunConfig
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.session import Session

TARGET = Path(__file__).with_name("target.py")


@contextmanager
def _targets() -> Iterator[Callable[..., int]]:
    with ExitStack() as stack:

        def start(sink_port: int, *options: str) -> int:
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, str(TARGET), "--sink", f"127.0.0.1:{sink_port}", *options],
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            return int(process.stdout.readline())

        yield start


@pytest.fixture
def start_target() -> Iterator[Callable[..., int]]:
    """Return a function that starts a target for a sink's port and returns the target's port."""
    with _targets() as start:
        yield start


@pytest.fixture(scope="module")
def start_targets() -> Iterator[Callable[..., int]]:
    """Return what `start_target` does, for targets that all tests of a module share."""
    with _targets() as start:
        yield start


@pytest.fixture
def measure(start_target: Callable[..., int]) -> Callable[..., Result]:
    """Return a function that makes a short run against a target with some options."""
    return functools.partial(_run, start_target)


@pytest.fixture(scope="session")
def measured() -> Result:
    """Return a short run, for those who only look at one."""
    with _targets() as start:
        return _run(start)


def _run(start: Callable[..., int], *options: str, **changes: Any) -> Result:
    listen = free_port()
    port = start(listen, *options)
    settings: dict[str, Any] = {
        "workload": "echo",
        "to": (("127.0.0.1", port),),
        "listen": ("127.0.0.1", listen),
        "rate": 1000,
        "duration": 1.5,
        "warmup": 0.3,
        "cooldown": 0.2,
        "drain": 2.0,
        "wait": 15.0,
        "run": 1,
    }
    return Session().run(RunConfig(**{**settings, **changes}))
