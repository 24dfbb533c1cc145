"""Fixtures that several tests of the SDK share."""

import asyncio
from collections.abc import Iterator

import pytest
from callers import KINDS, Caller


@pytest.fixture(params=["asyncpg", "psycopg", "psycopg_async", "sqlalchemy_connection", "django_proxy"])
def caller(request: pytest.FixtureRequest, url: str, runner: asyncio.Runner) -> Iterator[Caller]:
    """A connection of the caller, one of each family of drivers; its transaction is the caller's."""
    with KINDS[request.param](url, runner) as opened:
        yield opened
