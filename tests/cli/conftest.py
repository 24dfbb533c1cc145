"""One server for all tests of the command line, on an embedded database of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import HoraiProcess
from terminal import Terminal


@pytest.fixture(scope="session")
def server(short_place: Path) -> Iterator[HoraiProcess]:
    running = HoraiProcess(short_place / "cli", HORAI_SOURCE_NOWHERE="postgresql://nowhere.invalid/shop").start()
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="session")
def horai(server: HoraiProcess) -> Terminal:
    """A terminal that knows the server."""
    return Terminal(HORAI_SERVER=server.base)


@pytest.fixture
def alone() -> Terminal:
    """A terminal without a server."""
    return Terminal(HORAI_SERVER="http://127.0.0.1:1")
