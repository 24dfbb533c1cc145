"""`unique` and `debounce` over REST: items of a batch, and triggers."""

import asyncio
from collections import Counter
from typing import Any

from harness import Client, Reply
from receiver import Answer, Receiver

from api import expect, given
from horai.db.pool import Platform


async def batch(api: Client, job: Any, *items: Any) -> Reply:
    return await api("POST", f"/api/v1/jobs/{job['name']}/instances/batch", {"items": list(items)})


async def test_items_with_equal_payloads_share_an_instance(api: Client, db: Platform) -> None:
    job = await given.job(api)
    one, other = {"n": 1, "m": [2]}, {"m": [2], "n": 1}

    reply = await batch(
        api,
        job,
        {"payload": one, "unique": True, "executeTime": given.FAR},
        {"payload": other, "unique": "10m"},
        {"payload": one, "unique": False, "executeTime": given.FAR},
        {"payload": one, "debounce": "1h"},
        {"payload": other, "debounce": "2h"},
        {"payload": {"n": 2}, "unique": "1s", "executeTime": given.FAR},
    )

    assert reply.status == 200, reply.json
    answers = reply.json["items"]
    assert [a["decision"] for a in answers] == ["INSERTED", "IGNORED", "INSERTED", "INSERTED", "UPDATED", "INSERTED"]
    ids = [a["instanceId"] for a in answers]
    assert (ids[0], ids[3], len(set(ids))) == (ids[1], ids[4], 4)
    assert (await batch(api, job, {"payload": other, "unique": True})).json["items"][0]["instanceId"] == ids[0]
    assert await db.fetchval("select count(*) from horai.instance_live where job_id = $1", int(job["id"])) == 4


async def test_a_batch_with_a_wrong_window_writes_nothing(api: Client, db: Platform) -> None:
    job = await given.job(api)
    before = await expect.contents(db)

    for item, said in (
        ({"unique": "soon"}, "items.1.unique"),
        ({"unique": "8d"}, "items.1.unique"),
        ({"unique": 10}, "items.1.unique"),
        ({"unique": True, "key": "k"}, "items.1.unique: cannot be combined with key"),
        ({"unique": True, "debounce": "1s"}, "items.1.debounce: cannot be combined with unique"),
        ({"debounce": "1s", "executeTime": given.FAR}, "items.1.debounce: cannot be combined with executeTime"),
        ({"debounce": True}, "items.1.debounce"),
    ):
        expect.invalid(await batch(api, job, {"payload": 1}, item), said)

    assert await expect.contents(db) == before


async def test_a_unique_trigger_answers_with_the_instance_of_the_first(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200))
    path, body = f"/api/v1/jobs/{job['name']}/trigger", {"payload": {"n": 1}, "unique": "10m"}
    first = await api("POST", path, body, Idempotency_Key="a")
    made = first.json["instance"]["id"]
    await api.until_state(made, "SUCCESS")

    second = await api("POST", path, body, Idempotency_Key="b")

    assert (first.status, second.status, second.json["instance"]["id"]) == (201, 200, made)
    assert second.json["instance"]["state"] == "SUCCESS"
    assert second.headers["Location"] == f"/api/v1/instances/{made}"
    told = expect.problem(await api("POST", path, body, Idempotency_Key="b"), 409, "SCH_409_DUPLICATE")
    assert told["instanceId"] == made
    other = await api("POST", path, {**body, "payload": {"n": 2}}, Idempotency_Key="c")
    assert other.status == 201
    await api.until_state(other.json["instance"]["id"], "SUCCESS")
    assert len(given.hits(receiver, job)) == 2
    expect.invalid(await api("POST", path, {"unique": "soon"}, Idempotency_Key="d"), "unique")


async def test_a_hundred_unique_triggers_at_once_make_one_instance(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200))
    path = f"/api/v1/jobs/{job['id']}/trigger"

    replies = await asyncio.gather(
        *(api("POST", path, {"unique": "1h"}, Idempotency_Key=f"click {n}") for n in range(100))
    )

    assert Counter(reply.status for reply in replies) == {201: 1, 200: 99}
    (made,) = {reply.json["instance"]["id"] for reply in replies}
    await api.until_state(made, "SUCCESS")
    assert len(given.hits(receiver, job)) == 1


async def test_only_a_trigger_that_adds_an_instance_is_audited(api: Client, db: Platform) -> None:
    job = await given.job(api)
    path = f"/api/v1/jobs/{job['name']}/trigger"
    for number in range(3):
        assert (await api("POST", path, {"unique": "1h"}, Idempotency_Key=str(number))).status in {200, 201}

    assert (
        await db.fetchval("select count(*) from horai.audit where verb = 'job.trigger' and object_id = $1", job["id"])
        == 1
    )
