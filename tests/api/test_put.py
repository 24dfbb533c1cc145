"""`PUT …/instances/{key}`: create or reschedule by the rules of seed 000."""

import asyncio
import itertools
import json
from collections import Counter
from datetime import datetime
from typing import Any

from harness import Client
from receiver import HANG, Answer, Receiver

from api import expect, given
from horai.db.pool import Platform

LATER = "2999-06-01T00:00:00Z"


def is_at(instance: Any, at: str) -> bool:
    return datetime.fromisoformat(instance["executeTime"]) == datetime.fromisoformat(at)


async def test_B1_an_execute_time_with_any_offset_keeps_its_milliseconds(api: Client, db: Platform) -> None:
    job = await given.job(api)

    made = await given.put(api, job, "a", "2999-07-01T17:30:00.123+08:00")

    assert (made.status, made.json["decision"]) == (201, "INSERTED")
    assert is_at(made.json["instance"], "2999-07-01T09:30:00.123Z")
    assert made.json["instance"]["executeTime"].endswith("Z")
    stored = await db.fetchval(
        "select execute_time from horai.job_instance where instance_id = $1", int(made.json["instance"]["id"])
    )
    assert stored == datetime.fromisoformat("2999-07-01T09:30:00.123Z")


async def test_A2_fifty_concurrent_puts_of_one_key_make_one_live_instance(api: Client, db: Platform) -> None:
    job = await given.job(api)

    replies = await asyncio.gather(*(given.put(api, job, "article:42", payload={"n": n}) for n in range(50)))

    assert Counter(reply.json["decision"] for reply in replies) == {"INSERTED": 1, "UPDATED": 49}
    assert len({reply.json["instance"]["id"] for reply in replies}) == 1
    rows = await db.fetchval("select count(*) from horai.job_instance where job_id = $1", int(job["id"]))
    assert rows == 1


async def test_A5_A7_a_put_moves_a_waiting_instance_and_keeps_its_id(api: Client, db: Platform) -> None:
    job = await given.job(api)
    first = (await given.put(api, job, "a", payload={"v": 1})).json["instance"]

    moved = await given.put(api, job, "a", LATER)
    again = await given.put(api, job, "a", "2999-07-01T00:00:00Z", payload={"v": 2})

    assert (moved.status, moved.json["decision"]) == (200, "UPDATED")
    assert moved.json["instance"]["id"] == again.json["instance"]["id"] == first["id"]
    assert is_at(moved.json["instance"], LATER)
    assert moved.json["instance"]["payload"] == {"v": 1}
    assert again.json["instance"]["payload"] == {"v": 2}
    assert moved.json["instance"]["idempotencyKey"] == first["idempotencyKey"]
    assert await db.fetchval("select count(*) from horai.job_instance where job_id = $1", int(job["id"])) == 1
    timeline = (await given.read(api, first))["timeline"]
    assert [event["kind"] for event in timeline] == ["INSTANCE_RESCHEDULED"] * 2


async def test_A6_a_put_moves_a_failed_instance_and_keeps_its_retry_count(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(503, headers={"Retry-After": "3600"}))
    first = (await given.put(api, job, "a", None)).json["instance"]
    failed = await api.until_state(first["id"], "FAIL")

    moved = await given.put(api, job, "a", LATER)

    assert moved.json["decision"] == "UPDATED"
    now = moved.json["instance"]
    assert (now["id"], now["state"], now["retryCount"]) == (first["id"], "FAIL", failed["retryCount"])
    assert is_at(now, LATER)


async def test_A8_A9_a_put_cancels_and_replaces_a_running_instance_in_one_transaction(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job = await given.scripted(api, receiver, HANG, timeout="30s")
    old = await given.running(api, receiver, job, "a", payload={"v": 1})

    reply = await given.put(api, job, "a", LATER)

    assert (reply.status, reply.json["decision"]) == (201, "SUPERSEDED")
    new = reply.json["instance"]
    assert (new["state"], new["supersedes"], new["payload"]) == ("INIT", old["id"], {"v": 1})
    assert is_at(new, LATER)
    gone = await given.read(api, old)
    assert (gone["state"], gone["reason"]) == ("CANCELLED", "SUPERSEDED")
    assert gone["executeTime"] == old["executeTime"]
    transactions = await db.fetch(
        "select xmin::text from horai.instance_history where id = $1 "
        "union select xmin::text from horai.instance_live where id = $2 "
        "union select xmin::text from horai.event where instance_id = $1",
        int(old["id"]),
        int(new["id"]),
    )
    assert len(transactions) == 1


async def test_A10_a_put_does_not_change_a_succeeded_instance(api: Client, receiver: Receiver, db: Platform) -> None:
    job = await given.scripted(api, receiver, Answer(200))
    done = await api.until_state((await given.put(api, job, "a", None)).json["instance"]["id"], "SUCCESS")
    before = await expect.contents(db, job)

    ignored = await given.put(api, job, "a", LATER)

    assert (ignored.status, ignored.json["decision"]) == (200, "IGNORED")
    assert (ignored.json["instance"]["id"], ignored.json["instance"]["state"]) == (done["id"], "SUCCESS")
    assert await expect.contents(db, job) == before


async def test_again_runs_a_key_once_more_after_success(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200))
    done = await api.until_state((await given.put(api, job, "a", None)).json["instance"]["id"], "SUCCESS")

    again = await given.put(api, job, "a", None, again=True)

    assert again.json["decision"] == "INSERTED"
    assert again.json["instance"]["id"] != done["id"]
    await api.until_state(again.json["instance"]["id"], "SUCCESS")


async def test_A4_rescheduling_never_alters_what_is_finished(api: Client, receiver: Receiver, db: Platform) -> None:
    script = [Answer(503), Answer(200), Answer(503, headers={"Retry-After": "3600"})]
    job = await given.scripted(api, receiver, *script, retry=given.SOON)
    await api.until_state((await given.put(api, job, "a", None)).json["instance"]["id"], "SUCCESS")
    failing = (await given.put(api, job, "a", None, again=True)).json["instance"]
    await api.until_state(failing["id"], "FAIL")
    before = await expect.contents(db, job)

    for month in ("02", "03", "04"):
        assert (await given.put(api, job, "a", f"2999-{month}-01T00:00:00Z")).json["decision"] == "UPDATED"

    after = await expect.contents(db, job)
    assert [after[table] for table in ("instance_history", "attempt")] == [
        before[table] for table in ("instance_history", "attempt")
    ]
    assert set(before["event"]) < set(after["event"])


async def test_A13_X2_a_cancel_neither_waits_for_nor_aborts_the_request_and_its_result_is_kept_as_late(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job = await given.scripted(api, receiver, Answer(200, delay=0.7))
    run = await given.running(api, receiver, job, "a")

    cancelled = await api("POST", f"/api/v1/instances/{run['id']}/cancel")

    assert cancelled.status == 200
    told = await given.read(api, run)
    assert (told["state"], told["reason"], len(told["attempts"])) == ("CANCELLED", "USER", 1)
    late = await given.until(lambda: _late(api, run))
    assert (late["outcome"], late["attempt"]) == ("SUCCESS", 1)
    now = await given.read(api, run)
    assert (now["state"], now["timeline"][-1]["kind"]) == ("CANCELLED", "INSTANCE_LATE_RESULT")
    assert now["finishedAt"] == told["finishedAt"]


async def _late(api: Client, instance: Any) -> Any:
    return next((attempt for attempt in (await given.read(api, instance))["attempts"] if attempt["late"]), None)


async def test_A14_a_superseded_run_and_its_successor_carry_the_same_unit_and_a_growing_fence(
    api: Client, receiver: Receiver
) -> None:
    job = await given.scripted(api, receiver, Answer(200, delay=0.4), Answer(200))
    await given.running(api, receiver, job, "a")

    new = (await given.put(api, job, "a", None)).json["instance"]
    await api.until_state(new["id"], "SUCCESS")

    first, second = given.hits(receiver, job)
    assert first.headers["horai-unit"] == second.headers["horai-unit"]
    assert first.headers["idempotency-key"] != second.headers["idempotency-key"]
    assert int(first.headers["horai-fence"]) < int(second.headers["horai-fence"])


async def test_A16_after_a_hundred_reschedules_the_history_is_one_readable_chain(
    api: Client, receiver: Receiver
) -> None:
    job = await given.scripted(api, receiver, HANG, timeout="30s")
    for month in (1, 2, 3):
        for minute in range(33):
            await given.put(api, job, "a", f"2999-0{month}-01T00:{minute:02}:00.500Z")
        if month < 3:
            await given.running(api, receiver, job, "a")
    reply = await given.put(api, job, "a", "2999-03-01T00:33:00.500Z")
    assert reply.json["decision"] == "UPDATED"

    chain = [await given.read(api, reply.json["instance"])]
    while chain[-1]["supersedes"]:
        chain.append(await given.read(api, {"id": chain[-1]["supersedes"]}))

    rows = await given.listed(api, f"/api/v1/jobs/{job['id']}/instances?key=a")
    assert {row["id"] for row in rows} == {link["id"] for link in chain}
    assert [(link["state"], link["reason"]) for link in chain] == [
        ("INIT", None),
        ("CANCELLED", "SUPERSEDED"),
        ("CANCELLED", "SUPERSEDED"),
    ]
    for link in chain:
        timeline = link["timeline"]
        assert [event["seq"] for event in timeline] == list(range(1, len(timeline) + 1))
        moves = [event["data"] for event in timeline if event["kind"] == "INSTANCE_RESCHEDULED"]
        assert len(moves) >= 30
        for before, after in itertools.pairwise(moves):
            assert datetime.fromisoformat(after["was"]) == datetime.fromisoformat(before["executeTime"])
    assert is_at(chain[0], "2999-03-01T00:33:00.500Z")


async def test_X1_a_dead_key_gets_a_new_instance_and_its_dead_letter_is_superseded(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job = await given.scripted(api, receiver, Answer(400))
    dead = await api.until_state((await given.put(api, job, "a", None)).json["instance"]["id"], "DEAD")

    new = await given.put(api, job, "a", LATER)

    assert (new.status, new.json["decision"]) == (201, "INSERTED")
    assert new.json["instance"]["id"] != dead["id"]
    letter = await db.fetchval("select replay_status from horai.dlq_entry where instance_id = $1", int(dead["id"]))
    assert letter == "SUPERSEDED"


async def test_a_cancelled_key_gets_a_new_instance(api: Client) -> None:
    job = await given.job(api)
    first = (await given.put(api, job, "a")).json["instance"]

    cancelled = await api("DELETE", f"/api/v1/jobs/{job['id']}/instances/a")

    assert cancelled.json["instance"]["id"] == first["id"]
    assert (cancelled.json["instance"]["state"], cancelled.json["instance"]["reason"]) == ("CANCELLED", "USER")
    expect.problem(await api("DELETE", f"/api/v1/jobs/{job['id']}/instances/a"), 404, "SCH_404_NOT_FOUND")
    new = await given.put(api, job, "a")
    assert (new.json["decision"], new.json["instance"]["id"] != first["id"]) == ("INSERTED", True)


async def test_cancelling_twice_changes_nothing_and_what_is_finished_cannot_be_cancelled(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job = await given.scripted(api, receiver, Answer(200))
    waiting = (await given.put(api, job, "a")).json["instance"]
    done = await api.until_state((await given.triggered(api, job))["id"], "SUCCESS")
    path = f"/api/v1/instances/{waiting['id']}/cancel"
    first = await api("POST", path)
    before = await expect.contents(db, job)

    second = await api("POST", path)
    refused = await api("POST", f"/api/v1/instances/{done['id']}/cancel")

    assert first.json == second.json
    told = expect.problem(refused, 409, "SCH_409_FINAL")
    assert (told["instanceId"], told["state"]) == (done["id"], "SUCCESS")
    assert await expect.contents(db, job) == before


async def test_a_lower_version_is_ignored_and_an_equal_one_is_not(api: Client, db: Platform) -> None:
    job = await given.job(api)
    assert (await given.put(api, job, "a", version=5)).json["instance"]["version"] == 5
    before = await expect.contents(db, job)

    lower = await given.put(api, job, "a", LATER, version=4)

    assert lower.json["decision"] == "IGNORED"
    assert await expect.contents(db, job) == before
    assert (await given.put(api, job, "a", LATER, version=5)).json["decision"] == "UPDATED"
    assert (await given.put(api, job, "a", version=6)).json["instance"]["version"] == 6
    unversioned = await given.put(api, job, "a")
    assert (unversioned.json["decision"], unversioned.json["instance"]["version"]) == ("UPDATED", 6)


async def test_a_version_outlives_the_instance_that_accepted_it(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, HANG, timeout="30s")
    await given.put(api, job, "a", version=5)
    await api("DELETE", f"/api/v1/jobs/{job['id']}/instances/a")

    assert (await given.put(api, job, "a", version=4)).json["decision"] == "IGNORED"
    assert (await given.put(api, job, "a", None, version=5)).json["decision"] == "INSERTED"
    await given.until(lambda: _is_running(api, job))
    assert (await given.put(api, job, "a", LATER, version=4)).json["decision"] == "IGNORED"
    assert (await given.put(api, job, "a", LATER)).json["instance"]["version"] == 5


async def _is_running(api: Client, job: Any) -> Any:
    return (await api("GET", f"/api/v1/jobs/{job['id']}/instances?state=RUNNING")).json["items"]


async def test_a_key_may_hold_anything_that_a_path_can_carry(api: Client) -> None:
    job = await given.job(api)
    path = f"{api.base}/api/v1/jobs/{job['name']}/instances/"
    for written, key in (
        ("a/b", "a/b"),
        ("a%2Fb%3F", "a/b?"),
        ("batch", "batch"),
        ("%E4%B8%AD%20x", "中 x"),
        ("%F0%9F%98%80", "😀"),
        ("k" * 512, "k" * 512),
    ):
        body = json.dumps({"executeTime": given.FAR}).encode()
        reply = await api.raw("PUT", path.removeprefix(api.base) + written, body)
        assert (reply.status, reply.json["instance"]["key"]) in {(201, key), (200, key)}
    found = await given.listed(api, f"/api/v1/jobs/{job['id']}/instances")
    assert {row["key"] for row in found} == {"a/b", "a/b?", "batch", "中 x", "😀", "k" * 512}


async def test_the_same_key_of_two_jobs_is_two_instances(api: Client) -> None:
    first, second = await given.job(api), await given.job(api)

    made = [(await given.put(api, job, "a")).json for job in (first, second)]

    assert [reply["decision"] for reply in made] == ["INSERTED", "INSERTED"]
