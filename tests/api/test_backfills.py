"""`POST …/backfill`, `/backfills`: over HTTP, against a node that works them off."""

import asyncio
from typing import Any

import harness
from harness import Client
from receiver import Answer, Receiver

from api import expect, given
from horai.db.pool import Platform

HOUR = {"from": "2026-01-10T00:00:00Z", "to": "2026-01-10T01:00:00Z"}
ITS_MINUTES = "* 0 10 1 *"
"""Every minute of that hour, and then none for a year: no slot of now is called among those that are counted."""
FINAL = "SCH_409_FINAL"


async def asked(api: Client, job: Any, headers: dict[str, str] | None = None, **wish: Any) -> Any:
    reply = await api("POST", f"/api/v1/jobs/{job['name']}/backfill", {**HOUR, **wish}, **(headers or {}))
    assert reply.status == 202, reply.json
    return reply.json


async def read(api: Client, backfill: Any) -> Any:
    return (await api("GET", f"/api/v1/backfills/{backfill['id']}")).json


async def finished(api: Client, backfill: Any) -> Any:
    async def done() -> Any:
        found = await read(api, backfill)
        return found if found["finishedAt"] is not None else None

    return await given.until(done, 30)


async def verb(api: Client, backfill: Any, what: str, note: str | None = None) -> harness.Reply:
    return await api("POST", f"/api/v1/backfills/{backfill['id']}/{what}", None if note is None else {"note": note})


async def test_C1d_C5_C21_a_range_is_backfilled_and_its_progress_told(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200), cron=ITS_MINUTES, payload={"n": 1})

    backfill = await asked(api, job, rate="200/s", maxConcurrency=20, note="the feed was down")
    assert (backfill["status"], backfill["progress"]["total"]) == ("RUNNING", 60)
    assert (backfill["rate"], backfill["maxConcurrency"], backfill["mode"]) == ("200/s", 20, "missing")
    done = await finished(api, backfill)

    progress = done["progress"]
    assert (done["status"], done["note"]) == ("DONE", "the feed was down")
    assert {name: progress[name] for name in ("slots", "total", "made", "succeeded", "failed", "running", "skipped")} == {
        "slots": 60, "total": 60, "made": 60, "succeeded": 60, "failed": 0, "running": 0, "skipped": 0
    }  # fmt: skip
    assert (progress["percent"], progress["eta"]) == (100.0, None)
    hits = given.hits(receiver, job)
    assert min(hit.json["fireTime"] for hit in hits).startswith("2026-01-10T00:00:00")
    assert len({hit.headers["idempotency-key"] for hit in hits}) == len(hits) == 60
    (listed,) = await given.listed(api, f"/api/v1/backfills?job={job['name']}&status=DONE")
    assert listed["id"] == backfill["id"]


async def test_C21_a_dry_run_counts_to_the_slot_and_writes_nothing(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = await given.scripted(api, receiver, Answer(200), cron=ITS_MINUTES)
    await finished(api, await asked(api, job, to="2026-01-10T00:10:00Z"))
    before = await expect.contents(db)

    path = f"/api/v1/jobs/{job['id']}/backfill"
    missing = (await api("POST", path, {**HOUR, "dryRun": True})).json
    every = await api("POST", path, {**HOUR, "dryRun": True, "mode": "all"})
    failed = (await api("POST", path, {**HOUR, "dryRun": True, "mode": "failed"})).json

    assert await expect.contents(db) == before
    assert (missing["dryRun"], missing["slots"], missing["total"], missing["skipped"]) == (True, 60, 50, 10)
    assert (missing["first"], missing["last"]) == ("2026-01-10T00:10:00Z", "2026-01-10T00:59:00Z")
    assert (every.status, every.json["total"], failed["total"], failed["first"]) == (200, 60, 0, None)
    assert every.json["maxConcurrency"] == 10


async def test_C21_failed_runs_again_what_is_dead(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(400), Answer(200), cron=ITS_MINUTES, retry={"maxRetry": 0})
    first = await finished(api, await asked(api, job, to="2026-01-10T00:05:00Z", maxConcurrency=1))
    assert (first["progress"]["failed"], first["progress"]["succeeded"]) == (1, 4)

    again = await finished(api, await asked(api, job, mode="failed"))

    assert (again["progress"]["total"], again["progress"]["succeeded"]) == (1, 1)
    keys = [hit.headers["idempotency-key"] for hit in given.hits(receiver, job)]
    assert keys.count(keys[0]) == 1
    assert f"{keys[0]}:1" in keys


async def test_C21_it_is_paused_resumed_and_cancelled(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200), every="1m")
    backfill = await asked(api, job, rate="1/h")

    paused = await verb(api, backfill, "pause", "later")
    assert (paused.status, paused.json["status"], paused.json["note"]) == (200, "PAUSED", "later")
    assert (await verb(api, backfill, "pause")).json["note"] == "later"
    assert (await verb(api, backfill, "resume")).json["status"] == "RUNNING"
    cancelled = await verb(api, backfill, "cancel", "not needed")
    assert (cancelled.json["status"], cancelled.json["note"]) == ("CANCELLED", "not needed")
    ended = await finished(api, backfill)

    assert ended["progress"]["made"] <= 1
    assert (await verb(api, backfill, "cancel")).status == 200
    expect.problem(await verb(api, backfill, "resume"), 409, FINAL, "CANCELLED", "another one")


async def test_C21_a_repeated_request_gets_the_first_backfill(api: Client) -> None:
    job = await given.job(api, every="1m")
    path, key = f"/api/v1/jobs/{job['id']}/backfill", {"Idempotency_Key": "once"}
    wish = {**HOUR, "rate": "1/h"}

    replies = await asyncio.gather(*(api("POST", path, wish, **key) for _ in range(20)))

    assert {reply.status for reply in replies} == {202}
    assert len({reply.json["id"] for reply in replies}) == 1
    assert {reply.headers["Location"] for reply in replies} == {f"/api/v1/backfills/{replies[0].json['id']}"}
    expect.invalid(await api("POST", path, {**wish, "mode": "all"}, **key), "another body")
    await verb(api, replies[0].json, "cancel")


async def test_C21_an_invalid_backfill_request_is_refused_with_a_reason(api: Client) -> None:
    job = await given.job(api, every="1m")
    plain, patient = await given.job(api), await given.job(api, every="1h", everyFrom="finish")
    second = await given.job(api, every="1s")

    async def refused(of: Any, *words: str, **wish: Any) -> None:
        expect.invalid(await api("POST", f"/api/v1/jobs/{of['id']}/backfill", {**HOUR, **wish}), *words)

    await refused(job, "to: is in the future", "Leave it out", to="2999-01-01T00:00:00Z")
    await refused(job, "from: is not before to", **{"from": "2026-01-10T01:00:00Z"})
    await refused(plain, "no schedule")
    await refused(patient, "everyFrom finish")
    await refused(second, "more than 1,000,000 slots", "Split it", **{"from": "2025-12-01T00:00:00Z"})
    await refused(job, "rate: 'fast' is not a rate", "maxConcurrency", rate="fast", maxConcurrency=0)
    await refused(job, "mode", mode="some")
    expect.problem(await api("POST", "/api/v1/jobs/nobody/backfill", HOUR), 404, "SCH_404_NOT_FOUND")
    expect.invalid(await api("POST", f"/api/v1/jobs/{job['id']}/backfill", {}), "from: is missing")
    for number in ("0", "x", "9" * 30):
        expect.problem(await api("GET", f"/api/v1/backfills/{number}"), 404, "SCH_404_NOT_FOUND", "backfill")


async def test_without_an_end_the_range_ends_now(api: Client) -> None:
    job = await given.job(api, every="1h")

    plan = (await api("POST", f"/api/v1/jobs/{job['id']}/backfill", {"from": HOUR["from"], "dryRun": True})).json

    assert plan["slots"] == plan["total"] > 24


async def test_C21_a_backfill_goes_on_after_a_restart(url: str) -> None:
    async with Receiver() as receiver:
        receiver.on("/hook", Answer(200))
        async with harness.node(url) as api:
            job = await given.job(api, receiver.url("/hook"), cron=ITS_MINUTES)
            backfill = await asked(api, job, rate="40/s", maxConcurrency=5)
            await given.until(lambda: _hits(receiver, 10))
        async with harness.node(url) as api:
            done = await finished(api, backfill)

    assert (done["status"], done["progress"]["made"], done["progress"]["succeeded"]) == ("DONE", 60, 60)
    assert len({hit.headers["idempotency-key"] for hit in receiver.hits}) == 60


async def _hits(receiver: Receiver, count: int) -> bool:
    return len(receiver.hits) >= count
