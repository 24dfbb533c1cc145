"""`POST …/instances/batch`: up to 10,000 instances in one transaction."""

import asyncio
import io
from collections import Counter
from typing import Any

from harness import Client, Reply
from receiver import HANG, Answer, Receiver

from api import expect, given
from horai.db.pool import Platform


async def batch(api: Client, job: Any, items: list[Any]) -> Reply:
    return await api("POST", f"/api/v1/jobs/{job['name']}/instances/batch", {"items": items})


async def test_a_batch_is_answered_item_by_item_in_its_order(api: Client, db: Platform) -> None:
    job = await given.job(api, payload={"of": "job"})
    old = (await given.put(api, job, "b")).json["instance"]

    reply = await batch(
        api,
        job,
        [
            {"key": "a", "executeTime": given.FAR, "payload": {"n": 1}},
            {"executeTime": given.FAR},
            {"key": "b", "executeTime": "2999-02-02T00:00:00Z"},
            {"executeTime": given.FAR, "payload": [1, 2]},
            {"key": "a", "executeTime": "2999-03-03T00:00:00Z"},
        ],
    )

    assert reply.status == 200
    answers = reply.json["items"]
    assert [(a["decision"], a["key"]) for a in answers] == [
        ("INSERTED", "a"),
        ("INSERTED", None),
        ("UPDATED", "b"),
        ("INSERTED", None),
        ("UPDATED", "a"),
    ]
    assert answers[0]["instanceId"] == answers[4]["instanceId"]
    assert answers[2]["instanceId"] == old["id"]
    made = [await given.read(api, {"id": answer["instanceId"]}) for answer in answers]
    assert [instance["payload"] for instance in made] == [
        {"n": 1}, {"of": "job"}, {"of": "job"}, [1, 2], {"n": 1},
    ]  # fmt: skip
    assert made[0]["executeTime"].startswith("2999-03-03")
    assert len(await given.listed(api, f"/api/v1/jobs/{job['id']}/instances")) == 4


async def test_a_batch_follows_the_rules_of_put_for_what_runs_and_what_is_done(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200), HANG, timeout="30s")
    done = await api.until_state((await given.put(api, job, "done", None)).json["instance"]["id"], "SUCCESS")
    runs = await given.running(api, receiver, job, "runs")

    reply = await batch(api, job, [{"key": key, "executeTime": given.FAR} for key in ("done", "runs", "new")])

    answers = reply.json["items"]
    assert [a["decision"] for a in answers] == ["IGNORED", "SUPERSEDED", "INSERTED"]
    assert answers[0]["instanceId"] == done["id"]
    assert (await given.read(api, {"id": answers[1]["instanceId"]}))["supersedes"] == runs["id"]


async def test_a_batch_without_times_runs_now(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200))

    reply = await batch(api, job, [{"payload": {"n": n}} for n in range(5)])

    for item in reply.json["items"]:
        await api.until_state(item["instanceId"], "SUCCESS")
    assert sorted(hit.json["payload"]["n"] for hit in given.hits(receiver, job)) == [0, 1, 2, 3, 4]


async def test_ten_thousand_instances_fit_into_one_batch_and_no_more(api: Client, db: Platform) -> None:
    job = await given.job(api)
    items = [{"key": f"k{n}", "executeTime": given.FAR} for n in range(10_000)]

    reply = await batch(api, job, items)

    assert reply.status == 200
    assert len({item["instanceId"] for item in reply.json["items"]}) == 10_000
    before = await expect.contents(db, job)
    expect.invalid(await batch(api, job, [*items, {"key": "one more"}]), "10000")
    expect.invalid(await batch(api, job, []))
    assert await expect.contents(db, job) == before


async def test_parallel_batches_of_the_same_keys_in_any_order_all_succeed(api: Client, db: Platform) -> None:
    job = await given.job(api)
    keys = [f"k{n}" for n in range(60)]

    async def send(step: int) -> Reply:
        order = sorted(keys, key=lambda key: hash((key, step)))
        return await batch(api, job, [{"key": key, "executeTime": f"2999-01-0{step}T00:00:00Z"} for key in order])

    replies = await asyncio.gather(*(send(step) for step in range(1, 9)))

    assert [reply.status for reply in replies] == [200] * 8
    decisions = Counter(item["decision"] for reply in replies for item in reply.json["items"])
    assert decisions == {"INSERTED": 60, "UPDATED": 7 * 60}
    assert await db.fetchval("select count(*) from horai.instance_live where job_id = $1", int(job["id"])) == 60


async def test_one_key_many_times_in_one_batch_is_decided_in_order(api: Client) -> None:
    job = await given.job(api)

    reply = await batch(api, job, [{"key": "a", "executeTime": f"2999-01-01T00:{n:02}:00Z"} for n in range(50)])

    assert len({item["instanceId"] for item in reply.json["items"]}) == 1
    now = await given.read(api, {"id": reply.json["items"][0]["instanceId"]})
    assert now["executeTime"] == "2999-01-01T00:49:00Z"
    assert len(now["timeline"]) == 49


async def test_one_bad_item_leaves_nothing_of_a_batch(api: Client, db: Platform) -> None:
    job = await given.job(api)
    before = await expect.contents(db)
    good = {"key": "good", "executeTime": given.FAR}

    for bad, field in (
        ({"key": "x" * 513}, "items.1.key"),
        ({"key": ""}, "items.1.key"),
        ({"executeTime": "tomorrow"}, "items.1.executeTime"),
        ({"key": 7}, "items.1.key"),
        ({"version": 1}, "items.1.version"),
        ([], "items.1"),
        (None, "items.1"),
    ):
        told = expect.invalid(await batch(api, job, [good, bad]))
        assert told["errors"][0]["field"] == field
    large = b'{"items": [{"key": "good"}, {"payload": "%s"}]}' % (b"x" * 1024 * 1024)
    reply = await given.sent(api, "POST", f"/api/v1/jobs/{job['name']}/instances/batch", io.BytesIO(large))
    expect.problem(reply, 413, "SCH_413_TOO_LARGE", "payload")

    assert await expect.contents(db) == before
