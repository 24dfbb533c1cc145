"""`POST …/trigger`: once per Idempotency-Key."""

import asyncio
from collections import Counter

import harness
from harness import Client, Reply
from receiver import Answer, Receiver

from api import expect, given
from horai.db.pool import Platform

KEYLESS = "SCH_400_IDEMPOTENCY_KEY_REQUIRED"


async def test_C20_a_trigger_without_an_idempotency_key_is_refused(api: Client, db: Platform) -> None:
    job = await given.job(api)
    before = await expect.contents(db)

    expect.problem(await api("POST", f"/api/v1/jobs/{job['id']}/trigger"), 400, KEYLESS, "Idempotency-Key")

    assert await expect.contents(db) == before


async def test_C20_C45_a_repeated_trigger_answers_with_the_first_instance_and_runs_once(
    api: Client, receiver: Receiver
) -> None:
    job = await given.scripted(api, receiver, Answer(200), payload={"from": "job"})
    path = f"/api/v1/jobs/{job['name']}/trigger"
    first = await api("POST", path, {"payload": {"n": 1}}, Idempotency_Key="click")
    assert first.status == 201
    instance = first.json["instance"]
    assert first.headers["Location"] == f"/api/v1/instances/{instance['id']}"
    await api.until_state(instance["id"], "SUCCESS")

    told = expect.problem(
        await api("POST", path, {"payload": {"n": 1}}, Idempotency_Key="click"), 409, "SCH_409_DUPLICATE"
    )

    assert (told["instanceId"], told["jobId"], told["state"]) == (instance["id"], job["id"], "SUCCESS")
    expect.invalid(await api("POST", path, {"payload": {"n": 2}}, Idempotency_Key="click"), "another body")
    assert len(await given.listed(api, f"/api/v1/jobs/{job['id']}/instances")) == 1
    assert [hit.json["payload"] for hit in given.hits(receiver, job)] == [{"n": 1}]


async def test_C20_a_hundred_parallel_triggers_with_one_key_make_one_instance(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200))
    path = f"/api/v1/jobs/{job['id']}/trigger"

    replies = await asyncio.gather(*(api("POST", path, Idempotency_Key="burst") for _ in range(100)))

    assert Counter(reply.status for reply in replies) == {201: 1, 409: 99}
    made = next(reply.json["instance"]["id"] for reply in replies if reply.status == 201)
    duplicates = [reply.json for reply in replies if reply.status == 409]
    assert {told["instanceId"] for told in duplicates} == {made}
    assert {told["code"] for told in duplicates} == {"SCH_409_DUPLICATE"}
    assert all(told["state"] in {"INIT", "RUNNING", "SUCCESS"} for told in duplicates)
    await api.until_state(made, "SUCCESS")
    assert len(given.hits(receiver, job)) == 1


async def test_C19_a_hundred_parallel_creates_with_one_key_make_one_job(api: Client) -> None:
    body = {"name": given.name(), "every": "1h"}

    async def create() -> Reply:
        """Send the request again while the server has no connection to the database for it, as clients do."""
        while (reply := await api("POST", "/api/v1/jobs", body, Idempotency_Key="create-burst")).status == 503:
            pass
        return reply

    replies = await asyncio.gather(*(create() for _ in range(100)))

    assert Counter(reply.status for reply in replies) == {201: 1, 409: 99}
    assert len({reply.json.get("id") or reply.json["jobId"] for reply in replies}) == 1


async def test_the_same_key_may_be_used_for_another_job(api: Client) -> None:
    for job in (await given.job(api), await given.job(api)):
        assert (await api("POST", f"/api/v1/jobs/{job['id']}/trigger", Idempotency_Key="shared")).status == 201


async def test_a_trigger_without_a_payload_takes_the_jobs_own(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200), payload={"from": "job"})

    done = await api.until_state((await given.triggered(api, job))["id"], "SUCCESS")

    assert done["payload"] == {"from": "job"}
    assert given.hits(receiver, job)[0].json["payload"] == {"from": "job"}


async def test_C20_a_key_is_remembered_after_a_restart(url: str) -> None:
    async with harness.node(url) as api:
        job = await given.job(api)
        first = await given.triggered(api, job, "before")
    async with harness.node(url) as api:
        again = await api("POST", f"/api/v1/jobs/{job['id']}/trigger", Idempotency_Key="before")

    assert expect.problem(again, 409, "SCH_409_DUPLICATE")["instanceId"] == first["id"]
