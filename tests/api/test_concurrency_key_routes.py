"""`concurrencyKey` over REST: batches, puts, triggers, explanations, and replays that keep it."""

from typing import Any

from harness import Client
from receiver import Answer, Receiver

from api import expect, given
from horai.db.pool import Platform


async def test_an_instance_has_the_key_of_its_request(api: Client) -> None:
    job = await given.job(api, concurrencyPerKey=2)
    name = job["name"]
    assert job["concurrencyPerKey"] == 2

    items = [
        {"concurrencyKey": "a", "executeTime": given.FAR},
        {"key": "k", "concurrencyKey": "b", "executeTime": given.FAR},
    ]
    made = (await api("POST", f"/api/v1/jobs/{name}/instances/batch", {"items": items})).json["items"]
    shown = [(await api("GET", f"/api/v1/instances/{each['instanceId']}")).json["concurrencyKey"] for each in made]
    assert shown == ["a", "b"]
    put = await api("PUT", f"/api/v1/jobs/{name}/instances/k", {"executeTime": given.FAR, "concurrencyKey": "c"})
    assert (put.json["decision"], put.json["instance"]["concurrencyKey"]) == ("UPDATED", "c")
    fresh = await api("PUT", f"/api/v1/jobs/{name}/instances/k2", {"executeTime": given.FAR, "concurrencyKey": "d"})
    assert (fresh.json["decision"], fresh.json["instance"]["concurrencyKey"]) == ("INSERTED", "d")
    kept = await api("PUT", f"/api/v1/jobs/{name}/instances/k2", {"executeTime": given.FAR})
    assert kept.json["instance"]["concurrencyKey"] == "d"
    triggered = await api("POST", f"/api/v1/jobs/{name}/trigger", {"concurrencyKey": "e"}, Idempotency_Key="1")
    assert (triggered.status, triggered.json["instance"]["concurrencyKey"]) == (201, "e")
    listed = (await api("GET", f"/api/v1/jobs/{name}/instances")).json["items"]
    assert sorted(each["concurrencyKey"] for each in listed) == ["a", "c", "d", "e"]


async def of_job(db: Platform, job: Any) -> tuple[str, int]:
    """Return the row of a job as text, and the number of its instances. Instances of other tests change meanwhile."""
    stored = await db.fetchval("select own::text from horai.job own where id = $1", int(job["id"]))
    return stored, await db.fetchval("select count(*) from horai.job_instance where job_id = $1", int(job["id"]))


async def test_a_wrong_key_or_limit_is_refused_and_writes_nothing(api: Client, db: Platform) -> None:
    job = await given.job(api)
    before = await of_job(db, job)
    path = f"/api/v1/jobs/{job['name']}"

    for wrong in ("", "x" * 513, 7):
        expect.invalid(
            await api("POST", f"{path}/instances/batch", {"items": [{"concurrencyKey": wrong}]}),
            "items.0.concurrencyKey",
        )
        expect.invalid(await api("PUT", f"{path}/instances/k", {"concurrencyKey": wrong}), "concurrencyKey")
    for wrong in (0, 1001, -1):
        expect.invalid(await api("PATCH", path, {"concurrencyPerKey": wrong}), "concurrencyPerKey")
    assert await of_job(db, job) == before


async def test_the_explanation_names_the_key_and_the_instance_that_holds_it(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(202), timeout="1h")
    path = f"/api/v1/jobs/{job['name']}"
    body: dict[str, Any] = {"items": [{"concurrencyKey": "customer-7"}]}
    (first,) = (await api("POST", f"{path}/instances/batch", body)).json["items"]
    await api.until_state(first["instanceId"], "RUNNING")
    (second,) = (await api("POST", f"{path}/instances/batch", body)).json["items"]

    why = (await api("GET", f"/api/v1/instances/{second['instanceId']}/why")).json

    assert [hold["kind"] for hold in why["holds"]] == ["CONCURRENCY_KEY"]
    assert why["verdict"] == "HELD"
    assert "customer-7" in why["why"]
    assert first["instanceId"] in why["why"]


async def test_a_replay_has_the_key_of_the_dead_instance(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(404), Answer(200))
    path = f"/api/v1/jobs/{job['name']}/trigger"
    dead = (await api("POST", path, {"concurrencyKey": "customer-7"}, Idempotency_Key="1")).json["instance"]["id"]
    await api.until_state(dead, "DEAD")
    (letter,) = await given.listed(api, f"/api/v1/dlq?job={job['name']}")

    replayed = await api("POST", f"/api/v1/dlq/{letter['id']}/replay")

    assert replayed.status in {200, 201, 202}, replayed.json
    made = (await api("GET", f"/api/v1/instances/{dead}")).json["replays"][0]
    again = await api.until_state(made, "SUCCESS")
    assert again["concurrencyKey"] == "customer-7"


async def test_a_workflow_takes_no_key(api: Client) -> None:
    job = await given.job(api)
    body = {"name": given.name("flow"), "nodes": [{"name": "one", "job": job["name"]}]}
    flow = (await api("POST", "/api/v1/workflows", body)).json

    refused = await api("POST", f"/api/v1/jobs/{flow['name']}/trigger", {"concurrencyKey": "a"}, Idempotency_Key="1")

    assert refused.status in {404, 422}, refused.json
