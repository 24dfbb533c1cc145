"""The vacuum of the live table, on a server whose autovacuum is off."""

import make
from databases import Superuser, as_node, superuser
from stages import Workbench, workbench

from horai.db.live_table import dead_live_rows
from horai.db.stage_connection import StageConnection
from horai.engine.vacuum import OFTEN, SELDOM, WORTH_IT, LiveVacuum


async def leave_dead_rows(bench: Workbench, count: int) -> None:
    """Insert and delete live rows, as instances do in a moment."""
    job = await make.job(bench.scope)
    async with bench.connection.transaction():
        await bench.connection.execute(
            "insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot)"
            " select nextval('horai.instance_id'), $1, 1, $2, 0, now(), now(), now(), now(), -n from generate_series(1, $3::integer) n",
            job.id, job.lane_id, count,
        )  # fmt: skip
    await bench.connection.execute("delete from horai.instance_live")
    await bench.connection.execute("select pg_stat_force_next_flush()")
    assert await dead_live_rows(bench.connection) == count


async def vacuums(connection: Superuser) -> int:
    await connection.execute("select pg_stat_force_next_flush()")
    return await connection.fetchval("select pg_stat_get_vacuum_count('horai.instance_live'::regclass)")


async def test_a_live_table_with_many_dead_rows_is_vacuumed_once(url: str) -> None:
    async with workbench(url) as bench:
        stage = LiveVacuum(bench.line("live_vacuum"))
        await leave_dead_rows(bench, WORTH_IT)
        now = bench.clock.now()

        assert await stage.step(now) == now + OFTEN
        await stage.step(now)

        assert (await vacuums(bench.connection), await dead_live_rows(bench.connection)) == (1, 0)


async def test_a_few_dead_rows_are_left_to_the_server(url: str) -> None:
    async with workbench(url) as bench:
        await leave_dead_rows(bench, WORTH_IT - 1)

        await LiveVacuum(bench.line("live_vacuum")).step(bench.clock.now())

        assert await vacuums(bench.connection) == 0


async def test_a_vacuum_does_not_wait_for_another_one(url: str) -> None:
    """Of several nodes that see the dead rows, one vacuums the table."""
    async with workbench(url) as bench:
        await leave_dead_rows(bench, WORTH_IT)
        other = await superuser(url, "another vacuum")
        async with other.transaction():
            await other.execute("lock table horai.instance_live in share update exclusive mode")

            await LiveVacuum(bench.line("live_vacuum")).step(bench.clock.now())

        await other.close()
        assert await vacuums(bench.connection) == 0


async def test_the_login_of_a_node_may_vacuum_the_live_table_and_no_other(url: str) -> None:
    node = StageConnection(as_node(url), "horai test")
    try:
        connection = await node.get()
        assert await dead_live_rows(connection) is not None
        allowed = await connection.fetch(
            "select relname from pg_class where relnamespace = 'horai'::regnamespace and relkind in ('r', 'p')"
            " and has_table_privilege(oid, 'maintain')"
        )
        assert [row["relname"] for row in allowed] == ["instance_live"]
    finally:
        await node.close()


async def test_a_login_that_may_not_vacuum_leaves_the_table_to_the_server(url: str) -> None:
    async with workbench(url) as bench:
        await leave_dead_rows(bench, WORTH_IT)
        await bench.connection.execute("revoke maintain on horai.instance_live from horai_engine")
        line = StageConnection(as_node(url), "horai test")
        now = bench.clock.now()

        assert await LiveVacuum(line).step(now) == now + SELDOM

        await line.close()
        assert await vacuums(bench.connection) == 0
