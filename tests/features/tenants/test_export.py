"""The export of a tenant: everything it has, nothing of another, no secret, and a line that says it is complete."""

import json
from typing import Any

import harness
import pytest
from harness import Client
from keys import created, holder, holding

from api import expect
from horai.features.tenants import export

SECRET = "canary-7"


async def lines(ask: Client) -> list[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {ask.key}"}  # type: ignore[attr-defined]
    async with ask.session.get(f"{ask.base}/api/v1/export", headers=headers) as response:
        assert response.status == 200
        return [json.loads(line) for line in (await response.text()).splitlines()]


async def test_C2a_an_export_has_every_row_of_the_tenant_and_none_of_another(url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(export, "ROWS", 3)
    async with harness.node(url) as api:
        root = holding(api, (await created(api, "platform-admin"))["key"])
        await root("POST", "/api/v1/tenants", {"name": "north"})
        north, other = await holder(root, "admin", "north"), await holder(root, "admin", "default")
        target = {"type": "http", "url": f"http://127.0.0.1:9/?token={SECRET}", "headers": {"Authorization": SECRET}}
        for admin in (north, other):
            for job in ({"name": "call"}, {"name": "watched", "every": "1h", "refresh": {"window": "10d"}}):
                assert (await admin("POST", "/api/v1/jobs", {**job, "target": target, "payload": 1.10})).status == 201
        items = [{"key": f"k{n}", "executeTime": "2999-01-01T00:00:00Z", "payload": {"n": n}} for n in range(8)]
        assert (await north("POST", "/api/v1/jobs/call/instances/batch", {"items": items})).status == 200
        entities = {"items": [{"key": f"e{n}"} for n in range(7)]}
        assert (await north("POST", "/api/v1/jobs/watched/entities/batch", entities)).status == 200
        assert (await north("DELETE", "/api/v1/jobs/call/instances/k0")).status == 200
        source = {"type": "sql", "databaseUrl": f"postgresql://me:{SECRET}@127.0.0.1/x", "query": "select $1, $2"}
        body = {"name": "watch", "job": "call", "every": "1h", "source": source}
        assert (await north("POST", "/api/v1/reconcilers", body)).status == 201
        nodes = {"name": "flow", "nodes": [{"name": "a", "job": "call"}]}
        assert (await north("POST", "/api/v1/workflows", nodes)).status == 201
        hook = {"name": "ops", "kind": "webhook", "url": f"http://127.0.0.1:9/{SECRET}"}
        for admin in (north, other):
            assert (await admin("POST", "/api/v1/alerts/channels", hook)).status == 201
        rule = {"name": "dead", "kind": "INSTANCE_DEAD", "channels": ["ops"]}
        assert (await north("POST", "/api/v1/alerts/rules", rule)).status == 201
        assert (await north("PUT", "/api/v1/heartbeats/backup", {"every": "1d"})).status == 201
        sink = {"kind": "webhook", "url": "http://127.0.0.1:9/", "headers": {"Authorization": SECRET}}
        assert (await north("PUT", "/api/v1/sinks/audit", sink)).status == 201

        *rows, end = await lines(north)
        found = {kind: [row for row in rows if row["kind"] == kind] for kind in end["counts"]}
        assert {kind: len(each) for kind, each in found.items()} == end["counts"]
        assert (end["kind"], end["tenant"]) == ("end", "north")
        assert {job["name"] for job in found["job"]} >= {"call", "watched", "watch", "flow"}
        assert {row["key"] for row in found["instance"]} == {f"k{n}" for n in range(1, 8)}
        assert [row["payload"] for row in found["instance"] if row["key"] == "k3"] == [{"n": 3}]
        assert [(row["key"], row["state"]) for row in found["history"]] == [("k0", "CANCELLED")]
        assert {row["key"] for row in found["entity"]} == {f"e{n}" for n in range(7)}
        assert (len(found["workflow"]), len(found["reconciler"])) == (1, 1)
        assert [(row["name"], row["host"]) for row in found["alertChannel"]] == [("ops", "127.0.0.1:9")]
        assert (len(found["alertRule"]), len(found["heartbeat"])) == (1, 1)
        assert [(row["name"], row["sinkKind"]) for row in found["sink"]] == [("audit", "webhook")]
        assert {"job.create", "instance.cancel", "workflow.create"} <= {row["verb"] for row in found["audit"]}
        assert SECRET not in json.dumps(rows)
        assert found["job"][0]["definition"]["target"]["headers"] == {"Authorization": "***"}

        *theirs, _ = await lines(other)
        assert {row["key"] for row in theirs if row["kind"] in {"instance", "entity", "history"}} == set()
        for role in ("operator", "viewer", "worker"):
            reader = await holder(root, role, "north")
            expect.problem(await reader("GET", "/api/v1/export"), 403, "SCH_403_FORBIDDEN")
        expect.problem(await root("GET", "/api/v1/export"), 403, "SCH_403_FORBIDDEN")
