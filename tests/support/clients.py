"""Database roles with a login of their own, as services have them."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg

from horai.db.pool import Dedicated, Platform


@asynccontextmanager
async def role(owner: Platform, url: str, *, granted: bool = True) -> AsyncGenerator[tuple[str, Dedicated]]:
    """A new login role, with `grant_client` if `granted`, and a connection of that role. It is dropped afterwards."""
    name = f"client_{os.urandom(5).hex()}"
    await owner.execute(f"create role {name} login")
    if granted:
        await owner.execute("select horai.grant_client($1)", name)
    session: Dedicated = await asyncpg.connect(url, user=name, password="", server_settings={"timezone": "UTC"})
    try:
        yield name, session
    finally:
        await session.close()
        await owner.execute(f"drop owned by {name} cascade; drop role {name}")
