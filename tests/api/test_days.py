"""The results of a job, day by day."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from harness import Client
from receiver import Answer, Receiver

from api import expect, given
from horai.db.pool import Platform
from horai.features.overview import days_store


async def days_of(api: Client, job: Any, query: str = "") -> Any:
    reply = await api("GET", f"/api/v1/jobs/{job['name']}/days{query}")
    assert reply.status == 200, reply.json
    return reply.json


async def test_the_days_of_a_job_tell_what_ended_on_them(api: Client, receiver: Receiver, db: Platform) -> None:
    job = await given.scripted(
        api, receiver, Answer(200), Answer(200), Answer(400), cron="0 0 1 1 *", timezone="Asia/Shanghai"
    )
    for state in ("SUCCESS", "SUCCESS", "DEAD"):
        made = await given.triggered(api, job)
        await api.until_state(made["id"], state)
    other = await given.scripted(api, receiver, Answer(200))
    await api.until_state((await given.triggered(api, other))["id"], "SUCCESS")
    await db.execute(
        "update horai.instance_history set fire_time = fire_time - interval '3 days' where id = $1", int(made["id"])
    )

    told = await days_of(api, job)

    assert (told["timezone"], len(told["days"])) == ("Asia/Shanghai", 91)
    counts = {each["date"]: (each["succeeded"], each["dead"], each["more"]) for each in told["days"]}
    latest = datetime.fromisoformat(told["days"][-1]["date"]).date()
    assert counts[str(latest)] == (2, 0, False)
    assert counts[str(latest - timedelta(days=3))] == (0, 1, False)
    assert sum(succeeded + dead for succeeded, dead, _ in counts.values()) == 3
    assert told["days"][0]["from"].endswith("T16:00:00Z"), "midnight in Shanghai"


async def test_a_day_with_very_many_says_that_not_all_were_counted(
    api: Client, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await given.scripted(api, receiver, *[Answer(200)] * 3)
    for _ in range(3):
        await api.until_state((await given.triggered(api, job))["id"], "SUCCESS")
    monkeypatch.setattr(days_store, "LOOKED_AT", 2)

    today = (await days_of(api, job, "?weeks=1&timezone=UTC"))["days"][-1]

    assert (today["succeeded"], today["more"]) == (2, True)


@pytest.mark.parametrize("query", ["weeks=0", "weeks=14", "timezone=Mars/Olympus", "days=3"])
async def test_invalid_parameters_of_the_days_route_are_refused(api: Client, query: str) -> None:
    job = await given.job(api)

    expect.invalid(await api("GET", f"/api/v1/jobs/{job['name']}/days?{query}"))
