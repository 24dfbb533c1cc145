"""The public views: the seed's columns, and one truth over both tables."""

from datetime import UTC, datetime, timedelta

import pytest

import make
import rows
from horai.core.calls import instance_key, slot_key
from horai.core.settlement import Bury, Retry
from horai.core.states import State
from horai.db import claims, schedules
from horai.db.pool import Dedicated
from horai.db.schedules import Cursor

SEED = {
    "job_definition": "job_id tenant_id cron timezone status priority retry_policy created_at",
    "job_instance": "instance_id job_id fire_time state attempt worker_id idem_key updated_at",
    "retry_entry": "instance_id next_fire_time attempt reason",
    "dlq_entry": "instance_id error_code payload_ref created_at replay_status",
}


async def columns(connection: Dedicated, view: str) -> set[str]:
    found = await connection.fetch(
        "select column_name from information_schema.columns where table_schema = 'horai' and table_name = $1", view
    )
    return {row["column_name"] for row in found}


async def test_C14_C15_C16_C17_the_views_have_the_seeds_columns(connection: Dedicated):
    for view, names in SEED.items():
        assert set(names.split()) <= await columns(connection, view), view


async def test_C14_a_definition_is_shown_with_its_defaults(url: str, connection: Dedicated):
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


async def test_C15_an_instance_is_shown_in_every_state(connection: Dedicated):
    made = {state: (await rows.instance(connection, state)).id for state in State}

    for state, instance_id in made.items():
        row = await connection.fetchrow("select * from horai.job_instance where instance_id = $1", instance_id)
        assert row is not None
        assert row["state"] == state.name
        assert row["worker_id"] == (
            rows.NODE if state in (State.RUNNING, State.SUCCESS, State.DEAD, State.CANCELLED) else None
        )


async def test_sql_and_python_make_the_same_idem_key(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        job = await make.job(scope, every="1h")
        assert job.schedule_id is not None
        slot = datetime.now(UTC) + timedelta(hours=1, microseconds=1)
        await schedules.make_slots(connection, [Cursor(job.schedule_id, slot, 0)], 10)
        _, put = await make.put(scope, "k", slot)

        keys = await connection.fetch("select key, idem_key from horai.job_instance order by instance_id")

        assert [row["idem_key"] for row in keys] == [slot_key(job.id, slot), instance_key(job.id, slot, put.id)]
        assert put.idem_key == keys[1]["idem_key"]
        assert await connection.fetchval("select horai.idem_key(7, $1, 2)", slot) == slot_key(7, slot, 2)


async def test_C16_a_retry_is_shown_with_its_time_and_reason(connection: Dedicated):
    held = await rows.instance(connection, State.RUNNING)
    (woken,) = await claims.fail_if_running(connection, [(held, Retry(timedelta(hours=1), "HTTP_503", "busy"))])
    await rows.instance(connection, State.INIT)

    found = await connection.fetch("select instance_id, next_fire_time, attempt, reason from horai.retry_entry")

    assert [tuple(row) for row in found] == [(held.id, woken.due, 3, "HTTP_503")]


async def test_C17_a_dead_letter_is_shown_with_its_replay_status(connection: Dedicated):
    held = await rows.instance(connection, State.RUNNING)
    await claims.bury_if_running(connection, [(held, Bury("TIMEOUT", "x"))])

    found = await connection.fetch("select instance_id, error_code, payload_ref, replay_status from horai.dlq_entry")

    assert [tuple(row) for row in found] == [(held.id, "TIMEOUT", f"instance:{held.id}", "NEW")]
    for status in ("REPLAYED", "SUPERSEDED", "DISCARDED"):
        await connection.execute("update horai.dead_letter set replay_status = $1", status)
    with pytest.raises(Exception, match="check"):
        await connection.execute("update horai.dead_letter set replay_status = 'LOST'")


async def test_the_table_itself_refuses_a_running_row_without_an_owner(connection: Dedicated):
    await rows.instance(connection, State.INIT)

    for change in ("state = 1", "node = 7", "claim = 7", "claimed_at = now()", "state = 2"):
        with pytest.raises(Exception, match="check constraint"):
            await connection.execute(f"update horai.instance_live set {change}")


async def test_state_names_are_the_same_in_sql_and_python(connection: Dedicated):
    names = [await connection.fetchval("select horai.state_name($1::smallint)", int(state)) for state in State]

    assert names == [state.name for state in State]
