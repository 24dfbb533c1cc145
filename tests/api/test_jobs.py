"""Jobs over REST: create, read, change, pause, resume, delete."""

import asyncio
from collections import Counter

import harness
from harness import Client
from receiver import Answer, Receiver

from api import expect, given
from horai.db.pool import Platform


async def test_C19_a_name_and_a_cron_are_enough_to_create_a_job(api: Client) -> None:
    name = given.name("coupon_job")

    created = await api("POST", "/api/v1/jobs", {"name": name, "cron": "0 */5 * * * ?"})

    assert created.status == 201
    job = created.json
    assert isinstance(job["id"], str)
    assert created.headers["Location"] == f"/api/v1/jobs/{job['id']}"
    assert created.headers["ETag"] == '"1"'
    read = await api("GET", created.headers["Location"])
    assert read.json == job
    assert read.headers["ETag"] == '"1"'
    assert (await api("GET", f"/api/v1/jobs/{name}")).json == job
    expected = {
        "name": name,
        "cron": "0 */5 * * * ?",
        "timezone": "UTC",
        "status": "ACTIVE",
        "queue": "default",
        "priority": "normal",
        "target": {"type": "worker", "handler": name},
        "retry": {"maxRetry": 5, "base": "500ms", "cap": "5m", "jitter": "additive", "maxLost": 20},
        "timeout": None,
        "misfire": "once",
        "overlap": "allow",
        "tags": [],
        "payload": None,
    }
    assert {field: job[field] for field in expected} == expected


async def test_C19_a_repeated_idempotency_key_answers_with_the_first_job(url: str, connection: Platform) -> None:
    """On a node of its own: the schedules of other tests tick, and the whole store is compared."""
    async with harness.node(url) as api:
        body = {"name": given.name(), "every": "1h"}
        first = await api("POST", "/api/v1/jobs", body, Idempotency_Key="create-1")
        before = await expect.contents(connection)

        again = await api("POST", "/api/v1/jobs", body, Idempotency_Key="create-1")

        told = expect.problem(again, 409, "SCH_409_DUPLICATE")
        assert told["jobId"] == first.json["id"]
        assert told["state"] == "ACTIVE"
        assert await expect.contents(connection) == before


async def test_C19_an_idempotency_key_used_with_another_body_is_refused(url: str, connection: Platform) -> None:
    """On a node of its own: the schedules of other tests tick, and the whole store is compared."""
    async with harness.node(url) as api:
        await api("POST", "/api/v1/jobs", {"name": given.name()}, Idempotency_Key="create-2")
        before = await expect.contents(connection)

        other = await api("POST", "/api/v1/jobs", {"name": given.name()}, Idempotency_Key="create-2")

        expect.invalid(other, "another body")
        assert await expect.contents(connection) == before


async def test_C19_a_failed_create_leaves_its_idempotency_key_free(api: Client) -> None:
    taken = await given.job(api)
    refused = await api("POST", "/api/v1/jobs", {"name": taken["name"]}, Idempotency_Key="create-3")
    assert refused.status == 409

    assert (await api("POST", "/api/v1/jobs", {"name": given.name()}, Idempotency_Key="create-3")).status == 201


async def test_C24_a_name_that_is_taken_answers_with_the_job_that_has_it(url: str, connection: Platform) -> None:
    """On a node of its own: the schedules of other tests tick, and the whole store is compared."""
    async with harness.node(url) as api:
        job = await given.job(api)
        before = await expect.contents(connection)

        told = expect.problem(
            await api("POST", "/api/v1/jobs", {"name": job["name"], "every": "7s", "queue": "new"}),
            409,
            "SCH_409_DUPLICATE",
            job["name"],
        )

        assert told["jobId"] == job["id"]
        assert told["state"] == "ACTIVE"
        assert await expect.contents(connection) == before


async def test_C14_the_view_job_definition_has_the_columns_of_the_seed(api: Client, db: Platform) -> None:
    job = await given.job(api, cron="0 0 9 * * ?", timezone="Asia/Shanghai", priority="core", status="PAUSED")

    row = await db.fetchrow(
        "select job_id, tenant_id, cron, timezone, status, priority, retry_policy, created_at "
        "from horai.job_definition where job_id = $1",
        int(job["id"]),
    )

    assert row is not None
    assert list(row.values())[1:6] == ["default", "0 0 9 * * ?", "Asia/Shanghai", "PAUSED", "core"]
    assert "maxRetry" in row["retry_policy"]


async def test_a_payload_is_kept_to_the_letter(api: Client) -> None:
    text = b'{"price": 10.10, "id": 12345678901234567890123, "name": "\\u4e2d\\ud83d\\ude00", "empty": {} }'
    name = given.name()

    created = await api.raw("POST", "/api/v1/jobs", b'{"name": "%s", "payload": %s}' % (name.encode(), text))

    assert created.status == 201
    async with api.session.get(f"{api.base}/api/v1/jobs/{name}") as response:
        assert text in await response.read()


async def test_a_patch_changes_what_it_names_and_nothing_else(api: Client) -> None:
    job = await given.job(api, every="1h", payload={"a": 1}, tags=["x"], retry={"maxRetry": 3, "base": "2s"})

    changed = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"priority": "high", "timeout": "7s"})

    assert changed.status == 200
    assert changed.headers["ETag"] == '"2"'
    expected = {**job, "priority": "high", "timeout": "7s", "version": 2, "updatedAt": changed.json["updatedAt"]}
    assert changed.json == expected
    assert (await api("GET", f"/api/v1/jobs/{job['name']}")).json == expected


async def test_a_patch_of_one_retry_field_keeps_the_others(api: Client) -> None:
    job = await given.job(api, retry={"maxRetry": 3, "base": "2s", "cap": "1m", "jitter": "full"})

    changed = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"retry": {"maxRetry": 9, "cap": None}})

    assert changed.json["retry"] == {"maxRetry": 9, "base": "2s", "cap": "5m", "jitter": "full", "maxLost": 20}


async def test_null_inside_dst_means_its_default(api: Client) -> None:
    made = await given.job(api, cron="0 9 * * *", dst={"gap": None, "overlap": "both"})

    changed = await api("PATCH", f"/api/v1/jobs/{made['name']}", {"dst": {"gap": "skip", "overlap": None}})

    assert changed.json["dst"] == {"gap": "skip"}


async def test_a_patched_target_is_replaced_so_that_no_header_goes_to_another_address(api: Client) -> None:
    secret = {"type": "http", "url": "https://one.example/", "headers": {"Authorization": "Bearer abc"}}
    job = await given.job(api, target=secret)

    changed = await api(
        "PATCH", f"/api/v1/jobs/{job['name']}", {"target": {"type": "http", "url": "https://two.example/"}}
    )

    assert changed.json["target"] == {"type": "http", "url": "https://two.example/", "method": "POST", "headers": {}}


async def test_a_target_that_takes_batches_is_shown_as_given_and_a_wrong_batch_is_refused_with_a_hint(
    api: Client,
) -> None:
    target = {"type": "http", "url": "https://one.example/", "batch": {"size": 100}}
    job = await given.job(api, target=target)
    assert job["target"]["batch"] == {"size": 100}

    for batch in ({"size": 1}, {"size": 100, "wait": "1s"}, {}, {"size": "many"}):
        refused = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"target": {**target, "batch": batch}})
        assert refused.status == 422
        assert refused.json["errors"][0]["field"].startswith("target.batch")
        assert batch != {"size": 1} or "size" in refused.json["hint"]


async def test_a_patch_with_null_takes_a_field_away(api: Client) -> None:
    job = await given.job(
        api, cron="0 9 * * *", timezone="Asia/Shanghai", payload={"a": 1}, timeout="9s", queue="q", tags=["x"]
    )
    path = f"/api/v1/jobs/{job['name']}"

    changed = await api("PATCH", path, {"payload": None, "timeout": None, "queue": None, "tags": None, "retry": None})
    assert changed.status == 200, changed.json
    assert changed.json["payload"] is None
    assert (changed.json["timeout"], changed.json["queue"], changed.json["tags"]) == ("5s", "default", [])
    assert (await api("PATCH", path, {"timezone": None})).json["timezone"] == "UTC"
    unscheduled = await api("PATCH", path, {"cron": None})

    assert unscheduled.status == 200, unscheduled.json
    assert "cron" not in unscheduled.json


async def test_a_patch_may_switch_from_cron_to_every_and_back(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200), cron="0 0 1 1 *", timezone="Asia/Shanghai")
    path = f"/api/v1/jobs/{job['name']}"

    every = await api("PATCH", path, {"every": "1s"})

    assert every.json["every"] == "1s"
    assert not {"cron", "timezone"} & every.json.keys()
    await given.until(lambda: _ran(api, job))
    cron = await api("PATCH", path, {"cron": "0 0 1 1 *"})
    assert cron.json["cron"] == "0 0 1 1 *"
    assert "every" not in cron.json
    expect.invalid(await api("PATCH", path, {"cron": "0 1 * * *", "every": "5s"}), "cannot be combined with")


async def _ran(api: Client, job: dict[str, str]) -> bool:
    return bool((await api("GET", f"/api/v1/jobs/{job['id']}/instances?state=DONE")).json["items"])


async def test_a_patch_with_an_old_version_changes_nothing(url: str, connection: Platform) -> None:
    """On a node of its own: the schedules of other tests tick, and the whole store is compared."""
    async with harness.node(url) as api:
        job = await given.job(api)
        path = f"/api/v1/jobs/{job['name']}"
        assert (await api("PATCH", path, {"tags": ["a"]}, If_Match='"1"')).status == 200
        before = await expect.contents(connection)

        stale = await api("PATCH", path, {"tags": ["b"]}, If_Match='"1"')
        gone = await api("DELETE", path, If_Match='"1"')

        expect.problem(stale, 412, "SCH_412_PRECONDITION", "version 2")
        expect.problem(gone, 412, "SCH_412_PRECONDITION")
        assert await expect.contents(connection) == before
        assert (await api("PATCH", path, {"tags": ["b"]}, If_Match="*")).status == 200


async def test_of_parallel_patches_with_one_version_one_is_made(api: Client) -> None:
    job = await given.job(api)

    replies = await asyncio.gather(
        *(api("PATCH", f"/api/v1/jobs/{job['id']}", {"tags": [f"t{n}"]}, If_Match='"1"') for n in range(20))
    )

    assert Counter(reply.status for reply in replies) == {200: 1, 412: 19}
    (made,) = [reply.json for reply in replies if reply.status == 200]
    assert (await api("GET", f"/api/v1/jobs/{job['id']}")).json == made


async def test_of_parallel_creates_of_one_name_one_is_made(api: Client) -> None:
    name = given.name()

    replies = await asyncio.gather(*(api("POST", "/api/v1/jobs", {"name": name, "every": "9m"}) for _ in range(20)))

    assert Counter(reply.status for reply in replies) == {201: 1, 409: 19}
    assert len({reply.json.get("id") or reply.json["jobId"] for reply in replies}) == 1


async def test_a_patch_never_changes_a_name_or_a_single_time(url: str, connection: Platform) -> None:
    """On a node of its own: the schedules of other tests tick, and the whole store is compared."""
    async with harness.node(url) as api:
        job = await given.job(api, at=given.FAR)
        path = f"/api/v1/jobs/{job['name']}"
        before = await expect.contents(connection)

        expect.invalid(await api("PATCH", path, {"name": given.name()}), "never changes")
        expect.invalid(await api("PATCH", path, {"at": "2998-01-01T00:00:00Z"}), "cannot be changed")
        expect.invalid(await api("PATCH", path, {"delay": "5s"}), "cannot be changed")
        assert await expect.contents(connection) == before
        assert (await api("PATCH", path, {"name": job["name"]})).status == 200


async def test_a_job_with_a_single_time_can_be_changed_otherwise(api: Client) -> None:
    job = await given.job(api, at=given.FAR)

    changed = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"priority": "low"})

    assert changed.status == 200, changed.json
    assert (changed.json["at"], changed.json["priority"]) == (job["at"], "low")


async def test_waiting_instances_follow_a_change_of_queue_and_priority(api: Client) -> None:
    job = await given.job(api)
    waiting = [(await given.put(api, job, f"k{n}")).json["instance"] for n in range(3)]

    await api("PATCH", f"/api/v1/jobs/{job['name']}", {"queue": "express", "priority": "core"})

    for instance in waiting:
        now = await given.read(api, instance)
        assert (now["queue"], now["priority"]) == ("express", "core")
        assert now["executeTime"] == instance["executeTime"]


async def test_a_changed_retry_policy_and_timeout_hold_from_the_next_attempt(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(503))
    await api("PATCH", f"/api/v1/jobs/{job['name']}", {"retry": {"maxRetry": 0}, "timeout": "100ms"})

    dead = await api.until_state((await given.triggered(api, job))["id"], "DEAD")

    assert (dead["attempt"], dead["retryCount"]) == (1, 1)


async def test_C19_a_repeated_create_of_a_single_run_makes_no_second_one(api: Client, db: Platform) -> None:
    body = {"name": given.name(), "at": given.FAR}
    first = await api("POST", "/api/v1/jobs", body, Idempotency_Key="create-4")

    told = expect.problem(await api("POST", "/api/v1/jobs", body, Idempotency_Key="create-4"), 409, "SCH_409_DUPLICATE")

    (instance,) = await given.listed(api, f"/api/v1/jobs/{first.json['id']}/instances")
    assert (told["instanceId"], told["state"]) == (instance["id"], "INIT")


async def test_C5_a_paused_job_holds_what_is_due_and_a_resume_releases_it(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200))
    path = f"/api/v1/jobs/{job['name']}"
    early = (await given.put(api, job, "early", given.FAR)).json["instance"]

    paused = await api("POST", f"{path}/pause", {"note": "the shop is closed"})

    assert (paused.status, paused.json["status"], paused.json["note"]) == (200, "PAUSED", "the shop is closed")
    assert (await given.put(api, job, "early", None)).json["decision"] == "UPDATED"
    due = (await given.put(api, job, "late", None)).json["instance"]
    witness = await given.scripted(api, receiver, Answer(200))
    await api.until_state((await given.triggered(api, witness))["id"], "SUCCESS")
    assert [(await given.read(api, i))["state"] for i in (early, due)] == ["INIT", "INIT"]
    assert given.hits(receiver, job) == []
    resumed = await api("POST", f"{path}/resume")
    assert resumed.json["status"] == "ACTIVE"
    for instance in (early, due):
        await api.until_state(instance["id"], "SUCCESS")


async def test_C5_a_paused_job_makes_no_slots_and_a_resume_tells_which_were_skipped(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job = await given.scripted(api, receiver, Answer(200), every="1s", misfire="skip", misfireAfter="1s")
    await given.until(lambda: _ran(api, job))
    await api("POST", f"/api/v1/jobs/{job['id']}/pause")
    made = len(await given.listed(api, f"/api/v1/jobs/{job['id']}/instances"))
    witness = await given.scripted(api, receiver, Answer(200), every="1s")
    await given.until(lambda: _has_more_than(api, witness, 3))

    assert len(await given.listed(api, f"/api/v1/jobs/{job['id']}/instances")) == made
    await api("POST", f"/api/v1/jobs/{job['id']}/resume")
    assert await db.fetchval("select reason from horai.skip where job_id = $1", int(job["id"])) == "PAUSED_SKIP"
    await given.until(lambda: _has_more_than(api, job, made))
    for ticking in (job, witness):
        await api("DELETE", f"/api/v1/jobs/{ticking['id']}")


async def _has_more_than(api: Client, job: dict[str, str], count: int) -> bool:
    return len(await given.listed(api, f"/api/v1/jobs/{job['id']}/instances")) > count


async def test_C5_a_deleted_job_cancels_what_waits_lets_run_what_runs_and_keeps_its_history(
    api: Client, receiver: Receiver
) -> None:
    job = await given.scripted(api, receiver, Answer(200), Answer(200, delay=0.3))
    done = await api.until_state((await given.triggered(api, job))["id"], "SUCCESS")
    waiting = (await given.put(api, job, "waits")).json["instance"]
    runs = await given.running(api, receiver, job, "runs")

    deleted = await api("DELETE", f"/api/v1/jobs/{job['name']}")

    assert deleted.status == 204
    expect.problem(await api("GET", f"/api/v1/jobs/{job['name']}"), 404, "SCH_404_NOT_FOUND")
    expect.problem(await api("DELETE", f"/api/v1/jobs/{job['id']}"), 404, "SCH_404_NOT_FOUND")
    cancelled = await given.read(api, waiting)
    assert (cancelled["state"], cancelled["reason"]) == ("CANCELLED", "JOB_DELETED")
    finished = await api.until_state(runs["id"], "SUCCESS", "CANCELLED")
    assert finished["state"] == "SUCCESS"
    assert await given.read(api, done) == done
    assert (await api("POST", "/api/v1/jobs", {"name": job["name"]})).status == 201


async def test_a_deleted_jobs_failing_instance_is_not_retried(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(503, delay=0.2), retry={"base": "600ms", "jitter": "none"})
    runs = await given.running(api, receiver, job, "runs")
    await api("DELETE", f"/api/v1/jobs/{job['name']}")

    ended = await api.until_state(runs["id"], "CANCELLED", "DEAD", "SUCCESS")

    assert (ended["state"], ended["reason"]) == ("CANCELLED", "JOB_DELETED")
    assert len(given.hits(receiver, job)) == 1
