"""Incidents: by modes, by outages, and by hand."""

from datetime import timedelta
from typing import Any

import harness
import make
import pytest
from databases import Superuser
from harness import Client
from keys import created, holder, holding
from stages import workbench

from horai.features import incidents

INCIDENTS = "/api/v1/incidents"


async def shown(api: Client, **query: str) -> list[dict[str, Any]]:
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    return (await api("GET", f"{INCIDENTS}?{asked}")).json["items"]


async def test_C33_a_mode_opens_one_P2_incident_and_closes_it(url: str) -> None:
    async with harness.node(url) as api:
        on = {"mode": "CORE_ONLY", "state": "ON", "note": "drill"}
        for _ in range(2):
            assert (await api("POST", "/api/v1/scheduler/mode", on)).status == 200
        [incident] = await shown(api, open="true")
        assert (incident["severity"], incident["cause"], incident["closedAt"]) == ("P2", "CORE_ONLY", None)
        assert (await api("POST", "/api/v1/scheduler/mode", {**on, "state": "AUTO"})).status == 200
        assert await shown(api, open="true") == []
        detail = (await api("GET", f"{INCIDENTS}/{incident['id']}")).json
        assert [entry["kind"] for entry in detail["timeline"]] == ["OPENED", "CLOSED"]
        assert detail["timeline"][0]["data"]["note"] == "drill"
        assert (await api("POST", "/api/v1/scheduler/mode", on)).status == 200
        assert len(await shown(api)) == 2

        verbs = [row["verb"] for row in (await api("GET", "/api/v1/audit")).json["items"]]
        assert verbs.count("incident.open") == 2
        assert verbs.count("incident.close") == 1


async def test_C33_an_operator_opens_notes_and_closes_an_incident_once(url: str) -> None:
    async with harness.node(url) as api:
        body = {"severity": "P1", "title": "Payment provider is down", "note": "ticket 4711"}
        made = await api("POST", INCIDENTS, body)
        assert (made.status, made.json["severity"], made.json["cause"]) == (201, "P1", "BY_HAND")
        path = f"{INCIDENTS}/{made.json['id']}"
        assert (await api("POST", f"{path}/notes", {"note": "confirmed"})).status == 200
        assert (await api("POST", f"{path}/close", {"note": "back"})).status == 200
        again = await api("POST", f"{path}/close")
        assert (again.status, again.json["detail"]) == (409, "The incident 1 is closed already.")
        assert (await api("POST", f"{path}/notes", {"note": "review held"})).status == 200
        timeline = (await api("GET", path)).json["timeline"]
        assert [(entry["kind"], entry["note"]) for entry in timeline] == [
            ("OPENED", "ticket 4711"),
            ("NOTE", "confirmed"),
            ("CLOSED", "back"),
            ("NOTE", "review held"),
        ]


@pytest.mark.parametrize("reference", ["7", "x", "9" * 30])
async def test_an_incident_that_does_not_exist_is_not_found(url: str, reference: str) -> None:
    async with harness.node(url) as api:
        for method, path, body in (("GET", "", None), ("POST", "/notes", {"note": "n"}), ("POST", "/close", {})):
            reply = await api(method, f"{INCIDENTS}/{reference}{path}", body)
            assert (reply.status, reply.json["code"]) == (404, "SCH_404_NOT_FOUND")


async def test_incidents_belong_to_the_platform(url: str) -> None:
    async with harness.node(url) as api:
        root = holding(api, (await created(api, "platform-admin"))["key"])
        admin = await holder(root, "admin", "default")
        assert (await admin("GET", INCIDENTS)).status == 403
        assert (await admin("POST", INCIDENTS, {"severity": "P1", "title": "mine"})).status == 403
        assert (await root("POST", INCIDENTS, {"severity": "P1", "title": "ours"})).status == 201


GONE = "insert into horai.node (name, host, pid, version, roles, started_at, lease_until, stopped_at, fenced_at, rescued_at) values ('old', 'h', 1, '0', '{scheduler}', $1, $2, $3, $4, $4)"


async def outages(bench: Any) -> list[tuple[Any, ...]]:
    stage = bench.feature_stage(incidents.FEATURE)
    await stage.step(bench.clock.now())
    await stage.step(bench.clock.now())
    rows = await bench.connection.fetch("select severity, cause, opened_at, closed_at from horai.incident")
    return [tuple(row) for row in rows]


async def test_C33_a_time_without_a_live_node_is_a_P1_incident_that_is_over_recorded_once(url: str) -> None:
    async with workbench(url) as bench:
        back = await bench.connection.fetchval("select min(started_at) from horai.node")
        died = back - timedelta(minutes=10)
        await bench.connection.execute(GONE, died - timedelta(hours=1), died, None, back)
        assert await outages(bench) == [("P1", "NO_NODE", died, back)]
        assert await outages(bench) == [("P1", "NO_NODE", died, back)]
        timeline = await bench.connection.fetch("select kind, at from horai.incident_entry order by id")
        assert [tuple(row) for row in timeline] == [("OPENED", died), ("CLOSED", back)]


async def test_a_stop_in_order_and_a_short_gap_are_no_incidents(url: str) -> None:
    async with workbench(url) as bench:
        back = await bench.connection.fetchval("select min(started_at) from horai.node")
        stopped = back - timedelta(hours=9)
        await bench.connection.execute(GONE, stopped - timedelta(hours=1), stopped, stopped, None)
        assert await outages(bench) == []
    async with workbench(url) as bench:
        await bench.connection.execute("delete from horai.node where name = 'old'")
        back = await bench.connection.fetchval(
            "select min(started_at) from horai.node where lease_until > clock_timestamp()"
        )
        await bench.connection.execute(GONE, back - timedelta(hours=1), back - timedelta(seconds=30), None, back)
        assert await outages(bench) == []


async def test_a_new_database_has_no_incident(url: str, connection: Superuser) -> None:
    await make.node(connection)
    async with workbench(url) as bench:
        assert await outages(bench) == []
