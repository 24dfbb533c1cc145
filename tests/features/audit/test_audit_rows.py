"""Rows of the audit log: in the transaction of the write, masked, append-only for every role."""

import asyncio
import signal
import subprocess
import sys

import asyncpg
import audits
import clients
import make
import pytest
from rows import connections

from horai.core.audit import AuditEntry, AuditVerb, changed_fields, masked
from horai.db.pool import Platform
from horai.operations import audit, jobs

CHANGES = [
    "update horai.{0} set {1} = {1}",
    "delete from horai.{0}",
    "truncate horai.{0}",
]
TABLES = {"audit": "verb", "audit_seal": "rows", "audit_anchor": "rows"}


async def rows(connection: Platform) -> list[tuple[str, str, str | None, str | None]]:
    found = await connection.fetch(
        "select verb, object_name, before::text, after::text from horai.audit where verb <> 'job.create' order by id"
    )
    return [tuple(row) for row in found]


async def test_C9_a_pause_and_a_resume_are_recorded_with_the_fields_that_they_changed(
    url: str, connection: Platform
) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await jobs.pause_job(scope, "publish", "stock-taking")
        await jobs.resume_job(scope, "publish", None)

    assert await rows(connection) == [
        ("job.pause", "publish", '{"status":"ACTIVE","note":null}', '{"status":"PAUSED","note":"stock-taking"}'),
        ("job.resume", "publish", '{"status":"PAUSED","note":"stock-taking"}', '{"status":"ACTIVE","note":null}'),
    ]
    assert await connection.fetchval("select count(*) from horai.audit where tenant_id = 1 and actor_kind = 'sdk'") == 3


async def test_C9_a_rollback_leaves_neither_the_write_nor_its_row(
    url: str, connection: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)

        async def record_then_fail(*given: object) -> None:
            await audit.record_change(*given)  # pyright: ignore[reportArgumentType]
            raise RuntimeError("the database went away")

        monkeypatch.setattr("horai.operations.jobs.audit", _Module(record_then_fail))
        with pytest.raises(RuntimeError):
            await jobs.pause_job(scope, "publish", None)

    assert await rows(connection) == []
    assert await connection.fetchval("select status from horai.job") == 0


async def test_C9_a_write_whose_row_cannot_be_added_has_no_effect(url: str, connection: Platform) -> None:
    await connection.execute("alter table horai.audit add constraint full_disk check (verb <> 'job.pause')")
    async with make.scope(url) as scope:
        await make.job(scope)
        with pytest.raises(asyncpg.CheckViolationError):
            await jobs.pause_job(scope, "publish", None)

    assert await connection.fetchval("select status from horai.job") == 0


async def test_the_sealer_is_notified_of_a_row_after_its_commit_and_not_of_one_that_rolled_back(
    url: str, connection: Platform
) -> None:
    heard: asyncio.Queue[object] = asyncio.Queue()
    await connection.add_listener("horai_wake", lambda *told: heard.put_nowait(told[-1]))
    async with connections(url, 1) as (other,):
        transaction = other.transaction()
        await transaction.start()
        await audits.write(other)
        await transaction.rollback()
        await audits.write(other)
        await other.execute("select pg_notify('horai_wake', 'end')")
    async with asyncio.timeout(30):
        assert [await heard.get(), await heard.get()] == ["a", "end"]


class _Module:
    """The module `operations.audit` with another `record_change`."""

    def __init__(self, record_change: object) -> None:
        self.record_change = record_change


DYING = """
import asyncio, sys
import make
from horai.operations import audit, jobs

async def stop_here():
    print("here", flush=True)
    await asyncio.Event().wait()

class Module:
    @staticmethod
    async def record_change(*given):
        if moment == "before the row":
            await stop_here()
        await audit.record_change(*given)
        if moment == "before the commit":
            await stop_here()

async def main():
    async with make.scope(url) as scope:
        jobs.audit = Module
        await jobs.pause_job(scope, "publish", None)
        await stop_here()

url, moment = sys.argv[1:]
asyncio.run(main())
"""


@pytest.mark.parametrize(("moment", "kept"), [("before the row", 0), ("before the commit", 0), ("after the commit", 1)])
async def test_C9_a_killed_process_leaves_both_the_write_and_its_row_or_neither(
    url: str, connection: Platform, moment: str, kept: int
) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
    support = str(audits.__file__).rpartition("/")[0]
    process = subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {support!r})\n{DYING}", url, moment],
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == "here\n"
        process.send_signal(signal.SIGKILL)
    await until_alone(connection)

    assert await connection.fetchval("select count(*) from horai.audit where verb = 'job.pause'") == kept
    assert await connection.fetchval("select status from horai.job") == kept


async def until_alone(connection: Platform) -> None:
    """Wait until the server has noticed the death of its clients."""
    async with asyncio.timeout(30):
        while await connection.fetchval(
            "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            " and backend_type = 'client backend'"
        ):
            await asyncio.sleep(0.01)


# Append-only


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("table", TABLES)
async def test_C9_the_log_refuses_changes_even_of_its_owner(connection: Platform, table: str, change: str) -> None:
    await filled(connection)

    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
        await connection.execute(change.format(table, TABLES[table]))


@pytest.mark.parametrize("change", CHANGES)
async def test_C9_a_partition_refuses_changes_as_the_log_does(connection: Platform, change: str) -> None:
    await filled(connection)
    partitions = await connection.fetch(
        "select relname from pg_inherits join pg_class on oid = inhrelid where inhparent = 'horai.audit'::regclass"
    )
    await connection.execute(
        "insert into horai.audit (at, actor_kind, actor_id, actor_name, actor_role, address, request_id, verb, object_kind,"
        " object_id, object_name) select now() + n * interval '1 month', '', '', '', '', '', '', '', '', '', ''"
        " from generate_series(-4, 2) n"
    )
    assert len(partitions) == 4, "this month, two ahead, and the default one"
    for (partition,) in partitions:
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
            await connection.execute(change.format(partition, "verb"))


async def test_C9_no_client_role_reads_or_writes_the_log(url: str, connection: Platform) -> None:
    await filled(connection)
    async with clients.role(connection, url) as (_, session):
        for table, column in TABLES.items():
            for change in (*CHANGES, "select * from horai.{0}"):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await session.execute(change.format(table, column))


async def filled(connection: Platform) -> None:
    await audits.write(connection)
    await connection.execute("insert into horai.audit_seal values (1, '0', '9', 0, '', '', '', now())")
    await connection.execute("insert into horai.audit_anchor values ('2020-01-01', 1, '', 0)")


# Values


async def test_values_that_may_be_secret_are_masked_when_they_are_recorded(connection: Platform) -> None:
    canary = "canary-7f3a"
    fields = {
        "payload": {"card": canary},
        "target": {"url": f"https://shop.example/hook?token={canary}", "headers": {"Authorization": canary}},
        "source": {"databaseUrl": f"postgresql://shop:{canary}@db/shop"},
        "nested": {"deep": [{"password": canary, "url": f"http://h/?q={canary}"}]},
        "secret": canary,
        "queue": "low",
    }
    entry = AuditEntry(AuditVerb.JOB_CHANGE, "job", "1", "publish", fields, fields)

    await audit.record(connection, 1, audits.ACTOR, entry)

    stored: str = await connection.fetchval("select (before::text || after::text) from horai.audit")
    assert canary not in stored
    assert '"queue":"low"' in stored
    assert "https://shop.example/hook?token=***" in stored


def test_a_long_value_is_replaced_by_its_size() -> None:
    assert masked({"calendar": ["2026-01-01"] * 1000, "queue": "low"}) == {
        "calendar": "(14000 characters)",
        "queue": "low",
    }


def test_only_changed_fields_are_kept() -> None:
    assert changed_fields({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 4, "d": 5}) == ({"b": 2, "c": 3}, {"b": 4, "d": 5})


async def test_a_scope_without_a_tenant_writes_a_row_of_the_platform(url: str, connection: Platform) -> None:
    async with connections(url, 1) as (other,):
        await audits.write(other, tenant_id=None)

    assert await connection.fetchval("select count(*) from horai.audit where tenant_id is null") == 1
