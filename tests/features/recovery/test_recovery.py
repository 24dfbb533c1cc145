"""Recovery after an incident: shards, events and dead letters, once for each incident."""

import asyncio
import json
from typing import Any

import harness
from databases import Superuser
from harness import Client
from keys import holder
from receiver import Answer, Receiver
from rows import until


async def incident(api: Client) -> str:
    made = await api("POST", "/api/v1/incidents", {"severity": "P1", "title": "The cluster was down"})
    assert made.status == 201, made.json
    return made.json["id"]


async def job(api: Client, receiver: Receiver, name: str, *answers: Answer) -> None:
    receiver.on(f"/{name}", *answers)
    retry = {"maxRetry": 0}
    body = {"name": name, "target": {"type": "http", "url": receiver.url(f"/{name}")}, "retry": retry}
    assert (await api("POST", "/api/v1/jobs", body)).status == 201


async def kill_a_node(connection: Superuser) -> None:
    """Leave the leases of three shards to a node that missed its own."""
    gone = await connection.fetchval(
        "insert into horai.node (name, host, pid, version, lease_until, roles, fenced_at) "
        "values ('gone', 'h', 1, 'v', now() - interval '1 hour', array['scheduler'], now()) returning incarnation"
    )
    await connection.execute(
        "update horai.shard_lease set node = $1, lease_until = clock_timestamp() - interval '1 hour' "
        "where duty = 'trigger' and shard in (29, 30, 31)",
        gone,
    )


async def owners(connection: Superuser) -> int:
    return await connection.fetchval(
        "select count(*) from horai.shard_lease lease join horai.node on node.incarnation = lease.node "
        "where lease.lease_until > clock_timestamp() and node.fenced_at is null"
    )


async def test_C49_F7_a_recovery_resumes_shards_replays_events_and_requeues_letters_once(
    url: str, connection: Superuser
) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        receiver.on("/audit", Answer(200))
        types = ["horai.instance.dead", "horai.recovery.completed"]
        sink = {"kind": "webhook", "url": receiver.url("/audit"), "types": types, "batch": 10}
        assert (await api("PUT", "/api/v1/sinks/audit", sink)).status == 201
        await job(api, receiver, "clearing", Answer(503), Answer(503), Answer(503), Answer(200))
        await job(api, receiver, "refused", Answer(400))
        for number in range(3):
            assert (await api("PUT", f"/api/v1/jobs/clearing/instances/k{number}", {})).status == 201
        assert (await api("PUT", "/api/v1/jobs/refused/instances/k", {})).status == 201

        async def has_four() -> bool:
            return (await api("GET", "/api/v1/sinks/audit")).json["delivered"] == 4

        await until(has_four)
        await kill_a_node(connection)
        known = await incident(api)
        done = await api("POST", "/api/v1/recover", {"incident": known})
        assert done.status == 200, done.json
        assert (done.json["status"], done.json["incident"]) == ("RECOVERY_COMPLETED", known)
        assert (done.json["resumed"], done.json["replayed"], done.json["dlqMoved"]) == (3, 4, 3)

        async def is_back() -> bool:
            rows = await connection.fetch("select state, count(*) as n from horai.job_instance group by state")
            sent = (await api("GET", "/api/v1/sinks/audit")).json["delivered"]
            return {row["state"]: row["n"] for row in rows} == {"DEAD": 4, "SUCCESS": 3} and sent == 9

        await until(is_back)
        assert await owners(connection) == 64
        events = [event for hit in receiver.hits if hit.path == "/audit" for event in json.loads(hit.body)]
        [told] = [event["data"] for event in events if event["type"] == "horai.recovery.completed"]
        assert told == {"incidentId": known, "resumed": 3, "replayed": 4, "dlqMoved": 3}
        again = await api("POST", "/api/v1/recover", {"incident": known})
        assert again.json == done.json, "a second request changes nothing"
        letters = (await api("GET", "/api/v1/dlq?limit=10")).json["items"]
        assert sorted(letter["replayStatus"] for letter in letters) == ["NEW", "REPLAYED", "REPLAYED", "REPLAYED"]

        timeline = (await api("GET", f"/api/v1/incidents/{known}")).json["timeline"]
        counts = {"resumed": 3, "replayed": 4, "dlqMoved": 3}
        assert [(entry["kind"], entry["data"]) for entry in timeline][1:] == [
            ("RECOVERED", {"status": "RECOVERY_COMPLETED", **counts})
        ]
        async with api.session.get(f"{api.base}/metrics") as response:
            text = await response.text()
        assert f"horai_recovery_incident {float(known)}" in text
        assert "horai_recovery_resumed_shards 3.0" in text
        assert "horai_recovery_replayed_events 4.0" in text
        assert "horai_recovery_requeued_dead_letters 3.0" in text
        [audited] = [
            row for row in (await api("GET", "/api/v1/audit?limit=100")).json["items"] if row["verb"] == "recovery.complete"
        ]  # fmt: skip
        assert (audited["object"]["id"], audited["counts"]) == (known, counts)


async def test_C49_a_recovery_that_was_interrupted_continues_and_does_no_step_twice(
    url: str, connection: Superuser
) -> None:
    async with harness.node(url) as api:
        known = await incident(api)
        await connection.execute(
            "insert into horai.recovery (incident_id, actor, begun_at, resumed) values ($1, 'ada', now() - interval '2 minutes', 7)",
            int(known),
        )
        done = await api("POST", "/api/v1/recover", {"incident": known})
        assert (done.status, done.json["resumed"]) == (200, 7), done.json


async def test_of_two_requests_at_once_one_recovers_and_the_other_is_told_to_wait(
    url: str, connection: Superuser
) -> None:
    async with harness.node(url) as api:
        known = await incident(api)
        await connection.execute("insert into horai.recovery (incident_id, actor) values ($1, 'ada')", int(known))
        refused = await api("POST", "/api/v1/recover", {"incident": known})
        assert refused.status == 409
        assert refused.json["detail"] == f"Another request is recovering the cluster after the incident {known}."
        await connection.execute("delete from horai.recovery")
        both = await asyncio.gather(*(api("POST", "/api/v1/recover", {"incident": known}) for _ in range(2)))
        assert {answer.status for answer in both} <= {200, 409}
        assert await connection.fetchval("select count(*) from horai.incident_entry where kind = 'RECOVERED'") == 1


async def test_no_more_than_5000_letters_of_the_tag_are_requeued_the_oldest_first(
    url: str, connection: Superuser, monkeypatch: Any
) -> None:
    monkeypatch.setattr("horai.features.recovery.service.MOST_REQUEUED", 2)
    async with Receiver() as receiver, harness.node(url) as api:
        await job(api, receiver, "clearing", Answer(503))
        for number in range(4):
            assert (await api("PUT", f"/api/v1/jobs/clearing/instances/k{number}", {})).status == 201

            async def is_dead(wanted: int = number + 1) -> bool:
                return await connection.fetchval("select count(*) from horai.dead_letter") == wanted

            await until(is_dead)
        done = await api("POST", "/api/v1/recover", {"incident": await incident(api)})
        assert done.json["dlqMoved"] == 2
        rows = await connection.fetch("select id from horai.dead_letter where replay_status = 'REPLAYED' order by id")
        assert [row["id"] for row in rows] == [1, 2]


async def test_only_the_platform_recovers_and_unknown_incidents_are_refused(url: str) -> None:
    async with harness.node(url) as api:
        assert (await api("POST", "/api/v1/recover", {"incident": "4711"})).status == 404
        assert (await api("POST", "/api/v1/recover", {"incident": "x"})).status == 404
        assert (await api("POST", "/api/v1/recover", {"incident": "1", "force": True})).status == 422
        platform = await holder(api, "platform-admin")
        admin = await holder(platform, "admin", "default")
        refused = await admin("POST", "/api/v1/recover", {"incident": "1"})
        assert refused.status == 403
