"""Dead letters of one instance, the trend of a fault, and many letters discarded at once."""

from typing import Any

import pytest
from harness import Client
from receiver import Answer, Receiver

from api import expect, given
from api.test_dlq import DLQ, dead, letters, replay
from horai.db.pool import Platform


async def discard(api: Client, job: Any, **wish: Any) -> Any:
    reply = await api("POST", f"{DLQ}/discard", {"job": job["name"], "reason": "closed", **wish})
    assert reply.status == 200, reply.json
    return reply.json


async def test_the_letter_of_an_instance_is_found_by_it(api: Client, receiver: Receiver) -> None:
    job, found = await dead(api, receiver, count=3)

    assert await letters(api, job, instance=found[1]["instanceId"]) == [found[1]]
    assert (await api("GET", f"{DLQ}?instance=999999999")).json["items"] == []
    assert (await replay(api, job, instance=found[1]["instanceId"], dryRun=True)).json["matched"] == 1
    expect.invalid(await api("GET", f"{DLQ}?instance=x"), "instance")


async def test_a_fault_tells_how_often_it_came_in_each_hour_of_the_last_day(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job, found = await dead(api, receiver, Answer(404), count=4)
    for letter, ago in zip(found, ("0 minutes", "90 minutes", "100 minutes", "30 hours"), strict=True):
        await db.execute(
            f"update horai.dead_letter set created_at = clock_timestamp() - interval '{ago}' where id = $1",
            int(letter["id"]),
        )

    (fault,) = (await api("GET", f"{DLQ}/faults?job={job['name']}")).json["items"]

    assert fault["letters"] == 4
    assert (len(fault["lastDay"]), sum(fault["lastDay"]), fault["lastDay"][-2:]) == (24, 3, [2, 1])


async def test_letters_that_match_are_discarded_with_their_reason_and_the_rest_stays(
    api: Client, receiver: Receiver
) -> None:
    job, found = await dead(api, receiver, Answer(404), *[Answer(503)] * 3, count=4)
    of_fault = {"errorCode": "HTTP_503"}

    dry = await discard(api, job, **of_fault, dryRun=True, reason=None)
    done = await discard(api, job, **of_fault, limit=2)
    rest = await discard(api, job, **of_fault)

    assert dry == {"matched": 3, "discarded": 0, "more": False, "dryRun": True}
    assert done == {"matched": 2, "discarded": 2, "more": True, "dryRun": False}
    assert (rest["discarded"], rest["more"]) == (1, False)
    told = (await letters(api, job))[::-1]
    assert [letter["replayStatus"] for letter in told] == ["NEW", *["DISCARDED"] * 3]
    assert {letter["reason"] for letter in told[1:]} == {"closed"}
    timeline = (await given.read(api, {"id": found[2]["instanceId"]}))["timeline"]
    assert (timeline[-1]["kind"], timeline[-1]["data"]["reason"]) == ("INSTANCE_DISCARDED", "closed")


async def test_a_dead_letter_locked_by_another_transaction_is_not_discarded(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job, found = await dead(api, receiver, count=2)
    held = db.transaction()
    await held.start()
    await db.execute("select from horai.dead_letter where id = $1 for update", int(found[0]["id"]))

    done = await discard(api, job)
    await held.rollback()

    assert (done["discarded"], done["more"]) == (1, True)
    assert [letter["replayStatus"] for letter in await letters(api, job, status="NEW")] == ["NEW"]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"reason": "r"}, "everything"),
        ({"dryRun": True}, "everything"),
        ({"tag": "t"}, "reason"),
        ({"tag": "t", "reason": ""}, "reason"),
        ({"tag": "t", "reason": "r", "limit": 10_001}, "limit"),
        ({"tag": "t", "reason": "r", "rate": "1/s"}, "unknown field"),
    ],
)
async def test_a_discard_that_makes_no_sense_is_refused(api: Client, body: Any, word: str) -> None:
    expect.invalid(await api("POST", f"{DLQ}/discard", body), word)


async def test_letters_that_were_selected_are_replayed_or_discarded_and_no_others(
    api: Client, receiver: Receiver
) -> None:
    job, found = await dead(api, receiver, Answer(404), *[Answer(503)] * 3, count=4)
    ids = [letter["id"] for letter in found]

    counted = (await replay(api, job, ids=ids[:2], dryRun=True)).json
    replayed = (await replay(api, job, ids=ids[:2], rate="10/s")).json
    repeated = (await replay(api, job, ids=ids[:2])).json
    both = (await api("POST", f"{DLQ}/discard", {"ids": ids, "errorCode": "HTTP_404", "reason": "closed"})).json
    alone = (await api("POST", f"{DLQ}/discard", {"ids": [ids[2], "999999999"], "reason": "closed"})).json

    assert (counted["matched"], replayed["replayed"], repeated["matched"]) == (2, 2, 0)
    assert (both["discarded"], alone["discarded"]) == (0, 1)
    status = {letter["id"]: letter["replayStatus"] for letter in await letters(api, job)}
    assert [status[each] for each in ids] == ["REPLAYED", "REPLAYED", "DISCARDED", "NEW"]
    expect.invalid(await api("POST", f"{DLQ}/discard", {"ids": [], "reason": "x"}), "ids")
    expect.invalid(await api("POST", f"{DLQ}/replay", {"ids": ["one"]}), "ids.0")


async def test_letters_of_another_tenant_are_not_selected(api: Client, receiver: Receiver, db: Platform) -> None:
    job, found = await dead(api, receiver, count=1)
    other = await db.fetchval("insert into horai.tenant (name) values ($1) returning id", given.name("tenant"))
    await db.execute("update horai.dead_letter set tenant_id = $1 where id = $2", other, int(found[0]["id"]))

    assert (await replay(api, job, ids=[found[0]["id"]], dryRun=True)).json["matched"] == 0
    done = await api("POST", f"{DLQ}/discard", {"ids": [found[0]["id"]], "reason": "closed"})

    assert done.json["discarded"] == 0
    await db.execute("update horai.dead_letter set tenant_id = 1 where id = $1", int(found[0]["id"]))
