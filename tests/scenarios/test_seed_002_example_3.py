"""Seed 002 §18, example 3: of triggers with the same Idempotency-Key only the first takes effect."""

import asyncio
from collections import Counter

import harness
from receiver import Answer, Receiver

from api import given

CLICKS = 40


async def test_C59c_C20_the_same_key_triggers_once_on_any_node_and_for_any_number_of_requests(url: str) -> None:
    async with Receiver() as bank, harness.node(url, name="one") as one, harness.node(url, name="two") as two:
        job = await given.scripted(one, bank, Answer(200), name="clear")
        path = f"/api/v1/jobs/{job['name']}/trigger"

        clicks = await asyncio.gather(
            *((one, two)[number % 2]("POST", path, Idempotency_Key="monday") for number in range(CLICKS))
        )
        made = [click.json["instance"]["id"] for click in clicks if click.status == 201]
        await one.until_state(made[0], "SUCCESS")
        afterwards = await two("POST", path, Idempotency_Key="monday")
        tuesday = await given.triggered(two, job, "tuesday")
        await two.until_state(tuesday["id"], "SUCCESS")

        assert Counter(click.status for click in clicks) == {201: 1, 409: CLICKS - 1}
        refused = [click.json for click in clicks if click.status == 409] + [afterwards.json]
        assert {(told["code"], told["instanceId"]) for told in refused} == {("SCH_409_DUPLICATE", made[0])}
        assert afterwards.json["state"] == "SUCCESS"
        keys = Counter(hit.headers["idempotency-key"] for hit in bank.hits)
        assert sorted(keys.values()) == [1, 1], "Monday once, and Tuesday is another day"
