"""From a job over REST to a settled instance."""

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

        await receiver.wait_for(2)

        listed = await api("GET", "/api/v1/jobs/tick/instances?state=DONE")
        assert listed.json["items"][0]["state"] == "SUCCESS"
