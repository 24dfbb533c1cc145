"""The public views: the seed's columns, and one truth over both tables."""

from datetime import UTC, datetime, timedelta

import entities as given
import make
import pytest
import rows
from databases import Superuser

from horai.core.calls import instance_key, slot_key
from horai.core.outcome import Bury, RetryAt
from horai.core.refresh import Status
from horai.core.states import State
from horai.db import claims, schedules
from horai.db.schedules import ScheduleCursor
from horai.features.refresh import store as entities

SEED = {
    "job_definition": "job_id tenant_id cron timezone status priority retry_policy created_at",
    "job_instance": "instance_id job_id fire_time state attempt worker_id idem_key updated_at",
    "retry_entry": "instance_id next_fire_time attempt reason",
    "dlq_entry": "instance_id error_code payload_ref created_at replay_status",
}


async def columns(connection: Superuser, view: str) -> set[str]:
    found = await connection.fetch(
        "select column_name from information_schema.columns where table_schema = 'horai' and table_name = $1", view
    )
    return {row["column_name"] for row in found}


async def test_C14_C15_C16_C17_the_views_have_the_seeds_columns(connection: Superuser):
    for view, names in SEED.items():
        assert set(names.split()) <= await columns(connection, view), view


async def test_C14_a_definition_is_shown_with_its_defaults(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope, "a", cron="0 9 * * *", timezone="Asia/Shanghai", priority="core", retry={"maxRetry": 2})
        await make.job(scope, "b")

        found = await connection.fetch(
            "select tenant_id, cron, timezone, status, priority, retry_policy ->> 'maxRetry' as retries"
            " from horai.job_definition order by job_id"
        )

        assert [tuple(row) for row in found] == [
            ("default", "0 9 * * *", "Asia/Shanghai", "ACTIVE", "core", "2"),
            ("default", None, "UTC", "ACTIVE", "normal", "5"),
        ]


async def test_C15_an_instance_is_shown_in_every_state(connection: Superuser):
    made = {state: (await rows.instance(connection, state)).id for state in State}

    for state, instance_id in made.items():
        row = await connection.fetchrow("select * from horai.job_instance where instance_id = $1", instance_id)
        assert row is not None
        assert row["state"] == state.name
        assert row["worker_id"] == (
            rows.NODE if state in (State.RUNNING, State.SUCCESS, State.DEAD, State.CANCELLED) else None
        )


async def test_sql_and_python_make_the_same_idem_key(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await make.job(scope, every="1h")
        assert job.schedule_id is not None
        slot = datetime.now(UTC) + timedelta(hours=1, microseconds=1)
        await schedules.make_slots(connection, [ScheduleCursor(job.schedule_id, slot, 0)], 10)
        _, put = await make.put(scope, "k", slot)

        keys = await connection.fetch("select key, idem_key from horai.job_instance order by instance_id")

        assert [row["idem_key"] for row in keys] == [slot_key(job.id, slot), instance_key(job.id, slot, put.id)]
        assert put.idem_key == keys[1]["idem_key"]
        assert await connection.fetchval("select horai.idem_key(7, $1, 2)", slot) == slot_key(7, slot, 2)


async def test_C16_a_retry_is_shown_with_its_time_and_reason(connection: Superuser):
    held = await rows.instance(connection, State.RUNNING)
    (woken,) = await claims.fail_if_running(connection, [(held, RetryAt(timedelta(hours=1), "HTTP_503", "busy"))])
    await rows.instance(connection, State.INIT)

    found = await connection.fetch("select instance_id, next_fire_time, attempt, reason from horai.retry_entry")

    assert [tuple(row) for row in found] == [(held.id, woken.due, 3, "HTTP_503")]


async def test_C17_a_dead_letter_is_shown_with_its_replay_status(connection: Superuser):
    held = await rows.instance(connection, State.RUNNING)
    await claims.bury_if_running(connection, [(held, Bury("TIMEOUT", "x"))])

    found = await connection.fetch("select instance_id, error_code, payload_ref, replay_status from horai.dlq_entry")

    assert [tuple(row) for row in found] == [(held.id, "TIMEOUT", f"instance:{held.id}", "NEW")]
    for status in ("REPLAYED", "SUPERSEDED", "DISCARDED"):
        await connection.execute("update horai.dead_letter set replay_status = $1", status)
    with pytest.raises(Exception, match="check"):
        await connection.execute("update horai.dead_letter set replay_status = 'LOST'")


async def test_the_table_itself_refuses_a_running_row_without_an_owner(connection: Superuser):
    await rows.instance(connection, State.INIT)

    for change in ("state = 1", "node = 7", "claim = 7", "claimed_at = now()", "state = 2"):
        with pytest.raises(Exception, match="check constraint"):
            await connection.execute(f"update horai.instance_live set {change}")


async def test_state_names_are_the_same_in_sql_and_python(connection: Superuser):
    names = [await connection.fetchval("select horai.state_name($1::smallint)", int(state)) for state in State]

    assert names == [state.name for state in State]


async def types(connection: Superuser, view: str) -> dict[str, str]:
    found = await connection.fetch(
        "select column_name, data_type from information_schema.columns where table_schema = 'horai' and table_name = $1",
        view,
    )
    return {row["column_name"]: row["data_type"] for row in found}


async def test_F6a_F6b_the_views_show_and_accept_the_state_names_of_the_seed_beside_the_native_ones(
    connection: Superuser,
):
    made = {state: (await rows.instance(connection, state)).id for state in State}
    renamed = {State.INIT: "PENDING", State.SUCCESS: "DONE"}

    for state, instance_id in made.items():
        seed_state = renamed.get(state, state.name)
        row = await connection.fetchrow(
            "select state, seed_state from horai.job_instance where instance_id = $1", instance_id
        )
        assert row == (state.name, seed_state)
        for column, name in (("seed_state", seed_state), ("state", state.name)):
            found = await connection.fetch(f"select instance_id from horai.job_instance where {column} = $1", name)
            assert found == [(instance_id,)]


async def test_C14_C15_C16_C17_the_seeds_tables_join_on_the_tenant(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        retried = await make.running(scope, connection, "retried")
        await claims.fail_if_running(connection, [(retried.held, RetryAt(timedelta(hours=1), "HTTP_503", "busy"))])
        await make.put(scope, "dead")
        await make.put(scope, "waits")
    await connection.execute(
        "insert into horai.dead_letter (tenant_id, job_id, instance_id, error_code)"
        " select tenant_id, job_id, id, 'TIMEOUT' from horai.instance_live where key = 'dead'"
    )

    found = await connection.fetch(
        "select i.key, tenant_id, r.reason, d.error_code from horai.job_definition"
        " join horai.job_instance i using (job_id, tenant_id)"
        " left join horai.retry_entry r using (instance_id, tenant_id)"
        " left join horai.dlq_entry d using (instance_id, tenant_id) order by 1"
    )

    assert [tuple(row) for row in found] == [
        ("dead", "default", None, "TIMEOUT"),
        ("retried", "default", "HTTP_503", None),
        ("waits", "default", None, None),
    ]
    for view in (*SEED, "instance_event", "t_task"):
        assert (await types(connection, view))["tenant_id"] == "text", view


async def test_F11a_F11b_F11c_t_task_has_the_names_and_types_of_the_seed(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
        await given.add(scope, "sku-1", "sku-2", "sku-3")
        await given.age(connection)
        await given.set_entity(connection, "sku-3", Status.SUCCESS, given.LONG_AGO)
        await given.tick(connection, job, given.LONG_AGO + timedelta(days=9), batch_no=7)
        await given.end(connection, "sku-2", 4)
        await entities.finish_entities(connection, job.id, 0, 10)

    loaded = await connection.fetch("select * from horai.t_task where batch_no = '7' order by product_code")
    due = await connection.fetch(
        "select product_code from horai.t_task where task_status = 0 or (task_status in (2, 3)"
        " and finish_time <= timestamptz '2023-01-12 00:00:00Z' - interval '10 days') limit 1000"
    )

    assert await types(connection, "t_task") == {
        "task_id": "bigint",
        "product_code": "character varying",
        "start_time": "timestamp with time zone",
        "finish_time": "timestamp with time zone",
        "task_status": "integer",
        "remark": "character varying",
        "create_time": "timestamp with time zone",
        "update_time": "timestamp with time zone",
        "batch_no": "text",
        "job_id": "bigint",
        "tenant_id": "text",
    }
    running, failed = loaded
    assert [row["product_code"] for row in loaded] == ["sku-1", "sku-2"]
    assert (running["task_status"], running["finish_time"], running["remark"]) == (1, None, None)
    assert (failed["task_status"], failed["remark"]) == (3, "BROKEN: no answer")
    assert failed["start_time"] <= failed["finish_time"] <= failed["update_time"]
    assert (running["create_time"], running["batch_no"], running["tenant_id"]) == (given.LONG_AGO, "7", "default")
    assert running["task_id"] < failed["task_id"]
    assert [row["product_code"] for row in due] == ["sku-3"]
