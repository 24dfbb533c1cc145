"""Fixtures for pytest, there wherever Horai is installed. Nothing of Horai is loaded before a test asks for one."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest


@pytest.fixture(scope="session")
def horai_server() -> Iterator[None]:
    """The PostgreSQL of this test run, started at first need and gone at its end."""
    yield
    import_module("horai.testing.server").SERVER.stop()


@pytest.fixture
def horai_harness(horai_server: None) -> Callable[..., Any]:
    """What puts an application into a harness, in `with` or in `async with`: `Harness`, with a server behind it."""
    return import_module("horai.testing.harness").Harness
