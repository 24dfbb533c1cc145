"""The PostgreSQL of harnesses lasts for the tests of this directory."""

from collections.abc import Iterator

import pytest

from horai.testing.server import SERVER


@pytest.fixture(scope="session", autouse=True)
def _server() -> Iterator[None]:
    yield
    SERVER.stop()
