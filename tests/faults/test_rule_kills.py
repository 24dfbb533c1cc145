"""kill -9 of the process that settled a node, before the run was decided: trigger rules are obeyed once by another process."""

from pathlib import Path

import pytest

from faults.cluster import cluster
from faults.outside import job_document, receiving, until, violations
from faults.test_workflow_kills import LEASE, are_there, speaking, trigger
from horai.db.pool import Platform

NODES = [
    {"name": "extract"},
    {"name": "load", "after": ["extract"]},
    {"name": "clean", "after": ["load"], "triggerRule": "allDone"},
    {"name": "alarm", "after": ["extract"], "triggerRule": "oneFailed"},
    {"name": "calm", "after": ["clean"], "triggerRule": "oneFailed"},
]


async def is_dead(connection: Platform, runs: list[int]) -> bool:
    return len(runs) == await connection.fetchval(
        "select count(*) from horai.workflow_node node join horai.instance_history past on past.id = node.instance_id"
        " where node.name = 'extract' and past.state = 4"
    )


@pytest.mark.timeout(120)
async def test_C6_C35_another_process_starts_alarm_and_clean_up_once_after_the_one_that_settled_the_death_was_killed(
    short_place: Path, url: str, connection: Platform
) -> None:
    with receiving(short_place / "rules.hits") as receiver:
        async with cluster(short_place, url, "one", "two", lease=LEASE) as nodes:
            async with speaking(nodes) as api:
                for node in NODES:
                    status = 400 if node["name"] == "extract" else 200
                    target = receiver.url(f"/{node['name']}?status={status}")
                    made = await api("POST", "/api/v1/jobs", job_document(str(node["name"]), target, timeout="10s"))
                    assert made.status == 201, made.json
                made = await api("POST", "/api/v1/workflows", {"name": "nightly", "nodes": NODES})
                assert made.status == 201, made.json
                assert (await api("POST", "/api/v1/jobs/extract/pause")).status == 200
                runs = await trigger(api, 8)
                await until(lambda: are_there(connection, runs), 30, "the runs are there")
                async with connection.transaction():
                    await connection.execute("select from horai.workflow_run for update")  # no process decides
                    assert (await api("POST", "/api/v1/jobs/extract/resume")).status == 200
                    await until(lambda: is_dead(connection, runs), 30, "every first node is dead")
                    await nodes.kill("two")

            async def are_blocked() -> bool:
                return len(runs) == await connection.fetchval(
                    "select count(*) from horai.workflow_run where phase = 1 and not undecided"
                )

            await until(are_blocked, LEASE + 40, "every run is blocked")
            found = await violations(connection)
            rows = await connection.fetch(
                "select node.name, instance.state, instance.idem_key from horai.workflow_node node"
                " join horai.job_instance instance on instance.instance_id = node.instance_id"
            )
            hits = receiver.by_key()

    assert found == []
    ends = {name: {row["state"] for row in rows if row["name"] == name} for name in ("load", "clean", "alarm", "calm")}
    assert ends == {"load": {"BLOCKED"}, "clean": {"SUCCESS"}, "alarm": {"SUCCESS"}, "calm": {"CANCELLED"}}
    calls = {row["idem_key"]: len(hits.get(row["idem_key"], ())) for row in rows if row["name"] in ("clean", "alarm")}
    assert set(calls.values()) == {1}, "each took effect once"
