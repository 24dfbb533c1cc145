"""Retention of the audit log: 180 days, by month, sealed months only, and a chain that still verifies."""

from datetime import timedelta

import asyncpg
import audits
import pytest
import structlog
from audits import as_intruder, check, named
from rows import connections
from stages import Workbench, workbench

from horai.core.settings import EngineSettings
from horai.db import nodes
from horai.db.pool import Platform
from horai.engine.janitor import Janitor


async def clean(bench: Workbench) -> list[str]:
    """Do the janitor's maintenance; the lines of its log."""
    janitor = Janitor(bench.line("janitor"), bench.scope.wakeups, bench.health, bench.settings, bench.clock.now(), ())
    with structlog.testing.capture_logs() as logs:
        await janitor.step(bench.clock.now())
    return [entry["event"] for entry in logs if "audit" in entry["event"]]


async def months(connection: Platform) -> list[str]:
    found = await connection.fetch(
        "select relname from pg_inherits join pg_class on oid = inhrelid where inhparent = 'horai.audit'::regclass order by 1"
    )
    return [f"{name[6:10]}-{name[10:]}" for (name,) in found if name != "audit_default"]


def test_C9_the_log_is_kept_for_180_days_by_default() -> None:
    assert EngineSettings().audit_keep == timedelta(days=180)


async def test_C9_months_are_made_ahead_and_rows_are_stored_by_month(connection: Platform) -> None:
    await nodes.make_partitions(connection, 8)
    await audits.write(connection)

    this = await connection.fetchval("select to_char(now() at time zone 'UTC', 'YYYY-MM')")
    assert len(await months(connection)) == 3
    assert min(await months(connection)) == this
    where = await connection.fetchval("select tableoid::regclass::text from horai.audit")
    assert where == f"horai.audit_{this.replace('-', '')}"
    assert await nodes.strays(connection) == 0


async def test_a_row_without_a_month_is_an_alarm(connection: Platform) -> None:
    await audits.months_ago(connection, 3)
    month = min(await months(connection))
    await connection.execute(f"drop table horai.audit_{month.replace('-', '')}")
    await connection.execute(
        "insert into horai.audit (at, actor_kind, actor_id, actor_name, actor_role, address, request_id, verb, object_kind,"
        " object_id, object_name) values (now() - interval '100 days', '', '', '', '', '', '', '', '', '', '')"
    )

    assert await nodes.strays(connection) == 1


async def test_C9_sealed_months_older_than_180_days_are_dropped_and_the_chain_still_verifies(url: str) -> None:
    async with workbench(url) as bench:
        for ago in (9, 8, 7, 5, 1):
            await audits.months_ago(bench.connection, ago, rows=3)
            await audits.seal(bench)
        before = await months(bench.connection)
        head = (await check(bench.scope)).head

        assert await clean(bench) == ["month of the audit log dropped"] * 3

        assert await months(bench.connection) == before[3:]
        report = await check(bench.scope, head=head)
        assert named(report) == []
        assert (report.seals, report.rows, report.dropped) == (3, 6, 3), "from the anchor on"
        assert str(report.kept_from)[:7] > before[2]
        assert [n for (n,) in await bench.connection.fetch("select n from horai.audit_seal order by n")] == [3, 4, 5]
        dropped = await bench.connection.fetch(
            "select object_name, counts ->> 'rows' from horai.audit where verb = 'audit.drop_month' order by id"
        )
        assert [tuple(row) for row in dropped] == [(month, "3") for month in before[:3]], "each drop is on record"


async def test_C9_a_month_with_rows_that_are_not_sealed_is_not_dropped(url: str) -> None:
    async with workbench(url) as bench:
        await audits.months_ago(bench.connection, 9)
        await audits.seal(bench)
        await audits.months_ago(bench.connection, 9)
        before = await months(bench.connection)

        assert await clean(bench) == ["month of the audit log not dropped: rows are not sealed"]
        assert await months(bench.connection) == before

        await audits.seal(bench)
        assert await clean(bench) == ["month of the audit log dropped"]


async def test_C9_a_seal_with_rows_of_two_months_keeps_those_of_the_younger_verifiable(url: str) -> None:
    async with workbench(url) as bench:
        await audits.months_ago(bench.connection, 9, rows=2)
        await audits.months_ago(bench.connection, 5, rows=2)
        await audits.seal(bench)
        await clean(bench)
        assert named(await check(bench.scope)) == []

        async with as_intruder(bench.connection):
            await bench.connection.execute("delete from horai.audit where id = 4")

        assert named(await check(bench.scope)) == [("deleted", 1, 4)]


async def test_C9_tampering_after_a_drop_is_detected(url: str) -> None:
    async with workbench(url) as bench:
        for ago in (9, 5, 1):
            await audits.months_ago(bench.connection, ago, rows=2)
            await audits.seal(bench)
        await clean(bench)
        async with as_intruder(bench.connection):
            await bench.connection.execute("update horai.audit set verb = 'job.create' where id = 3")
            await bench.connection.execute("update horai.audit_anchor set hash = 'x'")

        assert named(await check(bench.scope)) == [("sealAltered", 1, None), ("edited", 2, 3)]


async def test_C9_seals_from_the_anchor_on_cannot_be_deleted(url: str) -> None:
    async with workbench(url) as bench:
        for ago in (9, 5, 1):
            await audits.months_ago(bench.connection, ago)
            await audits.seal(bench)
        await clean(bench)

        for n in (1, 2, 3):
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
                await bench.connection.execute("delete from horai.audit_seal where n = $1", n)


async def test_a_month_that_is_being_read_is_dropped_later(url: str) -> None:
    async with workbench(url) as bench, connections(url, 1) as (reader,):
        await audits.months_ago(bench.connection, 9)
        await audits.seal(bench)
        async with reader.transaction():
            await reader.fetch("select from horai.audit")
            assert await clean(bench) == ["month of the audit log not dropped: it is being read"]

        assert await clean(bench) == ["month of the audit log dropped"]


async def test_an_empty_month_is_dropped_without_an_anchor(url: str) -> None:
    async with workbench(url) as bench:
        await audits.months_ago(bench.connection, 9, rows=0)

        assert await clean(bench) == ["month of the audit log dropped"]
        assert await bench.connection.fetchval("select count(*) from horai.audit_anchor") == 0
        assert (await check(bench.scope)).is_intact
