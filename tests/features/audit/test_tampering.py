"""A superuser with disabled triggers edits, deletes, inserts, reorders and cuts: each is detected and named."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import audits
import make
import pytest
from audits import Tamper, as_intruder, check, named
from stages import Workbench, workbench

from horai.db.pool import Platform
from horai.features.audit import store
from horai.features.audit.rules import FaultKind, Seal, make_seal
from horai.features.audit.signing import AuditKey
from horai.features.audit.store import StoredSeal

COLUMNS = "actor_kind, actor_id, actor_name, actor_role, address, request_id, verb, object_kind, object_id, object_name"
FORGED = "'key', '', 'mallory', 'admin', '', '', 'job.delete', 'job', '7', 'publish'"


@asynccontextmanager
async def sealed_log(url: str, key: AuditKey | None = None) -> AsyncGenerator[Workbench]:
    """Rows 1 to 9 in three seals of three."""
    async with workbench(url) as bench:
        for _ in range(3):
            await audits.write_many(bench.connection, 3)
            await audits.seal(bench, key)
        report = await check(bench.scope, key)
        assert (report.seals, report.rows, report.unsealed, named(report)) == (3, 9, 0, [])
        yield bench


async def edit(connection: Platform) -> None:
    await connection.execute("update horai.audit set actor_name = 'alice' where id = 5")


async def edit_json_spelling(connection: Platform) -> None:
    await connection.execute("""update horai.audit set before = '{"queue": "default"}' where id = 5""")


async def delete(connection: Platform) -> None:
    await connection.execute("delete from horai.audit where id = 5")


async def insert(connection: Platform) -> None:
    await connection.execute(
        f"insert into horai.audit (id, xid, at, {COLUMNS}) overriding system value"
        f" select 77, xid, at, {FORGED} from horai.audit where id = 5"
    )


async def insert_late_with_a_lower_id(connection: Platform) -> None:
    await connection.execute(
        f"insert into horai.audit (id, xid, at, {COLUMNS}) overriding system value"
        f" select 0, xid, at, {FORGED} from horai.audit where id = 5"
    )


async def insert_before_everything(connection: Platform) -> None:
    await connection.execute(
        f"insert into horai.audit (id, xid, {COLUMNS}) overriding system value values (0, '3', {FORGED})"
    )


async def insert_twice(connection: Platform) -> None:
    await connection.execute(
        f"insert into horai.audit (id, xid, at, {COLUMNS}) overriding system value"
        f" select 5, xid, at, {FORGED} from horai.audit where id = 5"
    )


async def reorder_contents(connection: Platform) -> None:
    await connection.execute(
        "update horai.audit row set (object_name, at, before, after) ="
        " (select object_name, at, before, after from horai.audit other where other.id = 9 - row.id)"
        " where id in (4, 5)"
    )


async def reorder_transactions(connection: Platform) -> None:
    await connection.execute(
        "update horai.audit row set xid = (select xid from horai.audit other where other.id = 9 - row.id)"
        " where id in (4, 5)"
    )


async def cut_the_last_rows(connection: Platform) -> None:
    await connection.execute("delete from horai.audit where id > 8")


async def drop_the_month(connection: Platform) -> None:
    month = await connection.fetchval("select tableoid::regclass::text from horai.audit limit 1")
    await connection.execute(f"drop table {month}")


TAMPERINGS: dict[str, tuple[Tamper, list[tuple[str, int, int | None]]]] = {
    "edit": (edit, [("edited", 2, 5)]),
    "edit of spelling": (edit_json_spelling, [("edited", 2, 5)]),
    "delete": (delete, [("deleted", 2, 5)]),
    "insert": (insert, [("inserted", 2, 77)]),
    "late lower id": (insert_late_with_a_lower_id, [("inserted", 2, 0)]),
    "insert before everything": (insert_before_everything, [("inserted", 1, 0)]),
    "insert twice": (insert_twice, [("inserted", 2, 5), ("inserted", 2, 5)]),
    "reorder of contents": (reorder_contents, [("reordered", 2, 4), ("reordered", 2, 5)]),
    "reorder of transactions": (reorder_transactions, [("reordered", 2, 4), ("reordered", 2, 5)]),
    "cut tail": (cut_the_last_rows, [("deleted", 3, 9)]),
    "dropped month": (drop_the_month, [("deleted", 1 + (row - 1) // 3, row) for row in range(1, 10)]),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
async def test_C9_tampering_with_rows_is_detected_and_named(url: str, tampering: str) -> None:
    tamper, faults = TAMPERINGS[tampering]
    async with sealed_log(url) as bench:
        async with as_intruder(bench.connection):
            await tamper(bench.connection)

        report = await check(bench.scope)

        assert sorted(named(report)) == sorted(faults)


SEAL_TAMPERINGS = {
    "hash": ("update horai.audit_seal set hash = decode(repeat('00', 32), 'hex') where n = 2", {(2, "sealAltered"), (3, "chainBroken")}),
    "entries": ("update horai.audit_seal set entries = substr(entries, 1, 104), rows = 2 where n = 2", {(2, "sealAltered"), (2, "inserted")}),
    "rows": ("update horai.audit_seal set rows = 2 where n = 2", {(2, "sealAltered")}),
    "interval": ("update horai.audit_seal set from_xid = '0' where n = 2", {(2, "sealAltered"), (2, "chainBroken"), (2, "inserted")}),
    "time": ("update horai.audit_seal set sealed_at = sealed_at - interval '1 day' where n = 2", {(2, "sealAltered")}),
    "missing": ("delete from horai.audit_seal where n = 2", {(3, "chainBroken")}),
    "beginning": ("delete from horai.audit_seal where n = 1", {(1, "cut"), (2, "inserted")}),
}  # fmt: skip


@pytest.mark.parametrize("tampering", SEAL_TAMPERINGS)
async def test_C9_tampering_with_seals_is_detected_and_named(url: str, tampering: str) -> None:
    statement, faults = SEAL_TAMPERINGS[tampering]
    async with sealed_log(url) as bench:
        async with as_intruder(bench.connection):
            await bench.connection.execute(statement)

        report = await check(bench.scope)

        assert {(seal, kind) for kind, seal, _ in named(report)} == faults


async def test_C9_a_cut_of_the_last_seal_and_its_rows_is_detected_by_a_published_head(url: str) -> None:
    async with sealed_log(url) as bench:
        head = (await check(bench.scope)).head
        async with as_intruder(bench.connection):
            await bench.connection.execute("delete from horai.audit_seal where n = 3")
            await bench.connection.execute("delete from horai.audit where id > 6")

        assert (await check(bench.scope)).is_intact, "without a head, a shorter chain is a chain"
        assert named(await check(bench.scope, head=head)) == [("cut", 3, None)]


async def rewrite(bench: Workbench, key: AuditKey | None = None) -> None:
    """Edit row 5 and recompute all seals from there on, as an intruder who knows the algorithm."""
    connection = bench.connection
    async with as_intruder(connection):
        await edit(connection)
        last: Seal | None = None
        for stored in await store.next_seals(connection, 0, 10):
            seal = stored.seal
            if seal.n >= 2:
                rows = await store.rows_between(connection, seal.from_xid, seal.to_xid, (0, -1), 100)
                made = make_seal(last, seal.to_xid, [row.as_sealed() for row in rows], seal.sealed_at)
                await connection.execute("delete from horai.audit_seal where n = $1", seal.n)
                signature = None if key is None else key.sign(made.head)
                await store.insert_seal(connection, StoredSeal(made, made.rows, key and key.id, signature))
                seal = made
            last = seal


async def test_C9_a_chain_that_was_rewritten_is_detected_by_a_published_head(url: str) -> None:
    async with sealed_log(url) as bench:
        head = (await check(bench.scope)).head
        await rewrite(bench)

        assert (await check(bench.scope)).is_intact, "an unsigned chain can be computed by every reader"
        assert named(await check(bench.scope, head=head)) == [("headDiffers", 3, None)]


async def test_C9_a_head_stays_in_the_chain_while_it_grows(url: str) -> None:
    async with sealed_log(url) as bench:
        head = (await check(bench.scope)).head
        await audits.write_many(bench.connection, 2)
        await audits.seal(bench)

        assert (await check(bench.scope, head=head)).is_intact


async def test_C9_a_chain_that_was_rewritten_lacks_the_signatures_of_the_key(url: str) -> None:
    key = audits.new_key()
    async with sealed_log(url, key) as bench:
        await rewrite(bench)

        assert named(await check(bench.scope, key)) == [("unsigned", 2, None)]


async def test_C9_a_chain_that_another_key_has_signed_is_not_covered_by_this_one(url: str) -> None:
    key = audits.new_key()
    async with sealed_log(url, key) as bench:
        await rewrite(bench, audits.new_key())

        report = await check(bench.scope, key)
        assert named(report) == [("unsigned", 2, None)]
        assert report.signed_to == 1


async def test_C9_a_signature_under_the_name_of_the_key_that_it_did_not_make_is_wrong(url: str) -> None:
    key = audits.new_key()
    async with sealed_log(url, key) as bench:
        await rewrite(bench, impostor(audits.new_key(), key.id))

        assert named(await check(bench.scope, key))[:2] == [("signatureWrong", 2, None), ("signatureWrong", 3, None)]


def impostor(forger: AuditKey, id_: str) -> AuditKey:
    """A key that claims the id of another one."""

    class Claimed(AuditKey):
        @property
        def id(self) -> str:
            return id_

    return Claimed(forger.public, forger.private)


async def test_a_signature_covers_the_seals_before_it(url: str) -> None:
    """A node without the key may have sealed meanwhile."""
    key = audits.new_key()
    async with sealed_log(url) as bench:
        assert named(await check(bench.scope, key)) == [("unsigned", 1, None)]
        await audits.write(bench.connection)
        await audits.seal(bench, key)

        report = await check(bench.scope, key)
        assert report.is_intact
        assert report.signed_to == 4


async def test_a_long_chain_is_verified_in_parts(url: str) -> None:
    async with sealed_log(url) as bench:
        hurried = replace(make.platform_scope(bench.scope), longest=-1.0)
        parts = [await audits.verify_chain(hurried, None, None, start) for start in (1, 2, 3)]

        assert [part.next_seal for part in parts] == [2, 3, None]
        assert [(part.seals, part.rows, part.is_intact) for part in parts] == [(1, 3, True)] * 3
        assert [part.unsealed for part in parts] == [None, None, 0]


async def test_a_fault_in_a_later_part_is_found_from_there(url: str) -> None:
    async with sealed_log(url) as bench:
        async with as_intruder(bench.connection):
            await bench.connection.execute("update horai.audit_seal set previous = hash where n = 3")

        found = await audits.verify_chain(make.platform_scope(bench.scope), None, None, 3)

        assert {fault.kind for fault in found.faults} == {FaultKind.SEAL_ALTERED, FaultKind.CHAIN_BROKEN}


async def test_the_number_of_faults_is_bounded(url: str) -> None:
    async with workbench(url) as bench:
        async with bench.connection.transaction():
            await bench.connection.execute(
                f"insert into horai.audit (at, {COLUMNS}) select $1, {FORGED} from generate_series(1, 300)",
                datetime.now(UTC),
            )
        await audits.seal(bench)
        async with as_intruder(bench.connection):
            await bench.connection.execute("delete from horai.audit")

        assert len((await check(bench.scope)).faults) == 100


async def test_verification_of_an_empty_log_finds_nothing(url: str) -> None:
    async with workbench(url) as bench:
        report = await check(bench.scope)

        assert (report.is_intact, report.seals, report.head, report.unsealed) == (True, 0, None, 0)
