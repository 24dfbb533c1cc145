"""Horai behind pgbouncer: transaction pooling is refused at the start, session pooling works."""

import asyncio
from pathlib import Path

import asyncpg
import harness
import pytest
from receiver import Answer, Receiver
from terminal import Terminal

from api import given
from faults.poolers import pgbouncer
from horai.db.pool import DatabaseUnreachable, connect, opened

KNOWN = "jit,lock_timeout,idle_in_transaction_session_timeout,enable_seqscan,plan_cache_mode"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"default_pool_size": 1},
        {"server_round_robin": 1},
        {"ignore_startup_parameters": KNOWN},
        {"ignore_startup_parameters": f"{KNOWN},horai.dialled"},
    ],
    ids=["plain", "one server", "round robin", "ignores settings", "ignores the mark"],
)
async def test_transaction_pooling_is_refused_at_the_start_with_the_reason(
    settings: dict[str, object], url: str, short_place: Path
) -> None:
    async with pgbouncer(short_place, url, "transaction", **settings) as pooled:
        refused = await asyncio.to_thread(Terminal(), "node", "--port", "0", "--database-url", pooled)

    assert (refused.code, refused.out) == (1, "")
    assert "transaction or statement pooling" in refused.err
    assert "hint: Give a URL that leads to PostgreSQL itself, or set pool_mode = session in the pooler." in refused.err


async def test_transaction_pooling_is_refused_while_other_clients_use_the_pool(url: str, short_place: Path) -> None:
    async with pgbouncer(short_place, url, "transaction", default_pool_size=3) as pooled:
        busy = [await _busy(pooled) for _ in range(2)]
        try:
            with pytest.raises(DatabaseUnreachable, match="transaction or statement pooling"):
                async with opened(pooled, "horai test"):
                    pass
        finally:
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)


async def _busy(pooled: str) -> "asyncio.Task[None]":
    """Another client that uses a server session now and then."""
    connection = await asyncpg.connect(pooled, statement_cache_size=0)

    async def work() -> None:
        try:
            while True:
                async with connection.transaction():
                    await connection.execute("select 1")
                await asyncio.sleep(0)
        finally:
            connection.terminate()

    return asyncio.create_task(work())


async def test_a_node_works_behind_session_pooling(url: str, short_place: Path) -> None:
    async with (
        pgbouncer(short_place, url, "session") as pooled,
        Receiver() as receiver,
        harness.node(pooled) as api,
    ):
        job = await given.scripted(api, receiver, Answer(200))
        instance = await given.triggered(api, job)
        await api.until_state(instance["id"], "SUCCESS")
        assert (await api("GET", "/readyz")).status == 200


async def test_settings_hold_although_session_pooling_drops_startup_parameters(url: str, short_place: Path) -> None:
    async with pgbouncer(short_place, url, "session") as pooled:
        connection = await connect(pooled, "horai test")
        try:
            assert await connection.fetchval("show lock_timeout") == "2s"
            assert await connection.fetchval("show enable_seqscan") == "off"
            assert await connection.fetchval("show application_name") == "horai test"
        finally:
            await connection.close()
