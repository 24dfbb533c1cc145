"""Secrets of targets and sources go in and never come out."""

from typing import Any

from harness import Client
from receiver import Answer, Receiver

from api import expect, given
from horai.db.pool import Platform

CANARY = "hunter2canary"
QUERY = "select key, execute_time from article where key > $1 order by key limit $2"


def body(receiver: Receiver, **fields: Any) -> dict[str, Any]:
    """A job whose target has secrets in its URL and its headers."""
    name = given.name("secret")
    url = receiver.url(f"/{name}?token={CANARY}")
    return {"name": name, "target": {"type": "http", "url": url, "headers": {"Authorization": CANARY}}, **fields}


async def told(api: Client, db: Platform, *paths: str) -> str:
    """Everything that these paths and the events say."""
    replies = [await api("GET", path) for path in paths]
    assert all(reply.status == 200 for reply in replies), [(reply.status, reply.json) for reply in replies]
    events = await db.fetch("select data::text from horai.event")
    return str([reply.json for reply in replies]) + str(events)


async def test_S6_the_secrets_of_a_target_are_sent_and_never_shown(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = body(receiver)
    receiver.on(f"/{job['name']}", Answer(500), Answer(404))
    made = await api("POST", "/api/v1/jobs", {**job, "retry": given.SOON})
    assert made.status == 201, made.json
    run = await api("POST", f"/api/v1/jobs/{job['name']}/trigger", Idempotency_Key=job["name"])
    instance = run.json["instance"]["id"]
    await api.until_state(instance, "DEAD")
    paused = await api("POST", f"/api/v1/jobs/{job['name']}/pause")
    changed = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"tags": ["a"]})

    hit = receiver.hits[-1]
    assert hit.headers["authorization"] == CANARY
    assert hit.path.endswith(f"?token={CANARY}")
    assert made.json["target"]["headers"] == {"Authorization": "***"}
    assert made.json["target"]["url"].endswith(f"/{job['name']}?token=***")
    seen = await told(
        api, db, "/api/v1/jobs?limit=500&recent=3", f"/api/v1/jobs/{job['name']}", f"/api/v1/instances/{instance}",
        f"/api/v1/instances/{instance}/why", "/api/v1/instances", "/api/v1/dlq", "/api/v1/dlq/faults",
        "/api/v1/scheduler/attention", f"/api/v1/search?q={job['name']}",
    )  # fmt: skip
    assert CANARY not in seen + str([made.json, paused.json, changed.json, run.json])


async def test_S6_a_change_keeps_the_values_that_it_sends_back_as_stars(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = body(receiver)
    made = (await api("POST", "/api/v1/jobs", job)).json
    target = {**made["target"], "method": "PUT", "headers": {**made["target"]["headers"], "X-New": "fresh"}}

    changed = await api("PATCH", f"/api/v1/jobs/{made['id']}", {"target": target})

    assert changed.status == 200, changed.json
    assert changed.json["target"]["headers"] == {"Authorization": "***", "X-New": "***"}
    run = await api("POST", f"/api/v1/jobs/{made['id']}/trigger", Idempotency_Key=job["name"])
    await api.until_state(run.json["instance"]["id"], "SUCCESS")
    hit = receiver.hits[-1]
    assert (hit.method, hit.headers["authorization"], hit.headers["x-new"]) == ("PUT", CANARY, "fresh")
    assert hit.path.endswith(f"?token={CANARY}")


async def test_S6_stars_neither_create_a_header_nor_carry_one_to_another_host(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = body(receiver)
    made = (await api("POST", "/api/v1/jobs", job)).json

    clone = await api("POST", "/api/v1/jobs", {"name": given.name("clone"), "target": made["target"]})
    moved = await api(
        "PATCH", f"/api/v1/jobs/{made['id']}", {"target": {**made["target"], "url": "https://evil.example/"}}
    )

    expect.invalid(clone, "target.headers", "target.url", "none to keep")
    expect.invalid(moved, "target.headers", "none to keep")
    assert (await api("GET", f"/api/v1/jobs/{made['id']}")).json["version"] == made["version"]


async def test_S6_deleting_a_job_wipes_the_secrets_of_its_target(api: Client, db: Platform, receiver: Receiver) -> None:
    job = body(receiver)
    made = (await api("POST", "/api/v1/jobs", job)).json
    stored = "select definition::text from horai.job where id = $1"
    assert CANARY in await db.fetchval(stored, int(made["id"]))

    assert (await api("DELETE", f"/api/v1/jobs/{made['id']}")).status == 204

    assert CANARY not in await db.fetchval(stored, int(made["id"]))


async def test_S6_the_secrets_of_a_source_are_kept_by_stars_and_wiped_with_the_reconciler(
    api: Client, db: Platform
) -> None:
    job = await given.job(api)
    sql = {"type": "sql", "query": QUERY, "databaseUrl": f"postgresql://u:{CANARY}@db.example/shop"}
    http = {"type": "http", "url": f"https://example.com/w?t={CANARY}", "headers": {"Authorization": CANARY}}
    stored = "select source::text from horai.reconciler where id = $1"
    for source in (sql, http):
        name = given.name("desk")
        made = await api("POST", "/api/v1/reconcilers", {"name": name, "job": job["name"], "source": source})
        assert made.status == 201, made.json
        number = int(made.json["id"])
        before = await db.fetchval(stored, number)

        changed = await api("PATCH", f"/api/v1/reconcilers/{name}", {"source": made.json["source"]})

        assert changed.status == 200, changed.json
        assert await db.fetchval(stored, number) == before
        other = {"name": given.name("desk"), "job": job["name"], "source": made.json["source"]}
        expect.invalid(await api("POST", "/api/v1/reconcilers", other), "none to keep")
        seen = await told(api, db, "/api/v1/reconcilers?limit=500", f"/api/v1/reconcilers/{name}")
        assert CANARY not in seen + str([made.json, changed.json])
        assert (await api("DELETE", f"/api/v1/reconcilers/{name}")).status == 204
        assert CANARY not in await db.fetchval(stored, number)
