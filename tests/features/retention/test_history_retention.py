"""Retention on a running server: old days go, and decisions stay as they were."""

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import harness
import pytest
from databases import Superuser
from harness import Client
from receiver import Answer, Receiver
from rows import until

from horai import Horai
from horai.core.settings import EngineSettings
from horai.db.verify import verify

MONTH = 30
KEPT = EngineSettings().history_keep
TABLES = {"instance_history": "finished_at", "attempt": "finished_at", "event": "at", "note": "at"}
OLD_EVENT = """
insert into horai.source_event (tenant_id, job_id, source, event_id, at)
select tenant_id, id, 'shop', 'old', clock_timestamp() - interval '100 days' from horai.job
"""
PUT = "select decision, instance_id, state from horai.put_instance($1, $2)"


async def job(api: Client, receiver: Receiver, name: str, answer: Answer | None = None, **fields: Any) -> None:
    receiver.on(f"/{name}", *[answer or Answer(200)] * 50)
    made = await api(
        "POST", "/api/v1/jobs", {"name": name, "target": {"type": "http", "url": receiver.url(f"/{name}")}, **fields}
    )
    assert made.status == 201, made.json


async def put(api: Client, name: str, key: str, **fields: Any) -> Any:
    reply = await api("PUT", f"/api/v1/jobs/{name}/instances/{key}", fields)
    assert reply.status in {200, 201}, reply.json
    return reply.json


async def ended(api: Client, name: str, key: str, state: str = "SUCCESS", **fields: Any) -> dict[str, Any]:
    """Put a key and return its instance when it has ended."""
    made = await put(api, name, key, **fields)
    await api.until_state(made["instance"]["id"], state)
    return (await api("GET", f"/api/v1/instances/{made['instance']['id']}")).json


async def age(connection: Superuser, days: int) -> date:
    """Move all of history to the past. Return the day on which its rows lie now."""
    today = await connection.fetchval("select (clock_timestamp() at time zone 'UTC')::date")
    await connection.execute("select horai.make_partitions($1, $2)", today - timedelta(days=days + 1), days + 1)
    for table, column in TABLES.items():
        await connection.execute(f"update horai.{table} set {column} = {column} - make_interval(days => $1)", days)
    await connection.execute(
        "update horai.instance_history set created_at = created_at - make_interval(days => $1),"
        " claimed_at = claimed_at - make_interval(days => $1), fire_time = fire_time - make_interval(days => $1),"
        " execute_time = execute_time - make_interval(days => $1), born_for = born_for - make_interval(days => $1)",
        days,
    )
    await connection.execute("update horai.job set created_at = created_at - make_interval(days => $1)", days + 1)
    return await connection.fetchval("select (min(finished_at) at time zone 'UTC')::date from horai.instance_history")


async def partitions(connection: Superuser, table: str, day: date) -> int:
    name = f"horai.{table}_{day:%Y%m%d}"
    return await connection.fetchval("select count(*) from pg_class where oid = to_regclass($1)", name)


async def until_dropped(connection: Superuser, table: str, day: date) -> None:
    async def is_gone() -> bool:
        return await partitions(connection, table, day) == 0

    await until(is_gone)


async def until_forgotten(connection: Superuser) -> None:
    """Return when the stage has dropped the old days, all tables of them."""

    async def is_over() -> bool:
        looked = "select count(*) from pg_class where relname ~ '^note_[0-9]{8}$' and relname < $1"
        today = datetime.now(UTC).date()
        return await connection.fetchval(looked, f"note_{today - timedelta(days=15):%Y%m%d}") == 0

    await until(is_over)


async def test_A10_a_key_that_succeeded_a_month_ago_is_ignored_by_every_path_after_its_day_was_dropped(
    url: str, connection: Superuser
) -> None:
    async with Receiver() as receiver:
        async with harness.node(url, history_keep=KEPT) as api:
            await job(api, receiver, "pay")
            first = await ended(api, "pay", "order-1", version=5)
            kept = await ended(api, "pay", "order-2")
        day = await age(connection, MONTH)
        async with harness.node(url, history_keep=KEPT) as api:
            await until_dropped(connection, "instance_history", day)
            assert (await api("GET", f"/api/v1/instances/{first['id']}")).status == 404

            answer = await put(api, "pay", "order-1", version=6)
            assert (answer["decision"], answer["instance"]["id"]) == ("IGNORED", first["id"])
            assert (answer["instance"]["state"], answer["instance"]["payload"]) == ("SUCCESS", None)
            row = await connection.fetchrow(PUT, "pay", "order-2")
            assert row is not None
            assert tuple(row) == ("IGNORED", int(kept["id"]), "SUCCESS")
            batch = await api("POST", "/api/v1/jobs/pay/instances/batch", {"items": [{"key": "order-2"}]})
            assert batch.json["items"][0]["decision"] == "IGNORED"
            async with Horai("shop", database_url=url) as app:
                there = app.job(lambda: None, name="pay")
                assert (await there.put("order-1")).decision == "IGNORED"

            older = await put(api, "pay", "order-1", version=4, again=True)
            assert older["decision"] == "IGNORED", "an older version stays older"
            again = await put(api, "pay", "order-1", again=True, executeTime="2030-01-01T00:00:00Z")
            assert again["decision"] == "INSERTED"
            assert (again["instance"]["fence"], again["instance"]["version"]) == (first["fence"], 5)
        assert [problem for problem in await verify(connection) if problem.violations] == []


async def test_an_open_dead_letter_keeps_its_instance_and_can_be_replayed_after_its_day_was_dropped(
    url: str, connection: Superuser
) -> None:
    async with Receiver() as receiver:
        async with harness.node(url, history_keep=KEPT) as api:
            await job(api, receiver, "ship", Answer(400))
            dead = await ended(api, "ship", "order-1", "DEAD", payload={"n": 1})
            discarded = await ended(api, "ship", "order-2", "DEAD")
            letters = (await api("GET", "/api/v1/dlq")).json["items"]
            other = next(each["id"] for each in letters if each["instanceId"] == discarded["id"])
            assert (await api("POST", f"/api/v1/dlq/{other}/discard", {"reason": "drill"})).status == 200
        day = await age(connection, MONTH)
        async with harness.node(url, history_keep=KEPT) as api:
            await until_forgotten(connection)
            assert await partitions(connection, "instance_history", day) == 1
            assert (await api("GET", f"/api/v1/instances/{discarded['id']}")).status == 404
            assert (await api("GET", f"/api/v1/instances/{dead['id']}")).json["payload"] == {"n": 1}
            assert (await api("GET", f"/api/v1/instances/{dead['id']}")).json["attempts"], "its attempts stay"
            receiver.on("/ship", *[Answer(200)] * 5)
            letter = next(each["id"] for each in letters if each["instanceId"] == dead["id"])
            replayed = await api("POST", f"/api/v1/dlq/{letter}/replay", Idempotency_Key=os.urandom(8).hex())
            assert replayed.status in {200, 201}, replayed.json

            async def is_replayed() -> bool:
                return await connection.fetchval("select count(*) from horai.instance_history where state = 2") == 1

            await until(is_replayed)


async def test_a_row_that_is_written_to_a_folded_day_is_folded_at_once(url: str, connection: Superuser) -> None:
    async with Receiver() as receiver:
        async with harness.node(url, history_keep=KEPT) as api:
            await job(api, receiver, "pay")
            await ended(api, "pay", "order-1")
        await age(connection, 3)

        async def is_folded() -> bool:
            return await connection.fetchval(
                "select folded_before > clock_timestamp() - interval '2 days' from horai.history_fold"
            )

        async with harness.node(url, history_keep=KEPT) as api:
            await until(is_folded)
            late = await ended(api, "pay", "order-2")
            await connection.execute(
                "update horai.instance_history set finished_at = finished_at - interval '3 days' where key = 'order-2'"
            )
            answer = await put(api, "pay", "order-2")
            assert (answer["decision"], answer["instance"]["id"]) == ("IGNORED", late["id"])


async def test_C44_a_day_is_dropped_only_when_all_of_it_is_in_the_archive(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    taken, place = tmp_path / "taken", tmp_path / "archive"
    taken.write_text("a file where the directory should be")
    async with Receiver() as receiver:
        async with harness.node(url, history_keep=KEPT) as api:
            await job(api, receiver, "pay")
            first = await ended(api, "pay", "order-1")
        day = await age(connection, MONTH)

        async def has_failed() -> bool:
            failed = "select count(*) from horai.archive_partition where error is not null and archived_at is null"
            return await connection.fetchval(failed) > 0

        async def has_looked() -> bool:
            return await connection.fetchval("select count(*) from horai.source_event") == 0

        # The stage forgets it after it has looked at every day.
        assert await connection.execute(OLD_EVENT) == "INSERT 0 1"
        async with harness.node(url, history_keep=KEPT, archive_dir=str(taken)):
            await until(has_failed)
            await until(has_looked)
        assert await partitions(connection, "instance_history", day) == 1
        await connection.execute("update horai.archive_partition set failed_at = failed_at - interval '1 hour'")
        async with harness.node(url, history_keep=KEPT, archive_dir=str(place)) as api:

            async def is_archived() -> bool:
                done = "select count(*) from horai.archive_partition where table_name = 'instance_history' and day = $1 and archived_at is not null"
                return await connection.fetchval(done, day) == 1

            await until(is_archived)
        async with harness.node(url, history_keep=KEPT, archive_dir=str(place)) as api:
            await until_dropped(connection, "instance_history", day)
            span = f"from={day}T00:00:00Z&to={day + timedelta(days=1)}T00:00:00Z"
            listed = (await api("GET", f"/api/v1/instances?archived=true&{span}")).json["items"]
            assert [each["id"] for each in listed] == [first["id"]]
            assert (await put(api, "pay", "order-1"))["decision"] == "IGNORED"


async def test_a_day_whose_keys_are_not_folded_cannot_be_dropped(url: str, connection: Superuser) -> None:
    async with Receiver() as receiver, harness.node(url, history_keep=KEPT) as api:
        await job(api, receiver, "pay")
        await ended(api, "pay", "order-1")
        today = await connection.fetchval("select (clock_timestamp() at time zone 'UTC')::date")
        with pytest.raises(asyncpg.RaiseError, match="are not folded"):
            await connection.execute("select horai.drop_history_day('instance_history', $1)", today)
        assert await connection.fetchval("select count(*) from horai.instance_history") == 1


async def test_a_backfill_of_dropped_days_is_refused_unless_it_runs_every_slot_with_a_new_key(
    url: str, connection: Superuser
) -> None:
    async with Receiver() as receiver:
        async with harness.node(url, history_keep=KEPT) as api:
            await job(api, receiver, "report", cron="0 0 * * *")
            await ended(api, "report", "by-hand")
        await age(connection, MONTH)
        async with harness.node(url, history_keep=KEPT) as api:
            await until_forgotten(connection)
            since = datetime.now(UTC) - timedelta(days=MONTH)
            span = {"from": since.isoformat(), "to": (since + timedelta(days=2)).isoformat()}
            refused = await api("POST", "/api/v1/jobs/report/backfill", {**span, "mode": "missing"})
            assert (refused.status, refused.json["code"]) == (422, "SCH_422_INVALID")
            assert "was dropped" in refused.json["detail"]
            made = await api("POST", "/api/v1/jobs/report/backfill", {**span, "mode": "all"})
            assert made.status == 202, made.json

            async def has_run() -> bool:
                return await connection.fetchval("select count(*) from horai.instance_history where slot > 20000") == 2

            await until(has_run)


async def test_rows_of_a_live_instance_stay_however_old_they_are(url: str, connection: Superuser) -> None:
    async with Receiver() as receiver:
        async with harness.node(url, history_keep=KEPT) as api:
            await job(api, receiver, "slow", Answer(503), retry={"maxRetry": 5, "base": "1h", "cap": "1h"})
            waiting = await put(api, "slow", "order-1")
            await api.until_state(waiting["instance"]["id"], "FAIL")
            await job(api, receiver, "pay")
            await ended(api, "pay", "order-1")
        await age(connection, MONTH)
        async with harness.node(url, history_keep=KEPT) as api:
            await until_forgotten(connection)
            shown = (await api("GET", f"/api/v1/instances/{waiting['instance']['id']}")).json
            assert [each["attempt"] for each in shown["attempts"]] == [1]


async def test_the_last_run_of_a_job_that_counts_from_its_end_stays(url: str, connection: Superuser) -> None:
    async with Receiver() as receiver:
        async with harness.node(url, history_keep=KEPT) as api:
            await job(api, receiver, "yearly", every="1s", everyFrom="finish")

            async def has_run() -> bool:
                return await connection.fetchval("select count(*) from horai.instance_history") >= 2

            await until(has_run)
            assert (await api("PATCH", "/api/v1/jobs/yearly", {"every": "8760h"})).status == 200
        await connection.execute("delete from horai.instance_live")
        before = await connection.fetchval("select max(fire_time) from horai.instance_history")
        await age(connection, MONTH)
        async with harness.node(url, history_keep=KEPT):
            await until_forgotten(connection)
            left = await connection.fetch("select fire_time from horai.instance_history")
            assert [row["fire_time"] for row in left] == [before - timedelta(days=MONTH)]


@pytest.mark.parametrize("status", ["NEW", "DISCARDED"])
async def test_dead_letters_are_forgotten_after_ninety_days(url: str, connection: Superuser, status: str) -> None:
    async with Receiver() as receiver:
        async with harness.node(url, history_keep=KEPT) as api:
            await job(api, receiver, "ship", Answer(400))
            await ended(api, "ship", "order-1", "DEAD")
        await connection.execute("update horai.dead_letter set replay_status = $1", status)
        await connection.execute("update horai.dead_letter set created_at = created_at - interval '89 days 23 hours'")
        async with harness.node(url, history_keep=KEPT):
            await until_forgotten(connection)
        assert await connection.fetchval("select count(*) from horai.dead_letter") == 1
        await connection.execute("update horai.dead_letter set created_at = created_at - interval '2 hours'")

        async def is_gone() -> bool:
            return await connection.fetchval("select count(*) from horai.dead_letter") == 0

        async with harness.node(url, history_keep=KEPT):
            await until(is_gone)
