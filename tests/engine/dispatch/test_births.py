"""Instances that are claimed by the statement that inserts them."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import make
import pytest
from databases import as_node
from stages import Workbench, workbench

from horai.core.errors import HoraiError
from horai.core.queue import parse_rate
from horai.db import births as statements
from horai.db import nodes
from horai.db.births import BornRow
from horai.db.claims import ClaimedBy
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.engine.dispatch.births import Births, unclaimed
from horai.engine.dispatch.dispatcher import Dispatcher
from horai.features.tenants.service import TenantChange, change_tenant

EXPIRE = "update horai.node set lease_until = clock_timestamp() - interval '1 s' where incarnation = $1"
UNREAD = """
    select exists (select from pg_stat_activity where application_name = 'horai inserts' and wait_event = 'ClientWrite')
"""
TENANT = 1
JOB = "publish"


@asynccontextmanager
async def at_work(url: str, **fields: Any) -> AsyncGenerator[tuple[Workbench, Dispatcher, Births]]:
    """An idle dispatcher that runs the job, and the births of its process, which know the lane of the job."""
    async with workbench(url) as bench:
        made = await make.job(bench.scope, **fields)
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        births = Births(dispatcher, TENANT)
        births.note_lane(JOB, made.lane_id)
        yield bench, dispatcher, births


async def insert(bench: Workbench, births: Births, count: int, most: int | None = None) -> list[BornRow]:
    """Insert as a caller does that was told to have room, over a connection of the platform."""
    line = bench.line("births")
    return await births.insert(await line.get(), JOB, [str(n) for n in range(count)], count if most is None else most)


async def test_a_row_is_inserted_claimed_run_and_settled_without_a_claiming_statement(url: str):
    async with at_work(url) as (bench, dispatcher, births):
        claiming = await bench.tap(dispatcher.line)
        room = births.room_for(TENANT, JOB)

        born = await insert(bench, births, 3)

        rows = await bench.connection.fetch("select * from horai.instance_live order by id")
        assert room >= 3
        assert [row["id"] for row in rows] == [row.id for row in born]
        assert {(row["state"], row["attempt"], row["fence"], row["node"]) for row in rows} == {
            (1, 1, 1, bench.lease.incarnation)
        }
        assert {row["claim"] for row in rows} == {dispatcher.parts.claimer.begun}
        assert [call.payload for call in await bench.called(3)] == ["0", "1", "2"]
        assert [
            (c.attempt, c.fence, c.fire_time == r["fire_time"]) for c, r in zip(bench.executor.calls, rows, strict=True)
        ] == [(1, 1, True)] * 3
        bench.executor.gate.set()
        await bench.settle()
        assert await bench.states() == {"SUCCESS": 3}
        assert await claiming.names() == []


async def test_rows_beyond_the_room_wait_and_are_claimed_as_any_others(url: str):
    async with at_work(url) as (bench, dispatcher, births):
        born = await insert(bench, births, 5, most=2)

        assert [row.claimed is not None for row in born] == [True, True, False, False, False]
        assert await bench.states() == {"RUNNING": 2, "INIT": 3}
        bench.scope.wakeups.announce(unclaimed(born))
        bench.executor.gate.set()
        await bench.until_idle(dispatcher)
        await bench.settle()
        assert await bench.states() == {"SUCCESS": 5}


async def test_a_fenced_node_bears_no_running_row(url: str):
    async with at_work(url) as (bench, _, births):
        await bench.connection.execute("update horai.node set fenced_at = now()")

        born = await insert(bench, births, 3)

        assert [row.claimed for row in born] == [None] * 3
        assert await bench.states() == {"INIT": 3}


async def test_a_node_that_is_being_fenced_waits_for_the_births_under_way(url: str, connection: Platform):
    async with at_work(url) as (bench, dispatcher, births):
        line = bench.line("births")
        own = await line.get()
        async with own.transaction():
            with dispatcher.parts.claimer.numbered() as by:
                await statements.enqueue_running(own, TENANT, JOB, ["1"], by, births._lanes[JOB], 1)
            await bench.connection.execute(EXPIRE, bench.lease.incarnation)
            assert (await nodes.find_lost_nodes(connection, 0)).fenced == [], "not before the birth has committed"
        assert (await nodes.find_lost_nodes(connection, 0)).fenced == [bench.lease.incarnation]


async def test_a_process_that_does_not_read_the_answer_of_a_birth_can_be_fenced(url: str):
    """A frozen process: PostgreSQL waits until it reads, and holds the lock on the row of its node meanwhile."""
    async with at_work(url) as (bench, dispatcher, births):
        rescuing = await bench.line("rescuer").get()
        own = await StageConnection(as_node(url), "horai inserts").get()
        long, lane = ['"' + "x" * 100_000 + '"', None], births._lanes[JOB]
        with dispatcher.parts.claimer.numbered() as by:
            assert await statements.enqueue_running(own, TENANT, "nothing", long, by, lane, 1) == []  # prepares it
            own._transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
            unread = asyncio.create_task(statements.enqueue_running(own, TENANT, JOB, long * 40, by, lane, 80))
            async with asyncio.timeout(30):
                while not await bench.connection.fetchval(UNREAD):
                    await asyncio.sleep(0)
            await bench.connection.execute(EXPIRE, bench.lease.incarnation)

            async with asyncio.timeout(30):  # the first call ends the session
                while not (await nodes.find_lost_nodes(rescuing, 0, timedelta(0))).fenced:
                    await asyncio.sleep(0)
            own._transport.resume_reading()  # pyright: ignore[reportAttributeAccessIssue]
            with pytest.raises((asyncpg.PostgresError, ConnectionError)):
                await unread
        assert await bench.states() == {}, "the insert was never acknowledged, and has not happened"


@pytest.mark.parametrize(
    "change",
    [
        "update horai.queue set paused = true",
        "update horai.queue set max_concurrency = 1",
        "update horai.job set status = 1",
    ],
    ids=["a paused queue", "a queue with a limit", "a paused job"],
)
async def test_the_statement_enforces_a_change_that_this_process_does_not_know(url: str, change: str):
    async with at_work(url) as (bench, _, births):
        await bench.connection.execute(change)
        assert births.room_for(TENANT, JOB) > 0

        born = await insert(bench, births, 2)

        assert [row.claimed for row in born] == [None] * 2
        assert await bench.states() == {"INIT": 2}
        assert len(bench.in_flight) == 0


async def test_a_job_that_has_left_its_lane_is_inserted_into_the_new_one_unclaimed(url: str):
    async with at_work(url) as (bench, _, births):
        other = await make.job(bench.scope, "other", queue="other")
        await bench.connection.execute("update horai.job set lane_id = $1 where name = 'publish'", other.lane_id)

        born = await insert(bench, births, 2)

        assert [(row.lane, row.claimed) for row in born] == [(other.lane_id, None)] * 2
        assert births._lanes[JOB] == other.lane_id


async def test_there_is_no_room_while_due_rows_wait_or_this_process_may_not_claim(url: str):
    async with at_work(url) as (bench, dispatcher, births):
        assert births.room_for(TENANT, JOB) > 0
        assert births.room_for(TENANT, "another") == 0, "its lane is not known"
        assert births.room_for(TENANT + 1, JOB) == 0
        assert await asyncio.to_thread(lambda: asyncio.run(_room(births))) == 0, "of another event loop"

        bench.lease.trusted = False
        assert births.room_for(TENANT, JOB) == 0
        bench.lease.trusted = True

        await make.many(bench.scope, 3)
        assert births.room_for(TENANT, JOB) == 0, "due rows wait to be claimed"
        await bench.until_idle(dispatcher)
        assert births.room_for(TENANT, JOB) > 0

        dispatcher.is_draining = True
        assert births.room_for(TENANT, JOB) == 0


async def test_a_process_that_holds_more_than_it_may_has_no_room(url: str, monkeypatch: pytest.MonkeyPatch):
    """A suspended handler, or claims beyond a limit that was lowered, make the room of the claims in flight negative."""
    async with at_work(url) as (bench, _, births):
        monkeypatch.setattr(bench.in_flight, "_limit", -1)

        assert births.room_for(TENANT, JOB) == 0


async def _room(births: Births) -> int:
    return births.room_for(TENANT, JOB)


@pytest.mark.parametrize(
    "limits", [{"max_concurrency": 3}, {"rate": parse_rate("10/s")}, {"paused": True}], ids=["limit", "rate", "pause"]
)
async def test_there_is_no_room_in_a_queue_with_a_limit_a_rate_or_a_pause(url: str, limits: dict[str, Any]):
    async with at_work(url) as (bench, dispatcher, births):
        await bench.set_queue(**limits)
        dispatcher.rescan_all()
        dispatcher._learnt_at = None
        await bench.until_idle(dispatcher)

        assert births.room_for(TENANT, JOB) == 0


async def test_the_rows_of_a_lost_answer_are_given_back(url: str, monkeypatch: pytest.MonkeyPatch):
    async with at_work(url) as (bench, dispatcher, births):
        real = statements.enqueue_running

        async def loses_the_answer(*given: object) -> list[BornRow]:
            await real(*given)  # pyright: ignore[reportArgumentType]
            raise ConnectionResetError("the answer is lost")

        monkeypatch.setattr(statements, "enqueue_running", loses_the_answer)
        with pytest.raises(ConnectionResetError):
            await insert(bench, births, 3)
        monkeypatch.undo()
        assert await bench.states() == {"RUNNING": 3}
        assert dispatcher.signal.is_set(), "the dispatcher looks at once"

        await dispatcher.step(bench.clock.now())
        await bench.settler.step(bench.clock.now())
        assert bench.health.released_claims == 3
        bench.executor.gate.set()
        await bench.until_idle(dispatcher)
        await bench.settle()

        assert await bench.states() == {"SUCCESS": 3}
        assert sorted((call.attempt, call.fence) for call in bench.executor.calls) == [(1, 2), (1, 2), (1, 2)]


async def test_the_rows_of_a_birth_whose_answer_is_to_come_are_not_given_back(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    """Another claim of the node has lost its answer: the search for its rows meets those of the birth."""
    async with at_work(url) as (bench, dispatcher, births):
        real, is_written, may_answer = statements.enqueue_running, asyncio.Event(), asyncio.Event()

        async def answers_late(
            connection: Platform,
            tenant: int,
            job: str,
            payloads: Sequence[str | None],
            by: ClaimedBy,
            lane: int,
            most: int,
        ) -> list[BornRow]:
            found = await real(connection, tenant, job, payloads, by, lane, most)
            is_written.set()
            await may_answer.wait()
            return found

        monkeypatch.setattr(statements, "enqueue_running", answers_late)
        inserting = asyncio.create_task(insert(bench, births, 3))
        await is_written.wait()
        dispatcher.parts.claimer.is_answer_lost = True

        await dispatcher.step(bench.clock.now())
        assert bench.health.released_claims == 0
        await bench.sweeper(dispatcher).step(bench.clock.now() + bench.settings.sweep)
        assert bench.health.released_claims == 0

        may_answer.set()
        await inserting
        bench.executor.gate.set()
        await bench.settle()
        assert await bench.states() == {"SUCCESS": 3}
        assert [call.attempt for call in bench.executor.calls] == [1, 1, 1]


async def test_a_birth_under_way_ends_before_the_dispatcher_stops(url: str, monkeypatch: pytest.MonkeyPatch):
    async with at_work(url) as (bench, dispatcher, births):
        real, is_written, may_answer = statements.enqueue_running, asyncio.Event(), asyncio.Event()

        async def answers_late(*given: object) -> list[BornRow]:
            found = await real(*given)  # pyright: ignore[reportArgumentType]
            is_written.set()
            await may_answer.wait()
            return found

        monkeypatch.setattr(statements, "enqueue_running", answers_late)
        bench.executor.gate.set()
        inserting = asyncio.create_task(insert(bench, births, 2))
        await is_written.wait()
        stopping = asyncio.create_task(dispatcher.stop(bench.settings.grace))
        await asyncio.sleep(0)
        assert not stopping.done()

        may_answer.set()
        await inserting
        await bench.settle()
        await stopping
        assert await bench.states() == {"SUCCESS": 2}


async def test_a_refused_insert_claims_nothing_and_starts_no_search(url: str):
    async with at_work(url) as (bench, dispatcher, births):
        await change_tenant(make.platform_scope(bench.scope), "default", TenantChange(quotas={"liveInstances": 1}))

        with pytest.raises(HoraiError):
            await insert(bench, births, 5)

        assert await bench.states() == {}
        assert not dispatcher.parts.claimer.is_answer_lost
        assert dispatcher.parts.claimer.answered == dispatcher.parts.claimer.begun


async def test_an_instance_without_a_payload_has_that_of_its_job(url: str):
    async with at_work(url, payload={"page": 7}) as (bench, _, births):
        line = bench.line("births")

        await births.insert(await line.get(), JOB, [None, "1"], 2)

        assert [json.loads(str(call.payload)) for call in await bench.called(2)] == [{"page": 7}, 1]


async def test_a_job_that_does_not_exist_or_is_encrypted_gets_nothing(url: str):
    async with at_work(url) as (bench, _, births):
        await bench.connection.execute("update horai.job set encrypted = true")

        assert await insert(bench, births, 2) == []
        assert await bench.states() == {}
