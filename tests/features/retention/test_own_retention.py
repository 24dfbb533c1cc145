"""Retention of tenants and jobs: rows go earlier or later than those of the process, and decisions stay as they were."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import harness
import make
import pytest
from databases import Superuser, superuser
from receiver import Answer, Receiver
from rows import until
from stages import Workbench, workbench

from horai.core.calls import Call
from horai.core.outcome import FailedRetryable, FailedUnrecoverable, Outcome, Succeeded
from horai.core.put import PutDecision
from horai.core.settings import EngineSettings
from horai.db.jobs import JobRow
from horai.db.verify import verify
from horai.features import retention
from horai.features.backfill import store as backfills
from horai.features.retention import stage as stages
from horai.features.tenants.service import TenantChange, change_tenant
from horai.operations import jobs
from horai.operations.jobs import JobChange

LONG = timedelta(days=60)
KEPT = EngineSettings().history_keep
TIMES = ("created_at", "claimed_at", "finished_at", "fire_time", "execute_time", "born_for")
TABLES = {"attempt": ("started_at", "finished_at"), "event": ("at",), "note": ("at",)}


@asynccontextmanager
async def running(url: str, keep: timedelta = LONG) -> AsyncGenerator[Workbench]:
    """A bench whose calls succeed, except those of keys that begin with `bad`, or end with `late` the first time."""

    def answer(call: Call) -> Outcome:
        key = call.key or ""
        if key.startswith("bad"):
            return FailedUnrecoverable("NO", "no")
        return FailedRetryable("LATE", "late") if key.endswith("late") and call.attempt == 1 else Succeeded()

    async with workbench(url, history_keep=keep) as bench:
        bench.executor.gate.set()
        bench.executor.answer = answer
        yield bench


async def job(bench: Workbench, name: str, **fields: Any) -> JobRow:
    return await make.job(
        bench.scope, name, retry={"maxRetry": 3, "base": "1ms", "cap": "1ms", "jitter": "none"}, **fields
    )


async def finish(bench: Workbench) -> None:
    """Run all instances until none is live."""
    dispatcher = bench.dispatcher()
    while await bench.connection.fetchval("select count(*) from horai.instance_live"):
        await bench.until_idle(dispatcher)
        await bench.settle()


async def age(connection: Superuser, days: int, *, has_every_day: bool = True) -> None:
    """Move all jobs and all of history to the past. The days until now have partitions, or only those of the rows."""
    today = await connection.fetchval("select (clock_timestamp() at time zone 'UTC')::date")
    oldest = await connection.fetchval("select min(finished_at) from horai.instance_history")
    first = (today if oldest is None else oldest.astimezone(UTC).date()) - timedelta(days=days + 1)
    await connection.execute(
        "select horai.make_partitions($1, $2)", first, (today - first).days if has_every_day else 3
    )
    moved = ", ".join(f"{name} = {name} - make_interval(days => $1)" for name in TIMES)
    await connection.execute(f"update horai.instance_history set {moved}", days)
    for table, columns in TABLES.items():
        moved = ", ".join(f"{name} = {name} - make_interval(days => $1)" for name in columns)
        await connection.execute(f"update horai.{table} set {moved}", days)
    await connection.execute("update horai.job set created_at = created_at - make_interval(days => $1)", days)
    await connection.execute("update horai.dead_letter set created_at = created_at - make_interval(days => $1)", days)


async def retain(bench: Workbench) -> None:
    """One step of a new stage, as after a restart."""
    stage = bench.feature_stage(retention.FEATURE)
    await stage.step(bench.clock.now())
    stage.line.drop()


async def left(connection: Superuser) -> set[str]:
    """The keys of all instances in history."""
    return {row["key"] for row in await connection.fetch("select key from horai.instance_history")}


async def rows_of(connection: Superuser, *tables: str) -> dict[str, int]:
    """The number of rows of each table; of events, those of instances."""
    of_instances = " where instance_id is not null"
    return {
        table: await connection.fetchval(
            f"select count(*) from horai.{table}{of_instances if table == 'event' else ''}"
        )
        for table in tables
    }


async def partition(connection: Superuser, table: str = "instance_history") -> int | None:
    """The id of the table that has the oldest row of history."""
    return await connection.fetchval(f"select tableoid::bigint from horai.{table} order by finished_at limit 1")


async def forgotten(bench: Workbench, job_id: int) -> datetime | None:
    """Until when the history of a job may be gone, as a backfill sees it."""
    async with bench.scope.read() as connection:
        span = (await backfills.coming_slots(connection, job_id)).forgotten
    return None if span is None else span[1]


async def keep_of_tenant(bench: Workbench, **keep: str | None) -> None:
    await change_tenant(make.platform_scope(bench.scope), "default", TenantChange(keep=keep))


async def keep_of_job(bench: Workbench, name: str, **keep: str | None) -> None:
    await jobs.change_job(bench.scope, name, JobChange(keep))


def midnight(days: int) -> datetime:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days)


async def is_sound(connection: Superuser) -> bool:
    return [problem for problem in await verify(connection) if problem.violations] == []


async def test_a_key_of_a_job_that_keeps_history_for_a_day_stays_done_when_its_rows_are_gone(url: str) -> None:
    async with running(url) as bench:
        await job(bench, "short", keepHistory="1d")
        await job(bench, "usual")
        for name in ("short", "usual"):
            await make.put(bench.scope, f"{name}-late", job=name, version=5, payload={"n": 1})
        await finish(bench)
        before = await rows_of(bench.connection, "attempt", "event")
        assert before["attempt"] == before["event"] == 2
        await age(bench.connection, 30)
        await retain(bench)

        assert await left(bench.connection) == {"usual-late"}
        assert await rows_of(bench.connection, "attempt", "event") == {"attempt": 1, "event": 1}
        decision, row = await make.put(bench.scope, "short-late", job="short", version=6)
        assert (decision, row.state.name) == (PutDecision.IGNORED, "SUCCESS")
        older, _ = await make.put(bench.scope, "short-late", job="short", version=4, again=True)
        assert older is PutDecision.IGNORED
        again, row = await make.put(bench.scope, "short-late", job="short", again=True)
        assert (again, row.version, row.fence) == (PutDecision.INSERTED, 5, 2)
        await finish(bench)
        assert await is_sound(bench.connection)


async def test_the_time_of_the_job_holds_then_that_of_the_tenant_then_that_of_the_process(url: str) -> None:
    async with running(url) as bench:
        await keep_of_tenant(bench, keepHistory="10d")
        await job(bench, "shorter", keepHistory="2d")
        await job(bench, "longer", keepHistory="30d")
        await job(bench, "plain")
        for name in ("shorter", "longer", "plain"):
            await make.put(bench.scope, name, job=name)
        await finish(bench)
        for days, names in (
            (1, {"shorter", "longer", "plain"}),
            (5, {"longer", "plain"}),
            (10, {"longer"}),
            (20, set()),
        ):
            await age(bench.connection, days)
            await retain(bench)
            assert await left(bench.connection) == names, f"after {days} more days"
        assert await is_sound(bench.connection)


async def test_rows_of_another_tenant_and_days_within_the_time_stay(url: str) -> None:
    async with running(url) as bench:
        await job(bench, "plain")
        await make.put(bench.scope, "mine", job="plain")
        await finish(bench)
        other = await bench.connection.fetchval("insert into horai.tenant (name) values ('other') returning id")
        await bench.connection.execute("select horai.set_retention($1, 0, interval '1 day', null)", other)
        await age(bench.connection, 5)
        await retain(bench)
        assert await left(bench.connection) == {"mine"}


async def test_a_job_that_keeps_history_longer_keeps_its_rows_when_the_day_is_dropped(url: str) -> None:
    async with running(url, KEPT) as bench:
        await job(bench, "long", keepHistory="90d")
        await job(bench, "usual")
        for key, name in (("a-late", "long"), ("b", "long"), ("bad", "usual"), ("c-late", "usual")):
            await make.put(bench.scope, key, job=name)
        await finish(bench)
        await age(bench.connection, 30)
        await retain(bench)
        assert await left(bench.connection) == {"a-late", "b", "bad"}
        assert await rows_of(bench.connection, "attempt") == {"attempt": 2}, (
            "those of a-late and of the open dead letter"
        )

        copied = await partition(bench.connection), await partition(bench.connection, "attempt")
        await retain(bench)
        assert (await partition(bench.connection), await partition(bench.connection, "attempt")) == copied, "not copied"
        await bench.connection.execute("update horai.dead_letter set replay_status = 'DISCARDED'")
        await retain(bench)
        assert await left(bench.connection) == {"a-late", "b"}
        assert await partition(bench.connection) == copied[0], "one row was deleted, and the others not copied"
        assert await is_sound(bench.connection)

        await age(bench.connection, 61, has_every_day=False)
        await retain(bench)
        assert await left(bench.connection) == set()
        assert await rows_of(bench.connection, "attempt", "event") == {"attempt": 0, "event": 0}


async def test_a_backfill_knows_from_where_on_the_history_of_a_job_is_complete(url: str) -> None:
    async with running(url, KEPT) as bench:
        made = {name: await job(bench, name, **fields) for name, fields in JOBS.items()}
        for name in made:
            await make.put(bench.scope, name, job=name)
        await finish(bench)
        await age(bench.connection, 30)
        await retain(bench)
        seen = {name: await forgotten(bench, row.id) for name, row in made.items()}
        dropped = midnight(KEPT.days)
        assert seen == {"short": midnight(1), "usual": dropped, "long": None}

        # Other times bring nothing back, and remove nothing before the stage does.
        await keep_of_job(bench, "short", keepHistory="300d")
        await keep_of_job(bench, "usual", keepHistory="300d")
        assert (await forgotten(bench, made["short"].id), await forgotten(bench, made["usual"].id)) == (
            midnight(1),
            dropped,
        )
        await keep_of_job(bench, "long", keepHistory=None)
        assert await forgotten(bench, made["long"].id) == dropped, "the next step drops them"
        await keep_of_job(bench, "long", keepHistory="300d")
        assert await forgotten(bench, made["long"].id) == dropped
        await keep_of_job(bench, "short", keepHistory=None)
        assert await forgotten(bench, made["short"].id) == midnight(1)
        assert await is_sound(bench.connection)


JOBS: Mapping[str, Mapping[str, Any]] = {"short": {"keepHistory": "1d"}, "usual": {}, "long": {"keepHistory": "90d"}}


async def test_a_backfill_knows_from_where_on_the_history_of_a_tenant_is_complete(url: str) -> None:
    async with running(url, KEPT) as bench:
        plain = await job(bench, "plain")
        await make.put(bench.scope, "k", job="plain")
        await finish(bench)
        await keep_of_tenant(bench, keepHistory="90d")
        await age(bench.connection, 30)
        await retain(bench)
        assert (await forgotten(bench, plain.id), await left(bench.connection)) == (None, {"k"})
        await keep_of_tenant(bench, keepHistory="20d")
        await retain(bench)
        assert (await forgotten(bench, plain.id), await left(bench.connection)) == (midnight(29), set())
        await keep_of_tenant(bench, keepHistory=None)
        assert await forgotten(bench, plain.id) == midnight(KEPT.days)


async def test_a_longer_time_that_is_set_while_a_day_is_dropped_learns_what_was_dropped(url: str) -> None:
    async with running(url, KEPT) as bench:
        plain = await job(bench, "plain")
        await make.put(bench.scope, "k", job="plain")
        await finish(bench)
        await age(bench.connection, 30)
        other = await superuser(url)
        await other.execute("set lock_timeout = '50ms'")
        transaction = bench.connection.transaction()
        await transaction.start()
        await bench.connection.execute("select from horai.history_fold for no key update")
        await bench.connection.execute("update horai.history_fold set kept_from = $1", midnight(2))
        with pytest.raises(asyncpg.LockNotAvailableError):
            await other.execute("select horai.set_retention(1, $1, interval '90 days', null)", plain.id)
        other.terminate()
        await transaction.commit()
        await keep_of_job(bench, "plain", keepHistory="90d")
        assert await forgotten(bench, plain.id) == midnight(2)


async def test_a_stage_that_dies_between_two_batches_is_repeated_and_loses_no_key(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "FORGOTTEN_AT_ONCE", 1)
    async with running(url) as bench:
        await job(bench, "short", keepHistory="1d")
        for key in ("a-late", "b-late", "c-late"):
            await make.put(bench.scope, key, job="short")
        await finish(bench)
        await age(bench.connection, 3)
        await bench.connection.execute(
            "create function horai.die() returns trigger language plpgsql as $$ begin"
            " if old.key = 'b-late' then raise exception 'the process died'; end if; return old; end $$;"
            "create trigger die before delete on horai.instance_history for each row execute function horai.die()"
        )
        with pytest.raises(asyncpg.RaiseError, match="the process died"):
            await retain(bench)
        assert await left(bench.connection) == {"b-late", "c-late"}
        assert await rows_of(bench.connection, "attempt", "event") == {"attempt": 2, "event": 2}, "a batch goes whole"
        assert await is_sound(bench.connection)

        await bench.connection.execute("drop trigger die on horai.instance_history")
        await retain(bench)
        assert await left(bench.connection) == set()
        assert await rows_of(bench.connection, "attempt", "event") == {"attempt": 0, "event": 0}
        for key in ("a-late", "b-late", "c-late"):
            assert (await make.put(bench.scope, key, job="short"))[0] is PutDecision.IGNORED
        assert await is_sound(bench.connection)


async def test_rows_of_a_day_whose_keys_are_not_folded_cannot_go(url: str) -> None:
    async with running(url) as bench:
        short = await job(bench, "short", keepHistory="1d")
        await make.put(bench.scope, "k", job="short")
        await finish(bench)
        with pytest.raises(asyncpg.RaiseError, match="are not folded"):
            await bench.connection.fetch(
                "select * from horai.forgettable_instances($1, $2, '{}', '{}', 0, 10)", midnight(0).date(), [short.id]
            )


async def test_attempts_and_events_of_the_days_before_go_with_their_instance(url: str) -> None:
    async with running(url) as bench:
        await job(bench, "short", keepHistory="1d")
        await make.put(bench.scope, "k-late", job="short")
        await finish(bench)
        await age(bench.connection, 3)
        await bench.connection.execute("select horai.make_partitions($1, 4)", midnight(8).date())
        for column, table in (("finished_at", "attempt"), ("at", "event")):
            await bench.connection.execute(f"update horai.{table} set {column} = {column} - interval '2 days'")
        await bench.connection.execute("update horai.instance_history set created_at = created_at - interval '2 days'")
        await bench.connection.execute("update horai.attempt set started_at = started_at - interval '2 days'")
        await retain(bench)
        assert await rows_of(bench.connection, "instance_history", "attempt", "event") == {
            "instance_history": 0, "attempt": 0, "event": 0,
        }  # fmt: skip


async def test_an_open_dead_letter_keeps_its_instance_until_its_own_time_is_over(url: str) -> None:
    async with running(url) as bench:
        await job(bench, "short", keepHistory="1d", keepDeadLetters="5d")
        await make.put(bench.scope, "bad", job="short")
        await finish(bench)
        await age(bench.connection, 3)
        await retain(bench)
        assert await rows_of(bench.connection, "instance_history", "dead_letter", "attempt") == {
            "instance_history": 1, "dead_letter": 1, "attempt": 1,
        }  # fmt: skip
        await age(bench.connection, 3)
        await retain(bench)
        assert await rows_of(bench.connection, "dead_letter") == {"dead_letter": 0}
        assert await is_sound(bench.connection)
        await retain(bench)
        assert await left(bench.connection) == set(), "the next look finds that the row is needed no longer"


@pytest.mark.parametrize(("of_tenant", "of_job", "days"), [("30d", None, 30), ("30d", "20d", 20), (None, "100d", 100)])
async def test_dead_letters_follow_the_time_of_the_job_and_the_tenant(
    url: str, of_tenant: str | None, of_job: str | None, days: int
) -> None:
    async with running(url, KEPT) as bench:
        await keep_of_tenant(bench, keepDeadLetters=of_tenant)
        await job(bench, "ship", **({} if of_job is None else {"keepDeadLetters": of_job}))
        await make.put(bench.scope, "bad", job="ship")
        await finish(bench)
        for more, letters in ((days - 1, 1), (2, 0)):
            await age(bench.connection, more, has_every_day=False)
            await retain(bench)
            assert await rows_of(bench.connection, "dead_letter") == {"dead_letter": letters}


async def test_a_dead_letter_stays_as_long_as_its_history(url: str) -> None:
    async with running(url, KEPT) as bench:
        await job(bench, "ship", keepDeadLetters="2d")
        await make.put(bench.scope, "bad", job="ship")
        await finish(bench)
        await age(bench.connection, 10)
        await retain(bench)
        assert await rows_of(bench.connection, "dead_letter", "instance_history") == {
            "dead_letter": 1,
            "instance_history": 1,
        }
        await age(bench.connection, 6)
        await retain(bench)
        assert await rows_of(bench.connection, "dead_letter") == {"dead_letter": 0}
        assert await is_sound(bench.connection)


async def test_skipped_slots_are_kept_as_long_as_the_history_of_their_job(url: str) -> None:
    async with running(url, KEPT) as bench:
        made = {
            name: await job(bench, name, every="1h", anchor=datetime(2026, 1, 1, tzinfo=UTC), **fields)
            for name, fields in JOBS.items()
        }
        await make.put(bench.scope, "k", job="short")
        await finish(bench)
        await age(bench.connection, 30)
        for row in [*made.values(), None]:
            await bench.connection.execute(
                "insert into horai.skip (schedule_id, job_id, tenant_id, from_time, to_time, slots, reason, at)"
                " values ($1, $2::bigint, case when $2::bigint is not null then 1 end, $3, $3, 1, 'OVERLAP', $3)",
                made["short"].schedule_id, None if row is None else row.id, midnight(5) if row is made["short"] else midnight(20),
            )  # fmt: skip
        await retain(bench)
        kept = await bench.connection.fetch("select job_id from horai.skip order by job_id")
        assert [row["job_id"] for row in kept] == [made["long"].id, None], "the one of all jobs stays for the long one"


async def test_a_finished_backfill_is_forgotten_after_a_week_at_least(url: str) -> None:
    async with running(url, timedelta(days=2)) as bench:
        plain = await job(bench, "plain", cron="0 0 * * *")
        for ago in (6, 8):
            await bench.connection.execute(
                "insert into horai.backfill (tenant_id, job_id, spec, from_time, to_time, until_time, mode, status, max_concurrency, slots, total,"
                " looked_at, created_at, updated_at, finished_at)"
                " values (1, $1, '{}', $2, $2, $2, 0, 2, 1, 1, 1, $2, $2, $2, $2)",
                plain.id, datetime.now(UTC) - timedelta(days=ago),
            )  # fmt: skip
        await retain(bench)
        kept = await bench.connection.fetch("select finished_at from horai.backfill")
        assert [(datetime.now(UTC) - row["finished_at"]).days for row in kept] == [6]


async def test_no_statement_is_sent_for_tenants_and_jobs_without_times_but_one_an_hour(url: str) -> None:
    async with running(url) as bench:
        await job(bench, "plain")
        stage = bench.feature_stage(retention.FEATURE)
        await stage.step(bench.clock.now())
        tap = await bench.tap(stage.line)
        await stage.step(bench.clock.now())
        asked = [name for name in await tap.names() if not name.startswith("forget_")]
        assert asked == ["stray_days", "history_days", "own_times", "history_days"]


async def test_rows_go_only_when_their_day_is_in_the_archive(url: str, connection: Superuser, tmp_path: Path) -> None:
    taken, place = tmp_path / "taken", tmp_path / "archive"
    taken.write_text("a file where the directory should be")
    async with Receiver() as receiver:
        receiver.on("/pay", *[Answer(200)] * 5)
        async with harness.node(url, history_keep=LONG) as api:
            target = {"type": "http", "url": receiver.url("/pay")}
            made = await api("POST", "/api/v1/jobs", {"name": "pay", "target": target, "keepHistory": "1d"})
            assert (made.status, made.json["keepHistory"]) == (201, "1d")
            put = await api("PUT", "/api/v1/jobs/pay/instances/order-1", {})
            await api.until_state(put.json["instance"]["id"], "SUCCESS")
        await age(connection, 3)

        async def has_failed() -> bool:
            failed = "select count(*) from horai.archive_partition where error is not null and archived_at is null"
            return await connection.fetchval(failed) > 0

        async def has_moved() -> bool:
            return await connection.fetchval("select max(kept_from) from horai.retention") == midnight(1)

        async with harness.node(url, history_keep=LONG, archive_dir=str(taken)):
            await until(has_failed)
            await until(has_moved)
        assert await left(connection) == {"order-1"}
        await connection.execute("update horai.archive_partition set failed_at = failed_at - interval '1 hour'")

        day = await connection.fetchval("select (finished_at at time zone 'UTC')::date from horai.instance_history")

        async def is_archived() -> bool:
            done = "select count(*) from horai.archive_partition where archived_at is not null and day = $1"
            return await connection.fetchval(done, day) == 4

        async with harness.node(url, history_keep=LONG, archive_dir=str(place)):
            await until(is_archived)

        async def is_gone() -> bool:
            return await left(connection) == set()

        async with harness.node(url, history_keep=LONG, archive_dir=str(place)) as api:
            await until(is_gone)
            again = await api("PUT", "/api/v1/jobs/pay/instances/order-1", {})
            assert again.json["decision"] == "IGNORED"
            span = f"from={midnight(4).isoformat()}&to={midnight(1).isoformat()}".replace("+00:00", "Z")
            listed = (await api("GET", f"/api/v1/instances?archived=true&{span}")).json["items"]
            assert [each["id"] for each in listed] == [put.json["instance"]["id"]]
