"""The entities that a tick loads, and the ends of runs as those of entities."""

import asyncio
import random
from datetime import UTC, datetime, timedelta

import entities as given
import make
import pytest
import rows
from databases import Superuser
from entities import days

from horai.core.refresh import Due, Status, is_due
from horai.db.catalog import sql
from horai.features.refresh import store as entities
from horai.features.refresh.store import DueSet, EntityFilter

TICK = datetime(2023, 6, 4, 2, tzinfo=UTC)
WINDOW = days(10)

SEED = """
select key from horai.entity
where job_id = $1 and (status = 0 or (status in (2, 3) and finish_time <= $2::timestamptz - interval '10 days'))
"""
"""The statement of seed 003, but for its limit."""


async def filled(connection: Superuser, job_id: int, count: int, dice: random.Random) -> None:
    """Entities in every state, with ends around the edge of the window."""
    for key in given.names(count):
        status = dice.choice([*Status])
        ended = TICK - WINDOW + timedelta(seconds=dice.randint(-3, 3)) if status > Status.RUNNING else None
        await connection.execute(
            "insert into horai.entity (tenant_id, job_id, key, status, finish_time, fresh_at, create_time) values (1, $1, $2, $3, $4, $4, $5)",
            job_id,
            key,
            int(status),
            ended,
            given.LONG_AGO,
        )


@pytest.mark.parametrize("seed", range(5))
async def test_D4_D6_X9_a_tick_loads_what_the_seeds_statement_selects(url: str, connection: Superuser, seed: int):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await filled(connection, job.id, 80, random.Random(seed))
        wanted = {row["key"] for row in await connection.fetch(SEED, job.id, TICK)}
        due = DueSet(job.id, TICK, WINDOW)
        all_ = await entities.list_entities(connection, job.id, "", 100, EntityFilter())
        told = {
            entity.key
            for entity in all_
            if entity.status is not Status.RUNNING
            and is_due(Due(entity.key, entity.finish_time), entity.create_time, TICK, WINDOW)
        }

        count = await entities.count_due_entities(connection, due)
        first = await entities.next_due_entity(connection, due)
        loaded = await entities.load_entities(connection, due, 1_000, 7)

        assert {entity.due.key for entity in loaded} == wanted == told
        assert count == len(wanted)
        assert loaded[0].due == first
        ends = [entity.due.finished_at or given.LONG_AGO for entity in loaded]
        assert ends == sorted(ends)


async def test_X9_a_load_that_is_full_has_taken_those_who_wait_longest(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await given.add(scope, "young", "old", "oldest", "never", "older")
        await given.age(connection)
        for key, ago in {"young": 10, "old": 12, "older": 13, "oldest": 14}.items():
            await given.set_entity(connection, key, Status.FAILED if ago % 2 else Status.SUCCESS, TICK - days(ago))
        due = DueSet(job.id, TICK, WINDOW)

        loads = [await entities.load_entities(connection, due, 2, number) for number in range(1, 5)]

        assert [[entity.due.key for entity in load] for load in loads] == [
            ["never", "oldest"],
            ["older", "old"],
            ["young"],
            [],
        ]


async def test_D7_those_who_came_after_a_tick_are_not_walked_over_by_its_looks(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await given.add(scope, *given.names(3_000))
        await connection.execute("update horai.entity set create_time = $1", TICK + timedelta(hours=1))
        await given.set_entity(connection, "sku-02999", Status.SUCCESS, TICK - days(11))
        await connection.execute("vacuum analyze horai.entity")

        for name, more in {"next_due_entity": (), "count_due_entities": (), "load_entities": (10, 1)}.items():
            asked = f"explain (analyze, costs off) {sql(name)}"
            lines = await connection.fetch(asked, job.id, TICK, TICK - WINDOW, *more)
            plan = "\n".join(line[0] for line in lines)
            assert "Removed by Filter" not in plan, plan
            assert "entity_new" in plan, plan


async def test_D5_a_late_tick_loads_the_same_set(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await given.add(scope, "old", "due-since", "new")
        await given.age(connection)
        await given.set_entity(connection, "old", Status.SUCCESS, TICK - days(11))
        await given.set_entity(connection, "due-since", Status.SUCCESS, TICK - days(9.9))
        await connection.execute(
            "update horai.entity set create_time = $1 where key = 'new'", TICK + timedelta(hours=1)
        )

        loaded = await entities.load_entities(connection, DueSet(job.id, TICK, WINDOW), 10, 7)

        assert [entity.due.key for entity in loaded] == ["old"]


async def test_D8_X7_loading_marks_an_entity_in_the_same_statement(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await given.add(scope, "a")
        await given.age(connection)
        await given.set_entity(connection, "a", Status.FAILED, TICK - days(11))
        await connection.execute("update horai.entity set remark = 'no answer', update_time = $1", given.LONG_AGO)
        before = await connection.fetchval("select clock_timestamp()")

        await entities.load_entities(connection, DueSet(job.id, TICK, WINDOW), 10, 7)

        found = await given.entity(connection, job, "a")
        assert (found.status, found.finish_time, found.remark, found.batch_no) == (Status.RUNNING, None, None, 7)
        assert found.start_time is not None
        assert found.start_time >= before
        assert found.update_time >= before
        assert found.fresh_at == TICK - days(11), "its age goes on counting"


async def test_D14_a_tick_leaves_entities_of_other_jobs_with_the_same_key_alone(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job, other = [await given.refresh_job(scope, name) for name in ("refresh_stock", "refresh_price")]
        for name in ("refresh_stock", "refresh_price"):
            await given.add(scope, "a", job=name)
        await given.age(connection)
        before = await given.entity(connection, other, "a")

        loaded = await entities.load_entities(connection, DueSet(job.id, TICK, WINDOW), 10, 7)

        assert [entity.due.key for entity in loaded] == ["a"]
        assert (await given.entity(connection, job, "a")).status is Status.RUNNING
        assert await given.entity(connection, other, "a") == before


async def test_D14_two_ticks_at_once_take_disjoint_sets_whose_union_is_the_due_set(url: str, connection: Superuser):
    async with make.scope(url) as scope, rows.connections(url, 4) as loaders:
        job = await given.refresh_job(scope)
        await given.add(scope, *given.names(2_000))
        await given.age(connection)
        await connection.execute(
            "update horai.entity set status = 2, finish_time = $1 where right(key, 1) in ('1', '2')", TICK - days(3)
        )
        due = DueSet(job.id, TICK, WINDOW)
        wanted = {row["key"] for row in await connection.fetch(SEED, job.id, TICK)}

        async def drain(loader: Superuser, batch_no: int) -> list[str]:
            taken: list[str] = []
            while some := await entities.load_entities(loader, due, 70, batch_no):
                taken += [entity.due.key for entity in some]
            return taken

        taken = await asyncio.gather(*(drain(loader, number) for number, loader in enumerate(loaders, 1)))

        every = [key for keys in taken for key in keys]
        assert len(every) == len(set(every))
        assert set(every) == wanted
        assert sum(1 for keys in taken if keys) > 1
        assert await given.keys_of_batch(connection, 2) == sorted(taken[1])


async def test_D14_a_tick_does_not_wait_for_what_another_one_holds(url: str, connection: Superuser):
    async with make.scope(url) as scope, rows.connections(url, 1) as (other,):
        job = await given.refresh_job(scope)
        await given.add(scope, *given.names(10))
        await given.age(connection)
        due = DueSet(job.id, TICK, WINDOW)
        async with other.transaction():
            first = await entities.load_entities(other, due, 6, 1)
            second = await entities.load_entities(connection, due, 10, 2)

        assert len(first) == 6
        assert len(second) == 4
        assert await entities.load_entities(connection, due, 10, 3) == []


@pytest.mark.parametrize(
    ("state", "status", "remark"),
    [(2, Status.SUCCESS, "执行成功"), (4, Status.FAILED, "BROKEN: no answer"), (5, Status.FAILED, "cancelled")],
)
async def test_D9_the_end_of_the_run_is_that_of_the_entity(
    url: str, connection: Superuser, state: int, status: Status, remark: str
):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await given.add(scope, "a")
        await given.age(connection)
        await given.tick(connection, job, TICK)
        await connection.execute("update horai.entity set update_time = $1", given.LONG_AGO)
        await given.end(connection, "a", state)

        finished = await entities.finish_entities(connection, job.id, 0, 10)

        found = await given.entity(connection, job, "a")
        ended = await connection.fetchval("select finished_at from horai.instance_history")
        assert (finished.looked, finished.ended) == (1, 1)
        assert (found.status, found.remark, found.finish_time, found.fresh_at) == (status, remark, ended, ended)
        assert found.update_time > given.LONG_AGO
        assert (await entities.finish_entities(connection, job.id, 0, 10)).looked == 0


async def test_X8_an_entity_whose_instance_has_vanished_is_reset_and_loaded_again(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await given.add(scope, "a", "b")
        await given.age(connection)
        await given.tick(connection, job, TICK)
        await connection.execute("delete from horai.instance_live where key = 'a'")
        just_loaded = await entities.finish_entities(connection, job.id, 0, 10)
        await connection.execute("update horai.entity set start_time = start_time - interval '2 minutes'")

        await entities.finish_entities(connection, job.id, 0, 10)

        assert just_loaded.ended == 0
        assert (await given.entity(connection, job, "a")).status is Status.NOT_RUN
        assert (await given.entity(connection, job, "b")).status is Status.RUNNING
        again = await entities.load_entities(connection, DueSet(job.id, TICK, WINDOW), 10, 2)
        assert [entity.due.key for entity in again] == ["a"]


async def test_X8_the_end_of_an_earlier_run_is_not_that_of_a_lost_one(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await given.add(scope, "a")
        await given.age(connection)
        await given.tick(connection, job, TICK)
        await given.end(connection, "a", at=TICK)
        await connection.execute("update horai.entity set start_time = $1", TICK - WINDOW)
        await entities.finish_entities(connection, job.id, 0, 10)
        assert (await given.entity(connection, job, "a")).finish_time == TICK
        await given.tick(connection, job, TICK + WINDOW, 2)
        await connection.execute("delete from horai.instance_live where key = 'a'")
        await connection.execute("update horai.entity set start_time = start_time - interval '2 minutes'")

        await entities.finish_entities(connection, job.id, 0, 10)

        assert (await given.entity(connection, job, "a")).status is Status.NOT_RUN


async def test_D15_a_job_keeps_its_last_hundred_batches(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        for number in range(1, 104):
            await entities.begin_batch(connection, DueSet(job.id, TICK + days(number), WINDOW), number, 0)

        kept = await connection.fetch("select batch_no from horai.refresh_batch order by batch_no")

    assert [number for (number,) in kept] == [*range(4, 104)]


async def test_a_run_that_was_superseded_is_followed_to_its_successor(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await given.add(scope, "a")
        await given.age(connection)
        await given.tick(connection, job, TICK)
        await make.claim(connection, await make.node(connection))
        verdict, successor = await make.put(scope, "a", job="refresh_stock")

        await entities.finish_entities(connection, job.id, 0, 10)
        followed = await given.entity(connection, job, "a")
        await given.end(connection, "a")
        await entities.finish_entities(connection, job.id, 0, 10)

        assert verdict == "SUPERSEDED"
        assert (followed.status, followed.instance_id) == (Status.RUNNING, successor.id)
        assert (await given.entity(connection, job, "a")).status is Status.SUCCESS


async def test_D15_D17_a_batch_is_listed_in_the_view_with_the_seeds_columns(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await given.add(scope, "a", "b", "later")
        await given.age(connection)
        await given.set_entity(connection, "later", Status.SUCCESS, TICK)
        await given.tick(connection, job, TICK, batch_no=7)
        await given.end(connection, "b", 4)
        await entities.finish_entities(connection, job.id, 0, 10)

        found = await connection.fetch(
            "select task_id, entity_key, start_time, finish_time, task_status, remark, create_time, update_time, batch_no"
            " from horai.refresh_entity where batch_no = 7 order by task_id"
        )

    running, failed = found
    assert running["task_id"] < failed["task_id"]
    assert [row["entity_key"] for row in found] == ["a", "b"]
    assert [row["create_time"] for row in found] == [given.LONG_AGO] * 2
    assert (running["task_status"], running["finish_time"], running["remark"]) == (1, None, None)
    assert (failed["task_status"], failed["remark"]) == (3, "BROKEN: no answer")
    assert running["start_time"] <= failed["finish_time"] <= failed["update_time"]


async def test_every_question_about_very_many_entities_goes_by_an_index(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
    await connection.execute(
        "insert into horai.entity (tenant_id, job_id, key, status, finish_time, fresh_at)"
        " select 1, $1, 'k' || n, 2, now() - n * interval '1 minute', now() - n * interval '1 minute'"
        " from generate_series(1, 20000) n",
        job.id,
    )
    await connection.execute("vacuum analyze horai.entity")
    now = await connection.fetchval("select now()")
    asked = {
        "load_entities": (job.id, now, now - days(13), 100, 1),
        "next_due_entity": (job.id, now, now - days(13)),
        "count_due_entities": (job.id, now, now - days(13)),
        "finish_entities": (job.id, 0, 100),
        "oldest_entities": (job.id, 5, 4096),
    }

    for name, arguments in asked.items():
        lines = await connection.fetch(f"explain {sql(name)}", *arguments)
        plan = "\n".join(line[0] for line in lines)
        assert "Seq Scan on entity" not in plan, f"{name}: {plan}"
        assert "entity_" in plan, f"{name}: {plan}"


async def test_the_failed_are_counted_without_a_walk_over_those_that_succeeded(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
    await connection.execute(
        "insert into horai.entity (tenant_id, job_id, key, status, finish_time, fresh_at)"
        " select 1, $1, 'k' || n, case when n % 1000 = 0 then 3 else 2 end, now(), now() from generate_series(1, 20000) n",
        job.id,
    )
    await connection.execute("vacuum analyze horai.entity")
    now = await connection.fetchval("select now()")

    lines = await connection.fetch(f"explain {sql('refresh_counts')}", job.id, now - days(10), now - days(11))

    plan = "\n".join(line[0] for line in lines)
    assert "entity_failed" in plan, plan
    assert "Seq Scan on entity" not in plan.replace("Only Scan", ""), plan
