"""A refresh job is one job to its clients: the job of its ticks is made, changed, paused and deleted with it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import entities as given
import make
import pytest
import rows
from databases import Superuser

from horai.core.errors import Invalid
from horai.core.job import JobStatus
from horai.core.refresh import Status
from horai.core.shards import EVERY_ROLE
from horai.db import jobs as jobs_table
from horai.db import nodes
from horai.db.job_lists import JobFilter, list_jobs
from horai.db.jobs import JobRow, ticks_of
from horai.features.backfill.rules import BackfillRequest
from horai.features.backfill.service import survey_backfill
from horai.features.explain.service import explain_slot
from horai.features.refresh import service as refreshes
from horai.features.registry import JOB_HOOKS
from horai.operations import instances, jobs
from horai.operations.declarations import DeclaredJob, declare
from horai.operations.job_rows import JobDocument
from horai.operations.jobs import JobChange
from horai.operations.move_waiting import move_waiting_batch
from horai.operations.request_keys import Once
from horai.operations.scope import Scope
from horai.operations.trigger_batches import TriggerBatches


async def ticks(connection: Superuser, job: JobRow) -> JobRow:
    found = await ticks_of(connection, job.id)
    assert found is not None
    return found


async def fire_time_of(connection: Superuser, job: JobRow) -> datetime | None:
    return await connection.fetchval(
        "select schedule.fire_time from horai.job join horai.schedule on schedule.id = schedule_id where job.id = $1",
        job.id,
    )


async def test_D3_its_schedule_is_followed_by_the_job_that_makes_its_ticks(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope, every=None, cron="0 2 * * *", timezone="Asia/Shanghai", priority="high")
        made = await ticks(connection, job)
        listed = await list_jobs(connection, 1, 0, 10, JobFilter())

    assert (job.document["cron"], job.document["refresh"]["window"]) == ("0 2 * * *", "10d")
    assert (job.schedule_id, made.name, made.priority) == (None, "refresh_stock:refresh", job.priority)
    assert await fire_time_of(connection, made) is not None
    assert [each.id for each in listed] == [job.id]


async def test_a_pause_and_a_resume_hold_for_both(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)

        paused = await jobs.pause_job(scope, job.name, "stocktaking")
        held = await ticks(connection, job)
        assert (paused.status, held.status) == (JobStatus.PAUSED, JobStatus.PAUSED)
        assert held.missed_from is not None

        resumed = await jobs.resume_job(scope, job.name, None)
        assert (resumed.status, (await ticks(connection, job)).status) == (JobStatus.ACTIVE, JobStatus.ACTIVE)


async def test_a_change_of_the_schedule_is_one_of_the_ticks_and_of_the_window_is_not(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        before = await ticks(connection, job)

        changed = await jobs.change_job(scope, job.name, JobChange({"every": "1h", "refresh": {"window": "3d"}}))
        after = await ticks(connection, job)

    assert changed.document["refresh"] == {"window": "3d", "limit": 1_000, "runOnAdd": False}
    assert (changed.schedule_id, after.id) == (None, before.id)
    assert after.schedule_id != before.schedule_id
    assert after.document["every"] == "1h"


async def test_a_job_becomes_a_refresh_job_and_ceases_to_be_one(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await make.job(scope, "nightly", cron="0 2 * * *")
        assert job.schedule_id is not None

        became = await jobs.change_job(scope, job.name, JobChange({"refresh": {"window": "10d"}}))
        assert became.schedule_id is None
        assert (await ticks(connection, job)).schedule_id == job.schedule_id

        again = await jobs.change_job(scope, job.name, JobChange({"refresh": None}))
        assert again.schedule_id == job.schedule_id
        assert await ticks_of(connection, job.id) is None


async def test_D2_with_the_job_its_ticks_and_its_entities_go_and_its_name_is_free(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope, refresh={"runOnAdd": True})
        await given.add(scope, "a", "b")

        await jobs.delete_job(scope, job.name)

        assert await ticks_of(connection, job.id) is None
        assert await connection.fetchval("select count(*) from horai.entity") == 0
        assert await connection.fetchval("select count(*) from horai.instance_live") == 0
        assert (await given.refresh_job(scope)).id != job.id


async def test_D2_a_deletion_that_is_broken_off_is_taken_up_by_who_tidies(url: str, connection: Superuser):
    """As by kill -9 after the commit: the job is gone and marked, its entities are there still."""
    async with make.scope(url) as scope, rows.connections(url, 1) as (holder,):
        job = await given.refresh_job(scope)
        await given.add(scope, *given.names(2_500))
        await jobs_table.delete_job(connection, job.id, job.document)
        async with holder.transaction():
            await holder.execute("select from horai.entity where key = 'sku-00007' for update")
            await relane(connection, job)
            held_back = await connection.fetch("select key from horai.entity")
        await relane(connection, job)

        assert [row["key"] for row in held_back] == ["sku-00007"]
        assert await connection.fetchval("select count(*) from horai.entity") == 0
        assert await jobs_table.moves_of_jobs(connection, [job.id], 1) == []


async def relane(connection: Superuser, job: JobRow) -> None:
    (marked,) = await jobs_table.moves_of_jobs(connection, [job.id], 1)
    await move_waiting_batch(connection, marked, JOB_HOOKS)


async def test_the_builtin_job_that_makes_the_ticks_cannot_be_paused_deleted_or_changed(
    url: str, connection: Superuser
):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        made = await ticks(connection, job)

        for verb in (
            lambda: jobs.pause_job(scope, made.name, None),
            lambda: jobs.delete_job(scope, str(made.id)),
            lambda: jobs.change_job(scope, made.name, JobChange({"every": "1s"})),
        ):
            with pytest.raises(Invalid, match="makes the ticks of a refresh job"):
                await verb()


async def test_create_declare_and_change_refuse_a_job_with_a_builtin_handler(url: str):
    document = {"name": "sly", "target": {"type": "worker", "handler": "horai:refresh"}}
    async with make.scope(url) as scope:
        with pytest.raises(Invalid, match="belongs to Horai itself"):
            await jobs.create_job(scope, JobDocument(document, None))
        with pytest.raises(Invalid, match="belongs to Horai itself"):
            await declare(scope, "shop", [DeclaredJob(document, None)])
        await make.job(scope, "honest")
        with pytest.raises(Invalid, match="belongs to Horai itself"):
            await jobs.change_job(scope, "honest", JobChange({"target": document["target"]}))


async def test_code_declares_one_and_a_second_start_changes_nothing(url: str, connection: Superuser):
    document: dict[str, Any] = {"name": "stock", "every": "1d", "refresh": {"window": "10d", "limit": 5}}
    async with make.scope(url) as scope:
        first = await declare(scope, "shop", [DeclaredJob(document, None)])
        second = await declare(scope, "shop", [DeclaredJob(document, None)])
        third = await declare(scope, "shop", [DeclaredJob({**document, "every": "2d"}, None)])
        job = await jobs.pause_job(scope, "stock", None)

    assert (first.created, second.unchanged, third.changed) == (("stock",), ("stock",), ("stock",))
    assert second.removed == ()
    assert (await ticks(connection, job)).document["every"] == "2d"


async def test_a_trigger_of_it_is_a_tick(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await nodes.register_node(connection, "n", "h", 1, "v", timedelta(seconds=60), EVERY_ROLE)

        made = await instances.trigger(scope, job.name, None, Once("once", b""))
        over_rest = await TriggerBatches().trigger(scope, job.name, None, Once("over REST", b""))

        assert made.job == over_rest.job == "refresh_stock:refresh"
        for trigger in (instances.trigger, TriggerBatches().trigger):
            with pytest.raises(Invalid, match="is not accepted when triggering a refresh job"):
                await trigger(scope, job.name, "1", Once("twice", b""))


async def test_why_a_tick_came_is_explained_at_the_job(url: str):
    async with make.scope(url) as scope:
        await given.refresh_job(scope)

        told = await explain_slot(scope, "refresh_stock", datetime(2030, 1, 1, tzinfo=UTC))
        never = await explain_slot(scope, "refresh_stock", datetime(2030, 1, 1, 1, tzinfo=UTC))

    assert told.explanation.verdict != never.explanation.verdict
    assert never.explanation.verdict.value == "NOT_A_SLOT"


async def test_entities_belong_to_refresh_jobs_alone(url: str):
    async with make.scope(url) as scope:
        await make.job(scope, "publish")

        for asked in (refreshes.freshness(scope, "publish"), given.add(scope, "a", job="publish")):
            with pytest.raises(Invalid, match="not a refresh job"):
                await asked


async def _counts(scope: Scope) -> tuple[int, int, int, int, float | None]:
    found = await refreshes.freshness(scope, "refresh_stock")
    return found.counts.entities, found.counts.never_run, found.counts.running, found.counts.due, found.coverage


async def test_D16_coverage_and_age_are_right_at_the_moment_they_are_asked_for(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        nothing = await refreshes.freshness(scope, job.name)
        await given.add(scope, "a", "b", "c", "d")
        added = await _counts(scope)
        now = await nodes.database_time(connection)
        await given.tick(connection, job, now)
        loaded = await _counts(scope)
        await given.end(connection, "a")
        await given.end(connection, "b", 4)
        ended = await _counts(scope)
        await connection.execute(
            "update horai.entity set create_time = create_time - interval '3 days' where key = 'd'"
        )
        found = await refreshes.freshness(scope, job.name)

    assert (nothing.coverage, nothing.max_age, nothing.last_tick) == (None, None, None)
    assert added == (4, 4, 0, 4, 0.0)
    assert loaded == (4, 4, 4, 0, 0.0)
    assert ended == (4, 2, 2, 0, 0.5)
    assert found.max_age is not None
    assert timedelta(days=3) <= found.max_age < timedelta(days=3, minutes=5)
    assert [entity.key for entity in found.oldest] == ["d", "c", "a", "b"]
    assert found.last_tick is not None
    assert found.progress is not None
    assert (found.last_tick.due, found.last_tick.loaded, found.last_tick.fire_time) == (4, 4, now)
    assert (found.progress.running, found.progress.succeeded, found.progress.failed) == (2, 1, 1)
    assert found.next_tick is not None


async def test_D16_an_entity_is_overdue_when_it_is_older_than_a_window_and_a_tick(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await given.add(scope, "fresh", "due", "late", "failed late", "new", "forgotten")
        now = await nodes.database_time(connection)
        ages = {"fresh": 9.9, "due": 10.9, "late": 11.1, "failed late": 30}
        for key, age in ages.items():
            status = Status.FAILED if "failed" in key else Status.SUCCESS
            await given.set_entity(connection, key, status, now - timedelta(days=age))
        await connection.execute(
            "update horai.entity set create_time = $1 where key = 'forgotten'", now - timedelta(days=12)
        )

        found = await refreshes.freshness(scope, job.name)
        await jobs.pause_job(scope, job.name, None)
        paused = await refreshes.freshness(scope, job.name)

    assert (found.counts.due, found.counts.overdue, found.counts.fresh) == (5, 3, 1)
    assert [entity.key for entity in found.oldest][:3] == ["failed late", "forgotten", "late"]
    assert (paused.counts.overdue, paused.next_tick) == (3, None)


async def test_the_past_of_a_refresh_job_is_not_backfilled(url: str):
    """An entity that was due then is due with the next tick, once."""
    async with make.scope(url) as scope:
        await given.refresh_job(scope)

        with pytest.raises(Invalid, match="schedule"):
            await survey_backfill(scope, "refresh_stock", BackfillRequest(datetime(2026, 1, 1, tzinfo=UTC)))
