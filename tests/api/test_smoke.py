"""From a job over REST to a settled instance."""

from datetime import timedelta

import harness
from receiver import Receiver


async def test_C57_a_job_is_created_fired_called_and_settled(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        created = await api(
            "POST",
            "/api/v1/jobs",
            {"name": "tick", "every": "1s", "target": {"type": "http", "url": receiver.url("/ok")}},
        )
        assert created.status == 201

        await receiver.wait_for(3)

        listed = await api("GET", "/api/v1/jobs/tick/instances?state=DONE")
        assert listed.json["items"][0]["state"] == "SUCCESS"


async def test_the_first_instance_of_a_new_lane_runs_without_waiting_for_a_sweep(url: str) -> None:
    async with Receiver() as receiver, harness.node(url, sweep=timedelta(hours=1)) as api:
        await api(
            "POST",
            "/api/v1/jobs",
            {"name": "now", "delay": "0s", "target": {"type": "http", "url": receiver.url("/ok")}},
        )

        await receiver.wait_for(1, timeout=30)
