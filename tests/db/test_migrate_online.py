"""Migrations on a database that is in use: the plan, the refusal, short waits for locks, and indexes built beside the work."""

import asyncio
from datetime import timedelta
from pathlib import Path

import asyncpg
import made_migrations
import pytest
from databases import Superuser, analyze, superuser

from horai.db import nodes
from horai.db.migrate import LOCK, MigrationError, migrate, pending_migrations, plan_migrations
from horai.db.migration_errors import MigrationBlocked
from horai.db.migration_locks import LockMode, OnlineRule, Work
from horai.db.migration_plan import LARGE_ROWS
from horai.db.migration_runner import LockPatience

IMPATIENT = LockPatience(timedelta(milliseconds=50), timedelta(0), tries=3)
ROWS = LARGE_ROWS + 1
BIG = f"""
create table horai.big (id integer primary key, amount integer, tenant_id integer not null default 1) with (autovacuum_enabled = false);
insert into horai.big (id, amount) select n, n % 7 from generate_series(1, {ROWS}) n;
"""
VALID = "select indisvalid from pg_index where indexrelid = $1::text::regclass"


async def heard(told: "asyncio.Queue[str]") -> str:
    """Return the next line of progress."""
    async with asyncio.timeout(30):
        return await told.get()


async def fill(connection: Superuser) -> None:
    await connection.execute(BIG)
    await analyze(connection, "horai.big")


@pytest.fixture
def big(runner: asyncio.Runner, connection: Superuser) -> Superuser:
    """A database with a large table."""
    runner.run(fill(connection))
    return connection


# The plan


async def test_a_plan_names_lock_table_size_and_work_of_each_statement(
    big: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = made_migrations.use(
        monkeypatch,
        tmp_path,
        "alter table horai.big add column note text; create table horai.fresh (id integer references horai.big);",
        "-- no-transaction\ncreate index concurrently if not exists big_amount on horai.big (amount)",
    )

    plan = await plan_migrations(big)

    size = await big.fetchval("select pg_total_relation_size('horai.big')")
    assert [(step.migration, step.effect.table, step.effect.lock, step.effect.work) for step in plan.steps] == [
        (first, "horai.big", LockMode.ACCESS_EXCLUSIVE, Work.CATALOG),
        (first, "horai.big", LockMode.SHARE_ROW_EXCLUSIVE, Work.CATALOG),
        (second, "horai.big", LockMode.SHARE_UPDATE_EXCLUSIVE, Work.INDEX),
    ]
    assert {(step.size.rows, step.size.size_bytes) for step in plan.steps if step.size} == {(ROWS, size)}
    assert all(step.is_online for step in plan.steps)
    assert await pending_migrations(big), "a plan applies nothing"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("alter table horai.big alter column amount type bigint", OnlineRule.SAME_TYPE),
        ("alter table horai.big add column at timestamptz default clock_timestamp()", OnlineRule.CONSTANT_DEFAULT),
        ("create index big_amount on horai.big (amount)", OnlineRule.CONCURRENT_INDEX),
        ("alter table horai.big alter column amount set not null", OnlineRule.VALIDATED_NOT_NULL),
        ("alter table horai.big add check (amount >= 0)", OnlineRule.VALIDATED_CONSTRAINT),
        ("update horai.big set amount = 0", OnlineRule.ROWS_IN_PORTIONS),
        ("do $$ begin execute 'drop table horai.big'; end $$", OnlineRule.KNOWN_BLOCK),
        (
            "alter table horai.big add constraint k check (amount >= 0) not valid;"
            "alter table horai.big validate constraint k",
            OnlineRule.SHORT_TRANSACTION,
        ),
    ],
)
async def test_a_migration_that_is_not_online_is_refused_on_a_large_table_with_the_reason(
    big: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, rule: OnlineRule
) -> None:
    harmless, label = made_migrations.use(monkeypatch, tmp_path, "create table horai.before ()", text)

    with pytest.raises(MigrationError, match=f"{label} is not online") as refused:
        await migrate(big)

    assert f"Rule {rule.id}." in refused.value.detail
    assert "horai migrate --offline" in str(refused.value.hint)
    assert [step.rule for step in (await plan_migrations(big)).refused] == [rule]
    assert await big.fetchval("select to_regclass('horai.before')") is None, f"{harmless} waits for the one after it"


async def test_the_same_migration_is_applied_to_a_small_table(
    connection: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await connection.execute(
        "create table horai.big (id integer primary key, amount integer) with (autovacuum_enabled = false)"
    )
    (label,) = made_migrations.use(monkeypatch, tmp_path, "alter table horai.big alter column amount type bigint")

    (step,) = (await plan_migrations(connection)).steps
    assert (step.is_online, step.is_refused) == (False, False)
    assert [migration.label for migration in await migrate(connection)] == [label]


async def test_offline_applies_what_is_refused_once_no_node_is_live(
    big: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made_migrations.use(monkeypatch, tmp_path, "alter table horai.big alter column amount type bigint")
    node, _ = await nodes.register_node(big, "left-running", "test", 1, "0.1.0", timedelta(hours=1))

    with pytest.raises(MigrationError, match="Nodes are live: left-running"):
        await migrate(big, is_offline=True)
    await nodes.stop_node(big, node)
    await migrate(big, is_offline=True)

    kind = (
        "select atttypid::regtype::text from pg_attribute where attrelid = 'horai.big'::regclass and attname = 'amount'"
    )
    assert await big.fetchval(kind) == "bigint"


async def test_not_null_is_set_online_by_way_of_a_validated_check(
    big: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made_migrations.use(
        monkeypatch,
        tmp_path,
        "alter table horai.big add constraint amount_there check (amount is not null) not valid",
        "alter table horai.big validate constraint amount_there",
        "alter table horai.big alter column amount set not null",
    )

    assert len(await migrate(big)) == 3
    column = "select attnotnull from pg_attribute where attrelid = 'horai.big'::regclass and attname = 'amount'"
    assert await big.fetchval(column) is True


async def test_a_check_that_the_database_has_validated_counts_too(
    big: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await big.execute("alter table horai.big add constraint amount_there check (amount is not null)")
    made_migrations.use(monkeypatch, tmp_path, "alter table horai.big alter column amount set not null")

    assert len(await migrate(big)) == 1


# Locks


async def test_a_migration_does_not_queue_behind_a_long_transaction(
    url: str, big: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A waiting lock request stops all writes behind it: it gives up, and the writes go on in between."""
    (label,) = made_migrations.use(monkeypatch, tmp_path, "alter table horai.big add column note text")
    reader, writer = await superuser(url, "report of the month"), await superuser(url)
    told: asyncio.Queue[str] = asyncio.Queue()
    lasting = reader.transaction()
    await lasting.start()
    await reader.fetchval("select count(*) from horai.big")

    patience = LockPatience(timedelta(milliseconds=50), timedelta(milliseconds=10), tries=10_000)
    migrating = asyncio.create_task(migrate(big, progress=told.put_nowait, patience=patience))
    assert await heard(told) == f"applying {label}"
    for number in range(20):
        line = await heard(told)
        assert line.startswith("waiting for a lock")
        assert f"session {reader.get_server_pid()} (report of the month) holds horai.big" in line
        await writer.execute("insert into horai.big (id) values ($1)", -number - 1, timeout=1.0)
    await lasting.rollback()

    assert [migration.label for migration in await migrating] == [label]
    for each in (reader, writer):
        each.terminate()


async def test_a_migration_that_gets_no_lock_gives_up_and_changes_nothing(
    url: str, big: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made_migrations.use(monkeypatch, tmp_path, "create table horai.half (); alter table horai.big add column note text")
    reader = await superuser(url, "report of the month")
    before = await big.fetchval("show lock_timeout")
    async with reader.transaction():
        await reader.fetchval("select count(*) from horai.big")
        with pytest.raises(MigrationBlocked, match=r"in 3 tries: session .* holds horai\.big") as blocked:
            await migrate(big, patience=IMPATIENT)

    assert "horai migrate" in str(blocked.value.hint)
    assert await big.fetchval("select to_regclass('horai.half')") is None
    assert await big.fetchval("show lock_timeout") == before
    assert len(await migrate(big, patience=IMPATIENT)) == 1
    reader.terminate()


async def test_policies_are_renewed_without_a_lock_on_all_tables_at_once(
    url: str, big: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An upgrade renews the policies of every table. A reader of one table must not keep the lock of another waiting."""
    made_migrations.use(monkeypatch, tmp_path, "create table horai.fresh (id integer)")
    reader, writer = await superuser(url), await superuser(url)
    lasting = reader.transaction()
    await lasting.start()
    await reader.fetchval("select count(*) from horai.queue")
    told: asyncio.Queue[str] = asyncio.Queue()

    patience = LockPatience(timedelta(milliseconds=50), timedelta(milliseconds=10), tries=10_000)
    migrating = asyncio.create_task(migrate(big, progress=told.put_nowait, patience=patience))
    while "holds horai.queue" not in await heard(told):
        """It applies the file, and then comes to the table of queues."""
    async with writer.transaction():
        await writer.execute("lock table horai.instance_live, horai.big, horai.job in row exclusive mode nowait")
    await lasting.rollback()
    await migrating

    unprotected = "select count(*) from pg_class where relnamespace = 'horai'::regnamespace and not relrowsecurity"
    assert await big.fetchval(f"{unprotected} and relkind in ('r', 'p') and not relispartition") == 0
    for each in (reader, writer):
        each.terminate()


async def test_a_table_that_a_stopped_process_left_without_policies_gets_them(connection: Superuser) -> None:
    await connection.execute("create table horai.fresh (id integer, tenant_id integer)")

    assert await migrate(connection) == []

    assert await connection.fetchval("select relforcerowsecurity from pg_class where oid = 'horai.fresh'::regclass")
    policies = await connection.fetch("select polname::text from pg_policy where polrelid = 'horai.fresh'::regclass")
    assert {row["polname"] for row in policies} == {"of_platform", "of_tenant"}


async def test_a_process_waits_for_another_that_migrates_however_short_its_lock_timeout(
    url: str, connection: Superuser
) -> None:
    """`pg_advisory_lock` is limited by the lock timeout of the session: the second of two processes failed."""
    first = await superuser(url)
    await first.execute("select pg_advisory_lock($1)", LOCK)
    await connection.execute("set lock_timeout = '1ms'")
    told: asyncio.Queue[str] = asyncio.Queue()

    waiting = asyncio.create_task(migrate(connection, progress=told.put_nowait))
    assert await heard(told) == "another process migrates this database: waiting until it has finished"
    assert not waiting.done()
    await first.execute("select pg_advisory_unlock($1)", LOCK)

    assert await waiting == []
    first.terminate()


async def test_two_processes_build_an_index_concurrently_without_waiting_for_each_other_for_ever(
    url: str, big: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A session that waits inside `pg_advisory_lock` has a snapshot, and a concurrent build waits for all of them."""
    text = "-- no-transaction\ncreate index concurrently if not exists big_amount on horai.big (amount)"
    made_migrations.use(monkeypatch, tmp_path, text)
    other = await superuser(url)

    async with asyncio.timeout(60):
        done = await asyncio.gather(migrate(big), migrate(other))

    assert sorted(map(len, done)) == [0, 1]
    assert await big.fetchval(VALID, "horai.big_amount") is True
    other.terminate()


# Files outside a transaction


async def test_statements_outside_a_transaction_run_one_by_one(
    big: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = """-- no-transaction
    create index concurrently if not exists big_amount on horai.big (amount);
    drop index concurrently if exists horai.big_gone;
    alter table horai.big add column if not exists note text;
    create unique index concurrently if not exists big_note on horai.big (id, note) where note is not null;
    """
    (label,) = made_migrations.use(monkeypatch, tmp_path, text)

    assert [migration.label for migration in await migrate(big)] == [label]
    assert [await big.fetchval(VALID, f"horai.{name}") for name in ("big_amount", "big_note")] == [True, True]


async def test_an_index_that_a_failed_build_left_behind_is_built_again(
    big: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "-- no-transaction\ncreate unique index concurrently if not exists big_amount on horai.big (amount)"
    made_migrations.use(monkeypatch, tmp_path, text)
    told: list[str] = []

    with pytest.raises(MigrationError, match="duplicate"):
        await migrate(big)
    assert await big.fetchval(VALID, "horai.big_amount") is False, "as PostgreSQL leaves it"
    await big.execute("update horai.big set amount = id")
    assert len(await migrate(big, progress=told.append)) == 1

    assert "index horai.big_amount of an earlier try is not valid: building it again" in told
    assert await big.fetchval(VALID, "horai.big_amount") is True


async def test_an_index_of_a_partitioned_table_is_built_part_by_part(
    connection: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "-- no-transaction\ncreate index concurrently if not exists event_kind_at on horai.event (kind, at)"
    made_migrations.use(monkeypatch, tmp_path, text)

    await migrate(connection)

    parts = "select count(*) from pg_inherits where inhparent = $1::text::regclass"
    tables, indexes = [await connection.fetchval(parts, f"horai.{name}") for name in ("event", "event_kind_at")]
    assert tables == indexes > 1
    assert await connection.fetchval(VALID, "horai.event_kind_at") is True
    await nodes.make_partitions(connection, tables + 2)
    assert await connection.fetchval(parts, "horai.event_kind_at") > indexes


async def test_a_build_of_parts_that_was_interrupted_goes_on(
    connection: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "-- no-transaction\ncreate index concurrently if not exists event_kind_at on horai.event (kind, at)"
    made_migrations.use(monkeypatch, tmp_path, text)
    await connection.execute("create index event_kind_at on only horai.event (kind, at)")
    await connection.execute("create index event_kind_at_default on horai.event_default (kind, at)")
    await connection.execute("alter index horai.event_kind_at attach partition horai.event_kind_at_default")

    assert len(await migrate(connection)) == 1

    assert await connection.fetchval(VALID, "horai.event_kind_at") is True


async def test_a_file_outside_a_transaction_that_failed_is_not_recorded(
    big: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "-- no-transaction\nalter table horai.big add column if not exists note text; select 1 / 0;"
    (label,) = made_migrations.use(monkeypatch, tmp_path, text)

    for _ in range(2):
        with pytest.raises(MigrationError, match="division by zero") as failed:
            await migrate(big)
        assert isinstance(failed.value.__cause__, asyncpg.DivisionByZeroError)

    assert [migration.label for migration in await pending_migrations(big)] == [label]
