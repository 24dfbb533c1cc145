"""The audit log after a restore from a dump: the new server counts transactions from the beginning."""

from pathlib import Path

import asyncpg
import audits
import pytest
from dumps import dump, restore
from stages import workbench

from horai.core.settings import EngineSettings
from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.embedded.admin import admin_url
from horai.process import prepare

BURN = """
do $$ begin
    for n in 1 .. 20000 loop
        perform pg_current_xact_id();
        commit;
    end loop;
end $$
"""


async def test_C9_the_chain_goes_on_after_a_restore_from_a_dump(url: str, short_place: Path, tmp_path: Path) -> None:
    _, key = audits.key_in(tmp_path)
    async with workbench(url) as bench:
        await audits.write_many(bench.connection, 3)
        await audits.seal(bench, key)
        await bench.connection.execute(BURN)
        await audits.write(bench.connection, "not sealed before the dump")
        head = (await audits.check(bench.scope, key)).head
    server = EmbeddedPostgres(EmbeddedSettings(short_place / "restored"))
    await server.start()
    try:
        admin = await asyncpg.connect(admin_url(server.url))
        restore(admin_url(server.url), dump(url))
        oldest = await admin.fetchval("select max(xid)::text::bigint from horai.audit")
        assert await admin.fetchval("select pg_current_xact_id()::text::bigint") < oldest, "the new server is behind"
        await admin.close()

        await prepare(server.url, EngineSettings())
        async with workbench(server.url) as bench:
            await audits.write_many(bench.connection, 2)
            await audits.seal(bench, key)
            report = await audits.check(bench.scope, key, head)
            rows = await bench.connection.fetchval("select sum(rows) from horai.audit_seal")
            moved = await bench.connection.fetchval("select horai.continue_audit()")
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="only moves on"):
                await bench.connection.execute("update horai.audit_clock set shift = 0")
    finally:
        await server.stop()
    assert (report.faults, rows, moved) == ([], 6, 0)


async def test_an_order_that_needs_no_move_stays(url: str) -> None:
    async with workbench(url) as bench:
        await audits.write_many(bench.connection, 3)
        await audits.seal(bench)
        await prepare(url, EngineSettings())
        assert await bench.connection.fetchval("select shift from horai.audit_clock") == 0
