"""Fixtures for pytest, available where Horai is installed. The plugin imports Horai only when a test uses a fixture."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest


@pytest.fixture(scope="session")
def horai_server() -> Iterator[None]:
    """Stop the PostgreSQL of this test run at its end. The first harness starts it."""
    yield
    import_module("horai.testing.server").SERVER.stop()


@pytest.fixture
def horai_harness(horai_server: None) -> Callable[..., Any]:
    """Return the class `Harness`, for `with` or `async with`; the server behind it stops at the end of the test run."""
    return import_module("horai.testing.harness").Harness
