"""`GET /api/v1/jobs/{job}/explain?at=`."""

from datetime import UTC, datetime, timedelta
from typing import Any

from harness import Client, Reply
from receiver import Receiver

from api import expect, given
from horai.db.pool import Platform

CLOSED = {"timezone": "Europe/Berlin", "cron": "30 2 * * *"}


async def explained(api: Client, job: Any, at: str) -> Reply:
    return await api("GET", f"/api/v1/jobs/{job['name']}/explain?at={at}")


async def told(api: Client, job: Any, at: str) -> Any:
    reply = await explained(api, job, at)
    assert reply.status == 200, reply.json
    return reply.json


async def test_a_slot_that_fired_is_told_with_its_instance(api: Client, receiver: Receiver):
    job = await given.scripted(api, receiver, every="1s")

    async def finished() -> Any:
        items = (await api("GET", f"/api/v1/jobs/{job['name']}/instances?state=SUCCESS")).json["items"]
        return items and items[0]

    instance = await given.until(finished)
    found = await told(api, job, instance["fireTime"])

    assert (found["verdict"], found["at"], found["also"]) == ("FIRED", instance["fireTime"], None)
    assert found["why"].startswith(f"Fired as instance {instance['id']}: SUCCESS in its first attempt")
    assert found["instance"] == {key: value for key, value in instance.items() if key in found["instance"]}
    at = datetime.fromisoformat(found["at"])
    around = [datetime.fromisoformat(found[name]) for name in ("previous", "next")]
    assert around == [at - timedelta(seconds=1), at + timedelta(seconds=1)]
    await api("DELETE", f"/api/v1/jobs/{job['name']}")


async def test_a_skipped_slot_is_told_with_its_range(api: Client, db: Platform):
    job = await given.job(api, every="1h")
    await db.execute(
        "update horai.job set created_at = '2020-01-01', active_from = '2020-01-01' where id = $1", int(job["id"])
    )
    await db.execute(
        "insert into horai.skip (tenant_id, schedule_id, job_id, from_time, to_time, slots, reason)"
        " select tenant_id, schedule_id, id, '2026-03-02 08:00Z', '2026-03-02 10:00Z', 3, 'PAUSED_SKIP' from horai.job where id = $1",
        int(job["id"]),
    )

    found = await told(api, job, "2026-03-02T09:00:00Z")

    assert (found["verdict"], found["instance"]) == ("SKIPPED", None)
    assert found["skip"] == {
        "from": "2026-03-02T08:00:00Z",
        "to": "2026-03-02T10:00:00Z",
        "slots": 3,
        "reason": "PAUSED_SKIP",
    }


async def test_the_coming_slot_and_a_time_that_is_none(api: Client):
    job = await given.job(api, cron="0 0 1 1 *", timezone="Asia/Shanghai")
    year = datetime.now(UTC).year + 1

    coming = await told(api, job, f"{year}-01-01T00:00")
    assert (coming["verdict"], coming["local"]) == ("COMING", f"{year}-01-01T00:00:00+08:00")
    assert coming["at"] == f"{year - 1}-12-31T16:00:00Z"
    none = await told(api, job, f"{year}-01-01T00:01")
    assert (none["verdict"], none["next"]) == ("NOT_A_SLOT", f"{year}-12-31T16:00:00Z")
    assert "the minute 1 is not 0" in none["why"]


async def test_X15_a_time_that_comes_never_or_twice_is_asked_for_without_an_offset(api: Client):
    job = await given.job(api, **CLOSED)

    lost = await told(api, job, "2999-03-31T02:30")
    assert lost["local"] == "2999-03-31T03:00:00+02:00"
    assert lost["why"].startswith(
        "02:30 does not exist on 2999-03-31: the clock jumps from 02:00 to 03:00, where its slot is."
    )
    twice = await told(api, job, "2999-10-27T02:30")
    assert (twice["verdict"], twice["local"]) == ("COMING", "2999-10-27T02:30:00+02:00")
    assert (twice["also"]["verdict"], twice["also"]["local"]) == ("NOT_A_SLOT", "2999-10-27T02:30:00+01:00")
    assert "also" not in twice["also"]


async def test_an_offset_with_an_unescaped_plus_is_accepted(api: Client):
    job = await given.job(api, **CLOSED)
    found = await told(api, job, "2999-06-01T02:30:00+02:00")
    assert (found["at"], found["verdict"]) == ("2999-06-01T00:30:00Z", "COMING")


async def test_a_paused_job_holds_its_slots(api: Client):
    job = await given.job(api, **CLOSED)
    await api("POST", f"/api/v1/jobs/{job['name']}/pause", {"note": "stock-taking"})

    held = await told(api, job, "2999-06-01T02:30")

    assert held["verdict"] == "HELD"
    assert "(stock-taking)" in held["why"]


async def test_an_invalid_time_is_refused_with_a_hint(api: Client):
    job = await given.job(api, every="1h")
    expect.invalid(
        await explained(api, job, "tomorrow"), "at: is neither an instant nor a time of day", "2026-03-29T02:30"
    )
    expect.invalid(await explained(api, job, "2026-02-30T00:00"), "is not in the calendar")
    expect.invalid(await explained(api, job, "%00"), "at")
    expect.invalid(await api("GET", f"/api/v1/jobs/{job['name']}/explain"), "at")
    missing = await api("GET", "/api/v1/jobs/nobody/explain?at=2026-03-29T02:30")
    expect.problem(missing, 404, "SCH_404_NOT_FOUND", "nobody")
