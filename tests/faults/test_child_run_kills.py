"""kill -9 while runs of workflows start runs of other workflows: each attempt of a node has exactly one run."""

from pathlib import Path

import pytest

from faults.cluster import cluster
from faults.load import RETRY
from faults.outside import job_document, receiving, until, violations
from faults.test_workflow_kills import LEASE, speaking
from horai.db.pool import Platform

HELD = 4713
"""The advisory lock that the start of a run waits for, before it is committed."""
HOLD = f"""
create function hold_runs() returns trigger language plpgsql as $$
begin
    if exists (select from horai.workflow_node node where node.instance_id = new.id) then
        perform pg_advisory_xact_lock({HELD});
    end if;
    return new;
end $$;
create trigger hold_runs after insert on horai.workflow_run for each row execute function hold_runs();
"""
LET_GO = "drop trigger hold_runs on horai.workflow_run; drop function hold_runs();"
WAITS = "select pid from pg_locks where locktype = 'advisory' and objid = $1 and not granted"
NODES = [
    {"name": "inner", "workflow": "inner", "retry": {"maxRetry": 1, "base": "10ms"}},
    {"name": "tell", "after": ["inner"]},
]


@pytest.mark.timeout(180)
async def test_C6_C35_a_node_has_one_run_per_attempt_after_kills_before_and_after_its_start(
    short_place: Path, url: str, connection: Platform
) -> None:
    with receiving(short_place / "runs.hits") as receiver:
        async with cluster(short_place, url, "one", "two", lease=LEASE) as nodes:
            async with speaking(nodes) as api:
                for name in ("work", "tell"):
                    target = receiver.url(f"/{name}")
                    made = await api("POST", "/api/v1/jobs", job_document(name, target, timeout="10s", retry=RETRY))
                    assert made.status == 201, made.json
                for name, own in (("inner", [{"name": "work"}]), ("outer", NODES)):
                    made = await api("POST", "/api/v1/workflows", {"name": name, "nodes": own})
                    assert made.status == 201, made.json
                await connection.execute(HOLD)
                await connection.execute("select pg_advisory_lock($1)", HELD)
                begun = await api("POST", "/api/v1/workflows/outer/trigger", {}, Idempotency_Key="child")
                assert begun.status == 202, begun.json
                run = int(begun.json["run"]["id"])

                async def is_held() -> bool:
                    return bool(await connection.fetch(WAITS, HELD))

                await until(is_held, 30, "a process starts the inner run and waits before its commit")
                for name in ("one", "two"):
                    await nodes.kill(name)
            await connection.execute("select pg_advisory_unlock($1)", HELD)
            await connection.execute(LET_GO)
            await nodes.start("three", "four")

            async def is_started() -> bool:
                return await connection.fetchval("select count(*) from horai.workflow_run") == 2

            await until(is_started, LEASE + 60, "the inner run has been started")
            await nodes.kill("three")

            async def is_over() -> bool:
                return await connection.fetchval("select phase from horai.workflow_run where id = $1", run) == 2

            await until(is_over, LEASE + 60, "the run succeeds")
            found = await violations(connection)
            node = await connection.fetchrow(
                "select instance_id, child_attempt, ended from horai.workflow_node where run_id = $1 and name = 'inner'",
                run,
            )
            runs = [row["id"] for row in await connection.fetch("select id from horai.workflow_run order by id")]
            hits = receiver.by_key()

    assert found == []
    assert node is not None
    assert (node["child_attempt"], node["ended"], runs) == (1, 2, [run, node["instance_id"]])
    assert len(hits) == 2, "the node of the inner run and the node after it were called"
