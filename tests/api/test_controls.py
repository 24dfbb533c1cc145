"""The controls of a queue and of a job over REST, each with its effect: priority, rate, retries, replay."""

from datetime import datetime, timedelta

from harness import Client
from receiver import HOLD, Answer, Receiver

from api import given

QUEUES = "/api/v1/queues"
SOON = {"base": "10ms", "cap": "20ms", "jitter": "none"}


async def test_C3a_the_more_urgent_job_of_a_queue_runs_first(api: Client, receiver: Receiver) -> None:
    queue = given.name("urgency")
    await api("PUT", f"{QUEUES}/{queue}", {"maxConcurrency": 1})
    jobs = [await given.scripted(api, receiver, queue=queue, priority=urgency) for urgency in ("low", "normal", "core")]
    for job in jobs:  # a node learns of a new urgency of a queue with its first instance
        await api.until_state((await given.triggered(api, job))["id"], "SUCCESS")
    holder = await given.scripted(api, receiver, HOLD, queue=queue)
    await given.triggered(api, holder)

    async def is_held() -> bool:
        return bool(given.hits(receiver, holder))

    await given.until(is_held)
    waiting = [await given.triggered(api, job) for job in jobs]

    receiver.let_go()
    done = [await api.until_state(one["id"], "SUCCESS") for one in waiting]

    assert [one["priority"] for one in jobs] == ["low", "normal", "core"]
    begun = [datetime.fromisoformat(one["attempts"][0]["startedAt"]) for one in done]
    assert begun == sorted(begun, reverse=True)


async def test_C3b_calls_beyond_the_rate_of_a_queue_wait(api: Client, receiver: Receiver) -> None:
    queue = given.name("rated")
    await api("PUT", f"{QUEUES}/{queue}", {"rate": "1/h"})
    job = await given.scripted(api, receiver, queue=queue)
    first, second = [await given.triggered(api, job) for _ in range(2)]

    async def ended() -> set[str]:
        found = await given.listed(api, f"/api/v1/instances?job={job['name']}&state=SUCCESS")
        return {one["id"] for one in found}

    (other,) = {first["id"], second["id"]} - await given.until(ended)

    async def is_rated() -> bool:
        return "1/h" in (await api("GET", f"/api/v1/instances/{other}/why")).json["why"]

    await given.until(is_rated)
    assert len(given.hits(receiver, job)) == 1


async def test_C3c_a_failed_call_is_tried_again_as_its_job_says(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(503), Answer(503), Answer(200), retry={"maxRetry": 2, **SOON})

    done = await api.until_state((await given.triggered(api, job))["id"], "SUCCESS")

    assert (done["attempt"], len(given.hits(receiver, job))) == (3, 3)


async def test_C3d_a_dead_letter_is_replayed_and_runs(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(503), Answer(200), retry={"maxRetry": 0})
    await api.until_state((await given.triggered(api, job))["id"], "DEAD")
    (letter,) = await given.listed(api, f"/api/v1/dlq?job={job['name']}")

    made = (await api("POST", f"/api/v1/dlq/{letter['id']}/replay")).json["instance"]

    await api.until_state(made["id"], "SUCCESS")
    assert (await api("GET", f"/api/v1/dlq/{letter['id']}")).json["replayStatus"] == "REPLAYED"
    assert datetime.fromisoformat(made["createdAt"]) - datetime.fromisoformat(letter["createdAt"]) > timedelta()
