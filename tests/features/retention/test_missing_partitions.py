"""A day that has no partition of its own: work goes on, an alert fires, and its rows are moved when the day is over."""

import asyncio
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import alert_yard
import archive_yard as yard
import asyncpg
import harness
import make
import pytest
from alert_yard import QUICK, told
from databases import Superuser
from harness import Client
from receiver import Answer, Receiver
from refused_tables import PERMIT_TABLES, REFUSE_TABLES
from rows import until
from shifted_clock import SHIFTED, read_clock, set_clock

from api import given
from horai.core.settings import EngineSettings
from horai.db.verify import verify
from horai.features.retention import store

KEPT = EngineSettings().history_keep
TABLES = ("instance_history", "attempt", "event", "note")
SOON = {"maxRetry": 3, "base": "20ms", "cap": "20ms"}
LATER_DAYS = """
    select leaf.relname from pg_inherits join pg_class leaf on leaf.oid = inhrelid join pg_class parent on parent.oid = inhparent
    where parent.relname = any ($1) and leaf.relname ~ '_[0-9]{8}$' and right(leaf.relname, 8) > $2
"""


async def without_days_after(connection: Superuser, day: date) -> None:
    """Drop the partitions after a day."""
    for row in await connection.fetch(LATER_DAYS, list(TABLES), f"{day:%Y%m%d}"):
        await connection.execute(f"drop table horai.{row['relname']}")


async def place_of(connection: Superuser, instance: str) -> str:
    """The partition in which an instance lies."""
    where = "select tableoid::regclass::text from horai.instance_history where id = $1"
    return (await connection.fetchval(where, int(instance))).removeprefix("horai.")


async def ended(api: Client, job: str, key: str) -> str:
    """Put a key, and return the id of its instance when it has succeeded."""
    made = await api("PUT", f"/api/v1/jobs/{job}/instances/{key}", {})
    assert made.status == 201, made.json
    await api.until_state(made.json["instance"]["id"], "SUCCESS")
    return made.json["instance"]["id"]


async def put_again(api: Client, job: str, key: str) -> Any:
    return (await api("PUT", f"/api/v1/jobs/{job}/instances/{key}", {})).json["decision"]


async def strays(connection: Superuser) -> dict[str, int]:
    return {table: await connection.fetchval(f"select count(*) from horai.{table}_default") for table in TABLES}


@pytest.mark.timeout(240)
async def test_work_goes_on_over_a_midnight_without_partitions_and_its_rows_are_archived_and_dropped_like_others(
    url: str, connection: Superuser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horai.features.retention.stage.IN_USE_AGAIN", timedelta(milliseconds=200))
    today = datetime.now(UTC).date() + timedelta(days=1)  # at any time of day, the clock is only set forward
    midnight = datetime.combine(today + timedelta(days=1), time(), UTC)
    await connection.execute(SHIFTED)
    await connection.execute("alter table horai.event alter at set default shifted.clock_timestamp()")
    await without_days_after(connection, today)
    await connection.execute(REFUSE_TABLES)
    flags: dict[str, Any] = {"history_keep": KEPT, "archive_dir": str(tmp_path), **QUICK}
    async with Receiver() as receiver:
        receiver.on("/pay", Answer(200), Answer(503), *[Answer(200)] * 50)
        await set_clock(connection, midnight - timedelta(hours=1))
        async with harness.node(url, **flags) as api:
            await alert_yard.watching(api, receiver, "PARTITION_MISSING")
            await given.job(api, receiver.url("/pay"), name="pay", retry=SOON)
            before = await ended(api, "pay", "order-1")
            [fired] = await told(receiver, 1)
        assert await read_clock(connection) < midnight, "the alert comes before the day does"
        await set_clock(connection, midnight - timedelta(seconds=10))
        async with harness.node(url, **flags) as api:
            await given.job(api, receiver.url("/tick"), name="tick", every="1s")

            async def has_ticked() -> bool:
                query = (
                    "select count(distinct fire_time) from horai.instance_history where fire_time >= $1 and slot >= 0"
                )
                return await connection.fetchval(query, midnight) >= 3

            await until(has_ticked)
            after = await ended(api, "pay", "order-2")
            assert await put_again(api, "pay", "order-2") == "IGNORED"
            later = {"executeTime": "2040-01-01T00:00:00Z"}
            assert (await api("PUT", "/api/v1/jobs/pay/instances/order-3", later)).status == 201
            assert (await api("DELETE", "/api/v1/jobs/pay/instances/order-3")).status == 200
            health = (await api("GET", "/api/v1/scheduler/health")).json
            assert (await api("DELETE", "/api/v1/jobs/tick")).status in {200, 204}

        assert health["status"] == "UP", health
        assert await place_of(connection, before) == f"instance_history_{today:%Y%m%d}"
        assert await place_of(connection, after) == "instance_history_default"
        assert (found := await strays(connection))["instance_history"] > 3
        assert found["attempt"] == 1, "the try that failed"
        assert found["event"] > 0, "the cancellation"
        assert {alert["data"]["day"] for alert in fired["alerts"]} == {f"{midnight:%Y-%m-%d}"}
        assert {alert["data"]["table"] for alert in fired["alerts"]} == set(TABLES)

        await connection.execute(PERMIT_TABLES)
        await set_clock(connection, midnight + timedelta(days=1, minutes=59))
        async with harness.node(url, **flags) as api:
            await until_partitions(connection, midnight.date() + timedelta(days=2))
            assert await strays(connection) == found, "the day is not over for an hour"
        await set_clock(connection, midnight + timedelta(days=1, hours=1))
        async with harness.node(url, **flags) as api:
            await until_moved(connection)
            assert await place_of(connection, after) == f"instance_history_{midnight:%Y%m%d}"
            assert await put_again(api, "pay", "order-2") == "IGNORED"
            await until_resolved(receiver)
            assert [found for found in await verify(connection) if found.violations] == []
        await set_clock(connection, midnight + KEPT + timedelta(days=2))
        async with harness.node(url, **flags) as api:
            await until_archived(connection, midnight.date())
        async with harness.node(url, **flags) as api:
            await until_dropped(connection, midnight.date())
            span = f"from={midnight:%Y-%m-%d}T00:00:00Z&to={midnight + timedelta(days=1):%Y-%m-%d}T00:00:00Z"
            listed = (await api("GET", f"/api/v1/instances?archived=true&job=pay&{span}")).json["items"]
            assert [each["id"] for each in listed] == [after]
            assert (await api("GET", f"/api/v1/instances/{after}")).status == 404
            assert await put_again(api, "pay", "order-2") == "IGNORED"


async def stray_of(connection: Superuser, url: str, days: int) -> date:
    """A finished instance with a key, on a day that has no partition; the day."""
    async with make.scope(url) as scope:
        job = await make.job(scope)
    day = yard.ago(days)
    await yard.history(connection, job, day, 1)
    await connection.execute("create table public.aside as select * from horai.instance_history")
    await connection.execute(f"drop table horai.instance_history_{day:%Y%m%d}")
    await connection.execute("insert into horai.instance_history select * from public.aside")
    assert await connection.fetchval("select count(*) from horai.instance_history_default") == 1
    return day


async def test_the_partition_that_takes_strays_up_is_one_like_the_others(url: str, connection: Superuser) -> None:
    day = await stray_of(connection, url, 3)
    await yard.make_day(connection, yard.ago(2))

    assert await store.adopt_strays(connection, "instance_history", day) == 1

    shape = "select indexdef from pg_indexes where tablename = $1"
    shapes = [
        {
            row["indexdef"].partition(" USING ")[2]
            for row in await connection.fetch(shape, f"instance_history_{each:%Y%m%d}")
        }
        for each in (day, yard.ago(2))
    ]
    assert shapes[0] == shapes[1] != set()
    attached = (
        "select count(*) from pg_inherits join pg_index on indexrelid = inhrelid where indrelid = $1::text::regclass"
    )
    assert await connection.fetchval(attached, f"horai.instance_history_{day:%Y%m%d}") == len(shapes[0])
    await connection.execute("update public.aside set id = id + 1, key = 'late'")
    await connection.execute("insert into horai.instance_history select * from public.aside")
    assert await connection.fetchval("select count(*) from horai.key_past where key = 'late'") == 1, (
        "it is folded at once"
    )


async def test_strays_stay_while_the_outbox_may_still_record_their_day(url: str, connection: Superuser) -> None:
    day = await stray_of(connection, url, 3)
    recorded = (
        "update horai.outbox_cursor set is_on = true, samples = json_build_array(json_build_array($1::timestamptz, 7))"
    )
    end = datetime.combine(day + timedelta(days=1), time(), UTC)
    await connection.execute(recorded, end + timedelta(minutes=14))
    assert await store.adopt_strays(connection, "instance_history", day) is None
    assert (await strays(connection))["instance_history"] == 1

    await connection.execute(recorded, end + timedelta(minutes=15))
    assert await store.adopt_strays(connection, "instance_history", day) == 1


async def test_strays_of_an_archived_day_stay_where_they_are(url: str, connection: Superuser) -> None:
    """Its file would count as complete with fewer rows than there were, and the drop would lose one."""
    day = await stray_of(connection, url, 3)
    assert await store.stray_days(connection) == {"instance_history": day}

    await connection.execute(
        "insert into horai.archive_partition (table_name, day, archived_at) values ('instance_history', $1, now())", day
    )

    assert await store.stray_days(connection) == {}


async def test_a_table_without_days_has_no_strays_to_move(connection: Superuser) -> None:
    with pytest.raises(asyncpg.RaiseError, match="job has no days"):
        await store.adopt_strays(connection, "job", yard.ago(1))


async def until_partitions(connection: Superuser, day: date) -> None:
    async def are_there() -> bool:
        return await connection.fetchval(
            f"select to_regclass('horai.note_{day:%Y%m%d}') is not null and to_regclass('horai.instance_history_{day:%Y%m%d}') is not null"
        )

    await until(are_there)


async def until_moved(connection: Superuser) -> None:
    async def are_moved() -> bool:
        return not any((await strays(connection)).values())

    await until(are_moved)


async def until_resolved(receiver: Receiver) -> None:
    count = 1
    async with asyncio.timeout(30):
        while alert_yard.kinds(messages := await told(receiver, count))[-1] != "resolved":
            count = len(messages) + 1


async def until_archived(connection: Superuser, day: date) -> None:
    async def is_archived() -> bool:
        query = "select count(*) from horai.archive_partition where day = $1 and archived_at is not null"
        return await connection.fetchval(query, day) == len(TABLES)

    await until(is_archived)


async def until_dropped(connection: Superuser, day: date) -> None:
    async def is_dropped() -> bool:
        names = [f"horai.{table}_{day:%Y%m%d}" for table in TABLES]
        return await connection.fetchval(
            "select count(*) = 0 from unnest($1::text[]) n where to_regclass(n) is not null", names
        )

    await until(is_dropped)
