"""Races that were found by thinking or by the random interleavings, each pinned down to the one order that hurts."""

import asyncio
from datetime import UTC, datetime, timedelta

import make
from databases import Superuser
from stages import FixedLease

from horai.core.outcome import Bury, Complete
from horai.core.put import PutDecision
from horai.core.settings import EngineSettings
from horai.db import jobs as job_rows
from horai.db import nodes, settlements
from horai.db.pool import Platform, acquire, connect
from horai.db.stage_connection import StageConnection
from horai.db.verify import verify
from horai.db.wakeups import Wakeups
from horai.embedded.sockets import NODE_LOGIN
from horai.engine.rescuer import Rescuer
from horai.operations import instances, jobs, move_waiting
from horai.operations.scope import Scope

LATER = timedelta(hours=1)


async def broken(connection: Platform) -> list[str]:
    return [example for finding in await verify(connection) for example in finding.examples]


async def is_blocked(connection: Platform, pid: int) -> None:
    """Returns when the backend `pid` waits for a lock."""
    async with asyncio.timeout(30):
        while not await connection.fetchval("select cardinality(pg_blocking_pids($1)) > 0", pid):
            await asyncio.sleep(0.01)


async def rescue(url: str) -> None:
    """Run one step of a rescuer of another node."""
    line = StageConnection(url, "horai test rescuer")
    await Rescuer(line, FixedLease(0), Wakeups(), EngineSettings()).step(datetime.now(UTC))
    await line.close()


async def test_B17_a_claim_under_way_while_its_node_resigns_is_not_lost(url: str, connection: Platform) -> None:
    """The claim must come before the resignation, and be rescued, or find itself refused.

    A row that is RUNNING without a node would stay so for ever.
    """
    claimer, resigner = await connect(url, "claimer"), await connect(url, "resigner")
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, "article:42")
        node = await make.node(connection)
        claim = claimer.transaction()
        await claim.start()
        await make.claim(claimer, node)

        resigning = asyncio.create_task(nodes.stop_node(resigner, node))
        blocked = asyncio.create_task(is_blocked(connection, resigner.get_server_pid()))
        await asyncio.wait({resigning, blocked}, return_when=asyncio.FIRST_COMPLETED)
        if resigning.done():
            blocked.cancel()
            await rescue(url)
        await claim.commit()
        await resigning
        await rescue(url)

        assert await broken(connection) == []
        assert await connection.fetchval("select state from horai.job_instance") == "FAIL"
    await claimer.close()
    await resigner.close()


async def test_B17_a_claim_under_way_while_its_node_is_fenced_is_rescued(url: str, connection: Platform) -> None:
    claimer = await connect(url, "claimer")
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, "article:42")
        node = await make.node(connection, timedelta(seconds=-1))
        async with claimer.transaction():
            await make.claim(claimer, node)
            await rescue(url)
        await rescue(url)

        assert await broken(connection) == []
        assert await connection.fetchval("select state from horai.job_instance") == "FAIL"
        await make.put(scope, "article:43")
        assert await make.claim(claimer, node) == []
    await claimer.close()


async def test_B4_a_crash_between_claim_and_commit_claims_nothing(url: str, connection: Platform) -> None:
    claimer = await connect(url, "claimer")
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.many(scope, 100)
        node = await make.node(connection)
        await claimer.transaction().start()
        assert len(await make.claim(claimer, node)) == 100
        pid = claimer.get_server_pid()
        claimer.terminate()
        async with asyncio.timeout(30):
            while await connection.fetchval("select count(*) from pg_stat_activity where pid = $1", pid):
                await asyncio.sleep(0.01)

        left = await connection.fetch("select distinct state, attempt, fence, node from horai.instance_live")
        assert [tuple(row) for row in left] == [(0, 0, 0, None)]
        assert len(await make.claim(connection, node)) == 100
        assert await broken(connection) == []


async def test_a_pause_that_is_still_moving_rows_does_not_park_those_of_a_resumed_job(
    url: str, connection: Superuser
) -> None:
    """A janitor that read 'paused' goes on after a resume: no process would ever move back the rows it parks then."""
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await make.put(scope, "article:42", datetime.now(UTC) + LATER)
        await connection.execute("update horai.job set status = 1, relane = true, version = version + 1")
        (stale,) = await job_rows.moves_of_jobs(connection, [job.id], 1)
        await jobs.resume_job(scope, "publish", None)

        await move_waiting.move_waiting_batch(connection, stale, scope.hooks)

        assert await connection.fetchval("select lane from horai.instance_live") == job.lane_id
        assert await broken(connection) == []


async def test_a_deletion_that_is_told_again_still_cancels_what_waits(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, "article:42", datetime.now(UTC) + LATER)

        await jobs.delete_job(scope, "publish")

        assert await connection.fetchval("select state from horai.job_instance") == "CANCELLED"
        assert await connection.fetchval("select relane from horai.job") is False


async def test_A12_an_old_version_stays_old_after_a_put_without_one(url: str, connection: Platform) -> None:
    """put v5, cancel, put without a version, put v3: the last accepted version is 5 all along."""
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, "article:42", datetime.now(UTC) + LATER, version=5)
        await instances.cancel_by_key(scope, "publish", "article:42")
        await make.put(scope, "article:42", datetime.now(UTC) + LATER)

        verdict, _ = await make.put(scope, "article:42", datetime.now(UTC), version=3)

        assert verdict is PutDecision.IGNORED
        assert await broken(connection) == []


async def continue_ids(scope: Scope, connection: Platform, first_id: int) -> None:
    """Let the only connection of the scope continue with this id; it keeps a stock of its own."""
    await connection.execute(f"grant update on sequence horai.instance_id to {NODE_LOGIN}")
    async with acquire(make.platform(scope)) as own:
        await own.fetchval("select setval('horai.instance_id', $1, false)", first_id)


async def test_a_new_put_supersedes_the_last_dead_letter_of_its_key_even_if_its_instance_has_a_smaller_id(
    url: str, connection: Platform
) -> None:
    """Ids come from each connection's own stock: the later instance of a key may well have the smaller one."""
    async with make.scope(url, size=1) as scope:
        await make.job(scope)
        node = await make.node(connection)
        for first_id in (10_000, 5_000):
            await continue_ids(scope, connection, first_id)
            await make.put(scope, "article:42")
            (claimed,) = await make.claim(connection, node)
            await settlements.apply(connection, [(claimed.held, Bury("HTTP_400", "no"))])
        await make.put(scope, "article:42")

        letters = await connection.fetch("select instance_id, replay_status from horai.dead_letter order by id")
        assert [(row[0] // 5_000, row[1]) for row in letters] == [(2, "SUPERSEDED"), (1, "SUPERSEDED")]


async def test_an_ignored_put_returns_the_last_succeeded_instance_even_if_it_has_a_smaller_id(
    url: str, connection: Platform
) -> None:
    async with make.scope(url, size=1) as scope:
        await make.job(scope)
        node = await make.node(connection)
        for first_id in (10_000, 5_000):
            await continue_ids(scope, connection, first_id)
            await make.put(scope, "article:42", again=True)
            (claimed,) = await make.claim(connection, node)
            await settlements.apply(connection, [(claimed.held, Complete())])

        verdict, instance = await make.put(scope, "article:42")

        assert verdict is PutDecision.IGNORED
        assert instance.id == claimed.held.id
