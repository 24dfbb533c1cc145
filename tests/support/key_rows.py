"""The rows of a key, live and past."""

import asyncpg

from horai.core.outcome import Complete
from horai.db import claims
from horai.db.claims import ClaimedRow
from horai.db.pool import Platform


async def live_rows(connection: Platform) -> list[asyncpg.Record]:
    return await connection.fetch("select * from horai.instance_live order by id")


async def past_rows(connection: Platform) -> list[asyncpg.Record]:
    return await connection.fetch("select * from horai.instance_history order by finished_at")


async def succeed(connection: Platform, claimed: ClaimedRow) -> None:
    assert await claims.finish_if_running(connection, claimed.held.node, [(claimed.held, Complete())])
