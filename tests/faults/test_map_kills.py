"""kill -9 in the middle of maps: of the process that makes the items, and of processes that run them.

Each item of each map takes effect exactly once per attempt that counts, the node ends once, and what is after it runs once.
"""

from pathlib import Path

import pytest
from sizes import IS_LONG

from faults.cluster import cluster
from faults.load import RETRY
from faults.outside import job_document, receiving, until, violations
from faults.test_workflow_kills import LEASE, speaking
from horai.db.pool import Platform

ITEMS = 2_000 if IS_LONG else 120
HELD = 4712
"""The advisory lock that the making of items waits for, before it is committed."""
HOLD_ITEMS = f"""
create function hold_items() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock({HELD});
    return new;
end $$;
create trigger hold_items after update of map_made on horai.workflow_node
for each row when (new.map_made > old.map_made and new.map_made > 20) execute function hold_items();
"""
LET_ITEMS_GO = "drop trigger hold_items on horai.workflow_node; drop function hold_items();"
NODES = [{"name": "each", "map": {"overPayload": "", "maxConcurrency": 20}}, {"name": "tell", "after": ["each"]}]
WAITS = "select pid from pg_locks where locktype = 'advisory' and objid = $1 and not granted"
PROGRESS = "select map_ended from horai.workflow_node where run_id = $1 and name = 'each'"


@pytest.mark.timeout(180)
async def test_C6_C35_every_item_settles_once_and_the_run_goes_on_once_after_kills_in_the_middle(
    short_place: Path, url: str, connection: Platform
) -> None:
    with receiving(short_place / "maps.hits") as receiver:
        async with cluster(short_place, url, "one", "two", lease=LEASE) as nodes:
            async with speaking(nodes) as api:
                for name in ("each", "tell"):
                    target = receiver.url(f"/{name}")
                    made = await api("POST", "/api/v1/jobs", job_document(name, target, timeout="10s", retry=RETRY))
                    assert made.status == 201, made.json
                made = await api("POST", "/api/v1/workflows", {"name": "mapped", "nodes": NODES})
                assert made.status == 201, made.json
                await connection.execute(HOLD_ITEMS)
                await connection.execute("select pg_advisory_lock($1)", HELD)
                body = {"payload": [*range(ITEMS)]}
                begun = await api("POST", "/api/v1/workflows/mapped/trigger", body, Idempotency_Key="map")
                assert begun.status == 202, begun.json
                run = int(begun.json["run"]["id"])

                async def is_held() -> bool:
                    return bool(await connection.fetch(WAITS, HELD))

                await until(is_held, 30, "a process makes items and waits before its commit")
                for name in ("one", "two"):  # one of them makes items, both run some
                    await nodes.kill(name)
            await connection.execute("select pg_advisory_unlock($1)", HELD)
            await connection.execute(LET_ITEMS_GO)
            await nodes.start("three", "four")

            async def is_half_done() -> bool:
                return await connection.fetchval(PROGRESS, run) > ITEMS // 2

            await until(is_half_done, LEASE + 60, "half of the items are done")
            await nodes.kill("three")

            async def is_over() -> bool:
                return await connection.fetchval("select phase from horai.workflow_run where id = $1", run) == 2

            await until(is_over, LEASE + 60, "the run succeeds")
            found = await violations(connection)
            rows = await connection.fetch(
                "select item.position, item.ended, instance.state, instance.idem_key from horai.workflow_item item"
                " join horai.job_instance instance on instance.instance_id = item.instance_id where item.run_id = $1",
                run,
            )
            node = await connection.fetchrow(
                "select map_total, map_made, map_ended, map_failed from horai.workflow_node"
                " where run_id = $1 and name = 'each'",
                run,
            )
            told = await connection.fetch(
                "select instance.idem_key from horai.workflow_node node"
                " join horai.job_instance instance on instance.instance_id = node.instance_id where node.name = 'tell'"
            )
            hits = receiver.by_key()

    assert found == []
    assert sorted(row["position"] for row in rows) == [*range(ITEMS)]
    assert {(row["ended"], row["state"]) for row in rows} == {(2, "SUCCESS")}
    assert len({row["idem_key"] for row in rows}) == ITEMS
    assert node is not None
    assert tuple(node.values()) == (ITEMS, ITEMS, ITEMS, 0)
    assert all(hits.get(row["idem_key"]) for row in rows), "each item was called"
    assert [len(hits[row["idem_key"]]) for row in told] == [1], "the node after the map ran once"
