"""The request that a target receives, the effect of its answer on an instance, and outcomes reported later."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from harness import Client, Reply
from receiver import DROP, HANG, Answer, Receiver

from api import expect, given
from horai.core import callbacks
from horai.db.pool import Platform

STALE = "SCH_409_STALE"


async def report(api: Client, instance: Any, fence: int, result: str, **more: Any) -> Reply:
    body = {"fence": fence, "result": result, **more}
    return await api("POST", f"/api/v1/instances/{instance['id']}/outcome", body)


async def test_C57_create_fire_fail_retry_success(api: Client, receiver: Receiver) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=1)).replace(microsecond=0).isoformat()
    job = await given.scripted(api, receiver, Answer(503), Answer(500), Answer(200), at=soon, retry=given.SOON)
    done = await given.until(lambda: _first(api, job, "DONE"))

    told = await given.read(api, done)
    assert [(a["attempt"], a["outcome"], a["errorCode"]) for a in told["attempts"]] == [
        (1, "FAIL", "HTTP_503"),
        (2, "FAIL", "HTTP_500"),
        (3, "SUCCESS", None),
    ]
    assert [event["kind"] for event in told["timeline"]] == ["INSTANCE_FAILED", "INSTANCE_FAILED", "INSTANCE_DONE"]
    assert [event["seq"] for event in told["timeline"]] == [1, 2, 3]
    assert datetime.fromisoformat(told["fireTime"]) == datetime.fromisoformat(soon)
    assert told["node"] == "test-node"


@pytest.mark.parametrize("limit", [None, 1])
async def test_a_running_second_attempt_does_not_show_the_error_of_the_first(
    api: Client, receiver: Receiver, db: Platform, limit: int | None
) -> None:
    queue = given.name("queue")
    assert (await api("PUT", f"/api/v1/queues/{queue}", {"maxConcurrency": limit})).status < 300
    job = await given.scripted(api, receiver, Answer(503), HANG, retry=given.SOON, timeout="60s", queue=queue)
    instance = await given.triggered(api, job)
    await given.until(lambda: _in_attempt(api, instance, 2))

    told = await given.read(api, instance)
    assert (told["state"], told["errorCode"], told["errorMsg"]) == ("RUNNING", None, None)
    assert [(a["outcome"], a["errorCode"]) for a in told["attempts"]] == [("FAIL", "HTTP_503"), ("RUNNING", None)]
    (listed,) = (await api("GET", f"/api/v1/instances?job={job['name']}")).json["items"]
    assert (listed["errorCode"], listed["errorMsg"]) == (None, None)
    row = await db.fetchrow(
        "select state, error_code, error_msg from horai.job_instance where instance_id = $1", int(instance["id"])
    )
    assert row is not None
    assert tuple(row) == ("RUNNING", None, None)


async def _in_attempt(api: Client, instance: Any, attempt: int) -> bool:
    told = await given.read(api, instance)
    return told["state"] == "RUNNING" and told["attempt"] == attempt


async def _first(api: Client, job: Any, state: str) -> Any:
    found = (await api("GET", f"/api/v1/jobs/{job['id']}/instances?state={state}")).json["items"]
    return found[-1] if found else None


async def test_B11_B12_a_success_clears_the_error_and_keeps_the_count_of_failures(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job = await given.scripted(api, receiver, Answer(503), DROP, Answer(200), retry=given.SOON)

    done = await api.until_state((await given.triggered(api, job))["id"], "SUCCESS")

    assert (done["errorCode"], done["errorMsg"], done["retryCount"], done["attempt"]) == (None, None, 2, 3)
    row = await db.fetchrow(
        "select state, attempt, error_code, error_msg, retry_count from horai.job_instance where instance_id = $1",
        int(done["id"]),
    )
    assert row is not None
    assert tuple(row.values()) == ("SUCCESS", 3, None, None, 2)


async def test_C57_C48_a_failing_instance_is_retried_and_ends_in_the_dead_letters(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job = await given.scripted(api, receiver, Answer(503, {"message": "closed"}), retry=given.SOON)

    dead = await api.until_state((await given.triggered(api, job))["id"], "DEAD")

    assert (dead["attempt"], dead["retryCount"], dead["errorCode"]) == (3, 3, "HTTP_503")
    assert "closed" in dead["errorMsg"]
    assert len(given.hits(receiver, job)) == 3
    assert [attempt["outcome"] for attempt in dead["attempts"]] == ["FAIL", "FAIL", "DEAD"]
    letter = await db.fetchrow(
        "select error_code, payload_ref, created_at, replay_status from horai.dlq_entry where instance_id = $1",
        int(dead["id"]),
    )
    assert letter is not None
    assert (letter["error_code"], letter["replay_status"]) == ("HTTP_503", "NEW")
    tags = await db.fetchval("select tags from horai.dead_letter where instance_id = $1", int(dead["id"]))
    assert "transient_error" in tags


async def test_C48_a_dead_instance_by_default_has_failed_six_times(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(503), retry={"base": "1ms", "jitter": "none"})

    dead = await api.until_state((await given.triggered(api, job))["id"], "DEAD")

    assert (dead["attempt"], dead["retryCount"]) == (6, 6)


async def test_C16_a_retry_that_waits_is_in_the_view_retry_entry(api: Client, receiver: Receiver, db: Platform) -> None:
    job = await given.scripted(api, receiver, Answer(503, headers={"Retry-After": "1800"}))
    failed = await api.until_state((await given.triggered(api, job))["id"], "FAIL")

    row = await db.fetchrow("select * from horai.retry_entry where instance_id = $1", int(failed["id"]))

    assert row is not None
    assert set(row.keys()) >= {"instance_id", "next_fire_time", "attempt", "reason"}
    assert (row["attempt"], row["reason"]) == (1, "HTTP_503")
    assert row["next_fire_time"] == datetime.fromisoformat(failed["executeTime"])


async def test_a_targets_retry_after_is_honoured(api: Client, receiver: Receiver) -> None:
    for status in (429, 503):
        job = await given.scripted(api, receiver, Answer(status, headers={"Retry-After": "1800"}), retry=given.SOON)
        failed = await api.until_state((await given.triggered(api, job))["id"], "FAIL")
        wait = datetime.fromisoformat(failed["executeTime"]) - datetime.now(UTC)
        assert timedelta(minutes=29) < wait <= timedelta(minutes=30)


async def test_C15_C27_the_view_job_instance_has_the_columns_of_the_seed(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job = await given.scripted(api, receiver, Answer(200))
    done = await api.until_state((await given.triggered(api, job))["id"], "SUCCESS")
    waiting = (await given.put(api, job, "later")).json["instance"]

    for instance, state in ((done, "SUCCESS"), (waiting, "INIT")):
        row = await db.fetchrow(
            "select instance_id, job_id, fire_time, state, attempt, worker_id, idem_key, updated_at "
            "from horai.job_instance where instance_id = $1",
            int(instance["id"]),
        )
        assert row is not None
        assert (row["job_id"], row["state"]) == (int(job["id"]), state)
        assert row["idem_key"] == instance["idempotencyKey"]
        millis = int(datetime.fromisoformat(instance["fireTime"]).timestamp() * 1000)
        assert row["idem_key"] == f"{job['id']}:{millis}:{instance['id']}"


async def test_C50_done_is_told_in_the_transaction_that_makes_it_so(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job = await given.scripted(api, receiver, Answer(503), Answer(200), retry=given.SOON)
    done = await api.until_state((await given.triggered(api, job))["id"], "SUCCESS")

    events = await db.fetch(
        "select kind, seq, at, data from horai.instance_event where instance_id = $1 order by seq", int(done["id"])
    )

    assert [(event["kind"], event["seq"]) for event in events] == [("INSTANCE_FAILED", 1), ("INSTANCE_DONE", 2)]
    assert events[-1]["at"] == datetime.fromisoformat(done["finishedAt"])
    assert done["idempotencyKey"] in events[-1]["data"]
    assert '"worker"' in events[-1]["data"]


async def test_B19_C28_every_try_carries_the_same_tokens_and_a_growing_fence(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job = await given.scripted(api, receiver, Answer(503), Answer(503), Answer(200), retry=given.SOON)
    made = (await given.put(api, job, "article:42", None, payload={"n": 1})).json["instance"]
    done = await api.until_state(made["id"], "SUCCESS")

    calls = given.hits(receiver, job)

    assert len(calls) == 3
    assert {call.headers["idempotency-key"] for call in calls} == {made["idempotencyKey"]}
    assert {call.headers["webhook-id"] for call in calls} == {made["idempotencyKey"]}
    assert {call.unit for call in calls} == {f"default:{job['name']}:article:42"}
    assert [call.headers["horai-attempt"] for call in calls] == ["1", "2", "3"]
    fences = [int(call.headers["horai-fence"]) for call in calls]
    assert fences == sorted(set(fences))
    assert fences[-1] == done["fence"]
    secret = await db.fetchval("select secret from horai.signing_secret")
    for call in calls:
        assert (call.method, call.headers["content-type"]) == ("POST", "application/json")
        assert callbacks.verify(secret, call.headers, call.body, datetime.now(UTC))
        assert datetime.fromisoformat(call.headers["horai-fire-time"]) <= datetime.now(UTC)
        told = call.json
        assert set(told) == {
            "job", "jobId", "instanceId", "key", "fireTime", "executeTime", "attempt", "payload",
        }  # fmt: skip
        assert (told["job"], told["jobId"], told["instanceId"]) == (job["name"], job["id"], made["id"])
        assert (told["key"], told["payload"]) == ("article:42", {"n": 1})


@pytest.mark.parametrize(
    ("answer", "state", "code"),
    [
        (Answer(200, {"result": "SUCCESS", "output": {"published": True}}), "SUCCESS", None),
        (Answer(204), "SUCCESS", None),
        (Answer(200, {"result": "FAIL_RETRYABLE", "message": "not yet"}), "DEAD", "RESULT_RETRYABLE"),
        (Answer(200, {"result": "FAIL_UNRECOVERABLE", "message": "never"}), "DEAD", "RESULT_UNRECOVERABLE"),
        (Answer(302, headers={"Location": "http://127.0.0.1:9/"}), "DEAD", "HTTP_302"),
        (Answer(404), "DEAD", "HTTP_404"),
        (DROP, "DEAD", "CONNECTION"),
        (HANG, "DEAD", "TIMEOUT"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
async def test_B13_the_answer_alone_carries_the_outcome(
    api: Client, receiver: Receiver, answer: Answer, state: str, code: str | None
) -> None:
    job = await given.scripted(api, receiver, answer, retry={"maxRetry": 0}, timeout="400ms")

    ended = await api.until_state((await given.triggered(api, job))["id"], "SUCCESS", "DEAD")

    assert (ended["state"], ended["errorCode"]) == (state, code)
    output = answer.json.get("output") if isinstance(answer.json, dict) else None
    assert ended["result"] == output
    assert len(given.hits(receiver, job)) == 1


async def test_a_private_address_is_refused_when_it_is_dialled(api: Client) -> None:
    for url in ("http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::ffff:10.0.0.1]/"):
        job = await given.job(api, url)
        dead = await api.until_state((await given.triggered(api, job))["id"], "DEAD")
        assert (dead["errorCode"], dead["attempt"]) == ("ADDRESS_REFUSED", 1)


async def accepted(api: Client, receiver: Receiver, **fields: Any) -> Any:
    """A RUNNING instance whose target has answered 202."""
    job = await given.scripted(api, receiver, Answer(202), timeout="1s", **fields)
    return await given.running(api, receiver, job, "a")


async def test_an_outcome_reported_after_202_settles_the_instance(api: Client, receiver: Receiver) -> None:
    instance = await accepted(api, receiver)

    reply = await report(api, instance, instance["fence"], "SUCCESS", output={"rows": 3})

    assert reply.status == 200
    told = reply.json["instance"]
    assert (told["state"], told["result"], told["attempt"]) == ("SUCCESS", {"rows": 3}, 1)


async def test_an_outcome_reported_twice_is_settled_once(api: Client, receiver: Receiver, db: Platform) -> None:
    instance = await accepted(api, receiver)
    first = await report(api, instance, instance["fence"], "SUCCESS")
    before = await expect.contents(db, {"id": instance["jobId"]})

    second = await report(api, instance, instance["fence"], "SUCCESS")

    assert (second.status, second.json) == (first.status, first.json)
    assert await expect.contents(db, {"id": instance["jobId"]}) == before


async def test_a_reported_failure_is_retried_or_buried(api: Client, receiver: Receiver) -> None:
    instance = await accepted(api, receiver, retry={"base": "1h"})

    failed = await report(api, instance, instance["fence"], "FAIL_RETRYABLE", message="not\x07 yet")

    told = failed.json["instance"]
    assert (told["state"], told["errorCode"], told["errorMsg"], told["retryCount"]) == (
        "FAIL", "RESULT_RETRYABLE", "not yet", 1,
    )  # fmt: skip
    other = await accepted(api, receiver)
    buried = await report(api, other, other["fence"], "FAIL_UNRECOVERABLE", message="never")
    assert (buried.json["instance"]["state"], buried.json["instance"]["errorMsg"]) == ("DEAD", "never")


async def test_an_accepted_call_without_an_outcome_times_out(api: Client, receiver: Receiver) -> None:
    instance = await accepted(api, receiver, retry={"base": "1h"})

    failed = await api.until_state(instance["id"], "FAIL")

    assert (failed["errorCode"], failed["retryCount"]) == ("TIMEOUT", 1)


async def test_X2_an_outcome_with_a_stale_fence_changes_nothing_and_is_kept_as_late(
    api: Client, receiver: Receiver
) -> None:
    instance = await accepted(api, receiver)
    successor = (await given.put(api, {"name": instance["job"]}, "a")).json["instance"]
    gone = await given.read(api, instance)

    stale = await report(api, instance, instance["fence"], "SUCCESS")

    told = expect.problem(stale, 409, STALE, "too late", "kept")
    assert (told["instanceId"], told["state"]) == (instance["id"], "CANCELLED")
    now = await given.read(api, instance)
    assert {**now, "attempts": gone["attempts"], "timeline": gone["timeline"]} == gone
    assert [(a["outcome"], a["late"]) for a in now["attempts"]] == [("SUCCESS", True), ("CANCELLED", False)]
    assert now["timeline"][-1]["kind"] == "INSTANCE_LATE_RESULT"
    assert (await given.read(api, successor))["state"] == "INIT"


async def test_X2_an_outcome_that_comes_after_the_timeout_is_kept_as_late(api: Client, receiver: Receiver) -> None:
    instance = await accepted(api, receiver, retry={"base": "1h"})
    await api.until_state(instance["id"], "FAIL")

    stale = await report(api, instance, instance["fence"], "SUCCESS")

    expect.problem(stale, 409, STALE, "kept")
    now = await given.read(api, instance)
    assert (now["state"], now["errorCode"]) == ("FAIL", "TIMEOUT")
    assert [(a["outcome"], a["late"]) for a in now["attempts"]] == [("FAIL", False), ("SUCCESS", True)]


async def test_a_fence_that_never_was_is_refused_and_not_kept(api: Client, receiver: Receiver, db: Platform) -> None:
    instance = await accepted(api, receiver)
    before = await expect.contents(db, {"id": instance["jobId"]})

    wrong = await report(api, instance, instance["fence"] + 7, "SUCCESS")

    told = expect.problem(wrong, 409, STALE, "never")
    assert "kept" not in told["hint"]
    assert await expect.contents(db, {"id": instance["jobId"]}) == before


async def test_parallel_outcomes_of_one_attempt_settle_it_once(api: Client, receiver: Receiver) -> None:
    instance = await accepted(api, receiver, retry={"base": "1h"})

    replies = await asyncio.gather(
        *(report(api, instance, instance["fence"], word) for word in ("SUCCESS", "FAIL_UNRECOVERABLE") * 5)
    )

    final = await given.read(api, instance)
    assert final["state"] in {"SUCCESS", "DEAD"}
    assert {reply.json["instance"]["state"] for reply in replies if reply.status == 200} == {final["state"]}


async def test_an_outcome_of_nonsense_is_refused(api: Client, receiver: Receiver, db: Platform) -> None:
    instance = await accepted(api, receiver)
    path = f"/api/v1/instances/{instance['id']}/outcome"
    before = await expect.contents(db, {"id": instance["jobId"]})

    for body in (
        {},
        {"fence": 0, "result": "SUCCESS"},
        {"fence": 1, "result": "DONE"},
        {"fence": "1", "result": "SUCCESS"},
    ):
        expect.invalid(await api("POST", path, body))
    big = {"fence": instance["fence"], "result": "SUCCESS", "output": "x" * 70_000}
    expect.invalid(await api("POST", path, big), "64 kB")
    expect.problem(
        await api("POST", "/api/v1/instances/999999/outcome", {"fence": 1, "result": "SUCCESS"}),
        404,
        "SCH_404_NOT_FOUND",
    )

    assert await expect.contents(db, {"id": instance["jobId"]}) == before
