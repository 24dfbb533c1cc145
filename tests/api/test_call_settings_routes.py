"""`queue`, `priority` and `expires` over REST: batches, puts, triggers, explanations, and replays that keep the queue."""

from typing import Any

from harness import Client
from receiver import Answer, Receiver

from api import expect, given


async def bulk(api: Client) -> str:
    """Make a queue, and return its name."""
    await api("PUT", "/api/v1/queues/bulk", {})
    return "bulk"


async def test_an_instance_has_the_queue_the_priority_and_the_expiry_of_its_request(api: Client) -> None:
    name, queue = (await given.job(api))["name"], await bulk(api)
    own: dict[str, Any] = {"queue": queue, "priority": "low", "expires": "10m"}

    items = [{**own, "executeTime": given.FAR}, {"key": "k", "executeTime": given.FAR, **own}]
    made = (await api("POST", f"/api/v1/jobs/{name}/instances/batch", {"items": items})).json["items"]
    put = (await api("PUT", f"/api/v1/jobs/{name}/instances/k2", {"executeTime": given.FAR, **own})).json["instance"]
    triggered = await api("POST", f"/api/v1/jobs/{name}/trigger", own, Idempotency_Key="settings-1")
    shown = [(await api("GET", f"/api/v1/instances/{each['instanceId']}")).json for each in made]

    assert triggered.status == 201
    for each in (*shown, put, triggered.json["instance"]):
        assert (each["queue"], each["priority"], each.get("expiresAt") is not None) == (queue, "low", True)
    listed = await given.listed(api, f"/api/v1/jobs/{name}/instances?queue={queue}")
    assert len(listed) == 4
    plain = (await api("PUT", f"/api/v1/jobs/{name}/instances/k3", {"executeTime": given.FAR})).json["instance"]
    assert (plain["priority"], plain.get("expiresAt")) == ("normal", None)


async def test_a_wrong_setting_is_refused(api: Client) -> None:
    path = f"/api/v1/jobs/{(await given.job(api))['name']}"

    for field, wrong in (
        ("queue", "nowhere"),
        ("queue", "no name"),
        ("priority", "urgent"),
        ("priority", 1),
        ("expires", "soon"),
        ("expires", "0s"),
        ("expires", "2001-01-01T00:00:00Z"),
        ("expires", "2036-01-01T00:00:00"),
        ("expires", 60),
    ):
        expect.invalid(await api("PUT", f"{path}/instances/k", {field: wrong}), field)
        expect.invalid(await api("POST", f"{path}/trigger", {field: wrong}, Idempotency_Key=f"{field}-{wrong}"), field)
        batch = await api("POST", f"{path}/instances/batch", {"items": [{field: wrong}]})
        assert (batch.status, field in batch.json["detail"]) == (422, True)
    assert await given.listed(api, f"{path}/instances") == []


async def test_the_explanation_of_an_expired_instance_says_so(api: Client) -> None:
    job = await given.job(api, target={"type": "worker", "handler": "absent"})
    path = f"/api/v1/jobs/{job['name']}/trigger"
    made = (await api("POST", path, {"expires": "1ms"}, Idempotency_Key="expires-1")).json["instance"]["id"]

    ended = await api.until_state(made, "CANCELLED")
    why = (await api("GET", f"/api/v1/instances/{made}/why")).json

    assert ended["reason"] == "EXPIRED"
    assert [event["data"]["reason"] for event in ended["timeline"] if event["kind"] == "INSTANCE_CANCELLED"] == [
        "EXPIRED"
    ]
    assert "had not started when it expired" in why["why"]


async def test_a_replay_runs_in_the_queue_of_the_dead_instance_and_does_not_expire(
    api: Client, receiver: Receiver
) -> None:
    job, queue = await given.scripted(api, receiver, Answer(404), Answer(200)), await bulk(api)
    own = {"queue": queue, "priority": "high", "expires": "1h", "concurrencyKey": "k"}
    path = f"/api/v1/jobs/{job['name']}/trigger"
    dead = (await api("POST", path, own, Idempotency_Key="replayed-1")).json["instance"]["id"]
    await api.until_state(dead, "DEAD")
    (letter,) = await given.listed(api, f"/api/v1/dlq?job={job['name']}")

    await api("POST", f"/api/v1/dlq/{letter['id']}/replay")

    made = (await api("GET", f"/api/v1/instances/{dead}")).json["replays"][0]
    again = await api.until_state(made, "SUCCESS")
    assert (again["queue"], again["priority"], again.get("expiresAt")) == (queue, "high", None)
    assert again["concurrencyKey"] == "k"


async def test_a_workflow_takes_none(api: Client) -> None:
    job = await given.job(api)
    body = {"name": given.name("flow"), "nodes": [{"name": "one", "job": job["name"]}]}
    flow = (await api("POST", "/api/v1/workflows", body)).json
    for own in ({"queue": "default"}, {"priority": "low"}, {"expires": "1h"}):
        made = await api("POST", f"/api/v1/jobs/{flow['name']}/trigger", own, Idempotency_Key=f"w-{own}"[:60])
        assert made.status in {404, 422}, made.json
