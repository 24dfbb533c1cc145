"""Kinds of work over REST: one-off, delayed and periodic. Backfills are in test_backfills.py."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

from harness import Client
from receiver import Answer, Receiver

from api import given

SECOND = timedelta(seconds=1)
SHANGHAI = timezone(timedelta(hours=8))


async def instances(api: Client, job: Any, only: str = "") -> list[Any]:
    return await given.listed(api, f"/api/v1/jobs/{job['id']}/instances{only}")


async def test_C1a_a_job_with_at_runs_once_at_that_time(api: Client, receiver: Receiver) -> None:
    at = datetime.now(SHANGHAI).replace(microsecond=123_000) + SECOND
    job = await given.scripted(api, receiver, Answer(200), at=at.isoformat())

    (instance,) = await instances(api, job)
    done = await api.until_state(instance["id"], "SUCCESS")

    assert datetime.fromisoformat(instance["executeTime"]) == at
    assert at <= datetime.fromisoformat(done["startedAt"]) < at + 3 * SECOND
    assert len(given.hits(receiver, job)) == 1


async def test_C1b_a_job_with_delay_runs_once_after_it(api: Client, receiver: Receiver) -> None:
    delay = timedelta(milliseconds=300)
    asked = datetime.now(UTC)
    job = await given.scripted(api, receiver, Answer(200), delay="300ms")

    (instance,) = await instances(api, job)
    done = await api.until_state(instance["id"], "SUCCESS")

    at, created = datetime.fromisoformat(instance["executeTime"]), datetime.fromisoformat(job["createdAt"])
    assert asked + delay - timedelta(milliseconds=1) <= at <= created + delay, "times are shown in whole milliseconds"
    assert at <= datetime.fromisoformat(done["startedAt"]) < at + 3 * SECOND
    assert len(given.hits(receiver, job)) == 1


async def test_C1c_a_job_with_an_interval_runs_at_each_of_its_fire_times(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200), every="1s")

    async def ran_twice() -> bool:
        return len(await instances(api, job, "?state=DONE")) > 1

    await given.until(ran_twice)
    made = await instances(api, job)
    await api("DELETE", f"/api/v1/jobs/{job['name']}")

    fires = [datetime.fromisoformat(instance["fireTime"]) for instance in made]
    assert {later - earlier for later, earlier in pairwise(fires)} == {SECOND}
    calls = [datetime.fromisoformat(hit.json["fireTime"]) for hit in given.hits(receiver, job)]
    ran = [fire for fire, instance in zip(fires, made, strict=True) if instance["state"] == "SUCCESS"]
    assert [calls.count(fire) for fire in ran] == [1] * len(ran)
