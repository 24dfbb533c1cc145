"""The janitor, step by step."""

from datetime import timedelta

import make
import pytest
import rows
import structlog
from databases import Superuser
from refused_tables import PERMIT_TABLES, REFUSE_TABLES
from stages import Workbench, workbench

from horai.core.outcome import RetryAt
from horai.core.states import State
from horai.core.wakes import LaneWake
from horai.db import claims, jobs, nodes
from horai.db.pool import Platform
from horai.engine.janitor import JOBS_AT_ONCE, Janitor
from horai.features.registry import JOB_HOOKS
from horai.operations import jobs as accepted


def janitor(bench: Workbench) -> Janitor:
    return Janitor(
        bench.line("janitor"), bench.scope.wakeups, bench.health, bench.settings, bench.clock.now(), JOB_HOOKS
    )


async def test_rows_that_a_pause_has_left_behind_are_moved(url: str):
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        await make.many(bench.scope, 5)
        await bench.connection.execute("update horai.job set status = 1, relane = true")

        again = await janitor(bench).step(bench.clock.now())

        assert await bench.connection.fetchval("select bool_and(lane = 0) from horai.instance_live")
        assert await jobs.jobs_to_move(bench.connection, 10) == []
        assert again - bench.clock.now() < timedelta(seconds=2), "while there is work it looks again soon"
        woken: list[int] = []
        bench.scope.wakeups.subscribe(LaneWake, lambda wake: woken.append(wake.lane))
        await bench.connection.execute("update horai.job set status = 0, relane = true, version = version + 1")
        await janitor(bench).step(bench.clock.now())
        assert set(woken) == {job.lane_id}


async def test_waiting_instances_of_many_jobs_are_moved_in_one_step(url: str):
    async with workbench(url) as bench:
        for number in range(JOBS_AT_ONCE + 5):
            await make.job(bench.scope, f"job-{number}")
            await make.many(bench.scope, 1, job=f"job-{number}")
        await bench.connection.execute("update horai.job set status = 1, relane = true")

        await janitor(bench).step(bench.clock.now())

        assert await bench.connection.fetchval("select bool_and(lane = 0) from horai.instance_live")
        assert await jobs.jobs_to_move(bench.connection, 10) == []


async def test_the_rows_of_a_deleted_job_are_cancelled(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 5)
        await bench.connection.execute("update horai.job set deleted_at = now(), relane = true")

        await janitor(bench).step(bench.clock.now())

        assert await bench.states() == {"CANCELLED": 5}


async def test_another_queue_takes_the_waiting_rows_along(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 3)

        changed = await accepted.change_job(bench.scope, "publish", accepted.JobChange({"queue": "other"}))

        lanes = await bench.connection.fetch("select distinct lane from horai.instance_live")
        assert [row["lane"] for row in lanes] == [changed.lane_id]


async def test_chores_are_done_now_and_then(url: str):
    async with workbench(url, partitions_ahead=12, idempotency_keep=timedelta(days=1)) as bench:
        held = await rows.instance(bench.connection, State.RUNNING)
        await claims.fail_if_running(bench.connection, [(held, RetryAt(timedelta(hours=1), "X", "x"))])
        await bench.connection.execute(
            "insert into horai.idempotency_key (tenant_id, scope, key, request_hash, created_at)"
            " values (1, 's', 'old', '', now() - interval '2 days'), (1, 's', 'new', '', now())"
        )

        await janitor(bench).step(bench.clock.now())

        assert await nodes.make_partitions(bench.connection, 12) == 0
        assert await bench.connection.fetchval("select string_agg(key, ',') from horai.idempotency_key") == "new"
        assert bench.health.retry_backlog == 1


async def test_old_keys_are_deleted_in_slices_and_the_others_counted(url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("horai.engine.janitor.KEYS_AT_ONCE", 2)
    async with workbench(url) as bench:
        await bench.connection.execute(
            "insert into horai.idempotency_key (tenant_id, scope, key, request_hash, created_at, size)"
            " select 1, 's', n::text, '', now() - n * interval '1 day', 10 from generate_series(1, 12) n"
        )
        await bench.connection.execute("insert into horai.idempotency_load values (2, 5, 50)")

        await janitor(bench).step(bench.clock.now())

        kept = await bench.connection.fetch("select key from horai.idempotency_key order by key")
        assert [key for (key,) in kept] == ["1", "2", "3", "4", "5", "6"], "7 days"
        load = await bench.connection.fetch("select tenant_id, keys, bytes from horai.idempotency_load")
        assert [tuple(row) for row in load] == [(1, 6, 60)]


async def test_unique_calls_that_no_longer_count_are_forgotten_page_by_page(url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("horai.engine.janitor.CALLS_AT_ONCE", 3)
    monkeypatch.setattr("horai.engine.janitor.CALL_PAGES", 2)
    async with workbench(url) as bench:
        await make.job(bench.scope)
        for number in range(10):
            await bench.connection.execute("select horai.enqueue_unique('publish', $1::json)", str(number))
        await bench.connection.execute("delete from horai.instance_live where payload::text <> '7'")
        stage, now, left = janitor(bench), bench.clock.now(), list[int]()

        for _ in range(2):
            await stage.step(now)
            left.append(await bench.connection.fetchval("select count(*) from horai.unique_call"))
            now += timedelta(minutes=11)

        assert left[0] in {4, 5}, "two pages of three calls are checked at a time"
        assert left[1] == 1, "the call of the live instance stays"


async def test_an_old_key_that_a_transaction_holds_does_not_delay_the_others(url: str, connection: Platform):
    async with workbench(url) as bench:
        await bench.connection.execute(
            "insert into horai.idempotency_key (tenant_id, scope, key, request_hash, created_at)"
            " select 1, 's', n::text, '', now() - n * interval '8 days' from generate_series(1, 3) n"
        )
        async with connection.transaction():
            await connection.execute("select from horai.idempotency_key where key = '3' for update")

            await janitor(bench).step(bench.clock.now())

            assert await bench.connection.fetchval("select string_agg(key, ',') from horai.idempotency_key") == "3"
        await janitor(bench).step(bench.clock.now())
        assert await bench.connection.fetchval("select count(*) from horai.idempotency_key") == 0


async def test_partitions_that_cannot_be_created_do_not_hold_up_other_chores(url: str, connection: Superuser):
    async with workbench(url, partitions_ahead=12, idempotency_keep=timedelta(days=1)) as bench:
        await bench.connection.execute(
            "insert into horai.idempotency_key (tenant_id, scope, key, request_hash, created_at)"
            " values (1, 's', 'old', '', now() - interval '2 days')"
        )
        await connection.execute(REFUSE_TABLES)

        await janitor(bench).step(bench.clock.now())

        assert await bench.connection.fetchval("select count(*) from horai.idempotency_key") == 0
        await connection.execute(PERMIT_TABLES)
        assert await nodes.make_partitions(bench.connection, 12) > 0, "they were not created"


async def test_strays_are_an_alarm(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await rows.instance(bench.connection, State.SUCCESS)
        await bench.connection.execute("update horai.instance_history set finished_at = now() + interval '5 days'")

        with structlog.testing.capture_logs() as logs:
            await janitor(bench).step(bench.clock.now())

        assert [(entry["log_level"], entry["rows"]) for entry in logs if "default partition" in entry["event"]] == [
            ("error", 1)
        ]
