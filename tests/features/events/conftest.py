"""One nats-server for all tests that only read from it; each has a stream of its own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from nats_server import NatsServer


@pytest.fixture(scope="session")
def nats_server(short_place: Path) -> Iterator[NatsServer]:
    server = NatsServer(short_place / "nats").start()
    yield server
    server.stop()


@pytest.fixture
def mortal_server(tmp_path: Path) -> Iterator[NatsServer]:
    """A server that a test may stop and kill."""
    server = NatsServer(tmp_path / "nats").start()
    yield server
    server.kill()


@pytest.fixture
def stream() -> str:
    return f"s{os.urandom(4).hex()}"
