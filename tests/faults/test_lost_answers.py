"""The database takes effect and its answer is lost; the network is slow, silent or broken; the server is away."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
import pytest
from harness import Client
from receiver import Answer, Receiver
from sizes import IS_LONG

from faults.outside import LOOK_EVERY, job_document, until, violations
from faults.proxy import Proxy
from horai.db.pool import Platform
from horai.embedded import EmbeddedPostgres, EmbeddedSettings

SILENCE_SECONDS = 5.0
RECOVERY_SECONDS = 40.0


@dataclass(frozen=True)
class Field:
    """A node that reaches its database through a proxy, and the target of its job `publish`."""

    api: Client
    proxy: Proxy
    receiver: Receiver

    async def put(self, key: str) -> str:
        """The id of a new instance, asked for until the API takes it."""
        made: list[Any] = []

        async def is_taken() -> bool:
            answer = await self.api("PUT", f"/api/v1/jobs/publish/instances/{key}", {})
            made.append(answer.json)
            return answer.status in {200, 201}

        await until(is_taken, RECOVERY_SECONDS, f"the API takes a put of {key}")
        return made[-1]["instance"]["id"]

    async def succeeds(self, instance_id: str) -> Any:
        found: list[Any] = []

        async def is_done() -> bool:
            answer = await self.api("GET", f"/api/v1/instances/{instance_id}")
            found.append(answer.json)
            return answer.status == 200 and answer.json["state"] == "SUCCESS"

        await until(is_done, RECOVERY_SECONDS, f"instance {instance_id} succeeds")
        return found[-1]


@asynccontextmanager
async def field(url: str, *answers: Answer) -> AsyncGenerator[Field]:
    async with Receiver() as receiver, Proxy(url).listening() as proxy, harness.node(proxy.url) as api:
        receiver.on("/hook", *(answers or (Answer(200),)))
        retry = {"base": "10ms", "jitter": "none"}
        created = await api("POST", "/api/v1/jobs", job_document("publish", receiver.url("/hook"), retry=retry))
        assert created.status == 201
        yield Field(api, proxy, receiver)


async def late_attempts(connection: Platform) -> int:
    return await connection.fetchval("select count(*) from horai.attempt where late")


async def test_a_claim_whose_answer_was_lost_is_given_back_and_run_once(url: str, connection: Platform) -> None:
    async with field(url) as on:
        trap = on.proxy.cut_after("claim_due")
        instance = await on.put("article:42")
        await asyncio.wait_for(trap.sprung.wait(), 20)

        done = await on.succeeds(instance)

        assert (done["attempt"], done["retryCount"], len(on.receiver.hits)) == (1, 0, 1)
        told = await connection.fetch("select kind from horai.event where instance_id = $1", int(instance))
        assert [row["kind"] for row in told] == ["INSTANCE_RELEASED"]
        assert await violations(connection) == []


async def test_a_success_whose_commit_was_not_answered_is_recorded_once_and_not_kept_as_late(
    url: str, connection: Platform
) -> None:
    async with field(url) as on:
        trap = on.proxy.cut_after("finish_if_running")  # one statement, committed when it is answered
        instance = await on.put("article:42")
        await asyncio.wait_for(trap.sprung.wait(), 20)

        done = await on.succeeds(instance)
        after = await on.put("article:43")  # settled after the lost one has been reported again
        await on.succeeds(after)

        assert (done["attempt"], len(on.receiver.hits)) == (1, 2)
        assert await late_attempts(connection) == 0
        health = (await on.api("GET", "/api/v1/scheduler/health")).json
        assert (health["lateResults"], health["unsettled"]) == (0, 0)
        assert await violations(connection) == []


async def test_a_failure_whose_commit_was_not_answered_is_counted_once(url: str, connection: Platform) -> None:
    async with field(url, Answer(503), Answer(200)) as on:
        trap = on.proxy.cut_after("fail_if_running", at_commit=True)
        instance = await on.put("article:42")
        await asyncio.wait_for(trap.sprung.wait(), 20)

        done = await on.succeeds(instance)

        assert (done["attempt"], done["retryCount"], len(on.receiver.hits)) == (2, 1, 2)
        assert await late_attempts(connection) == 0
        assert await violations(connection) == []


async def test_a_death_whose_commit_was_not_answered_has_one_letter(url: str, connection: Platform) -> None:
    async with field(url, Answer(400), Answer(200)) as on:
        trap = on.proxy.cut_after("bury_if_running", at_commit=True)
        dead = await on.put("article:42")
        await asyncio.wait_for(trap.sprung.wait(), 20)
        await on.succeeds(await on.put("article:43"))

        letters = await connection.fetch("select instance_id from horai.dead_letter")
        assert [row["instance_id"] for row in letters] == [int(dead)]
        assert await late_attempts(connection) == 0
        assert await violations(connection) == []


async def test_a_put_whose_commit_was_not_answered_can_be_repeated_and_runs_once(
    url: str, connection: Platform
) -> None:
    async with field(url, Answer(200, delay=0.2)) as on:
        trap = on.proxy.cut_after("insert_fresh")
        lost = await on.api("PUT", "/api/v1/jobs/publish/instances/article:42", {"executeTime": "2100-01-01T00:00:00Z"})
        assert trap.sprung.is_set()
        assert (lost.status, lost.json["code"]) == (503, "SCH_503_DATABASE_UNAVAILABLE")

        await on.succeeds(await on.put("article:42"))

        assert await connection.fetchval("select count(*) from horai.job_instance") == 1
        assert len(on.receiver.hits) == 1
        assert await violations(connection) == []


async def test_a_node_recovers_by_itself_after_its_connections_were_reset(url: str, connection: Platform) -> None:
    async with field(url) as on:
        await on.succeeds(await on.put("before"))
        for number in range(3):
            on.proxy.break_all()
            await on.succeeds(await on.put(f"after-{number}"))

        assert {hit.headers["horai-attempt"] for hit in on.receiver.hits} <= {"1", "2"}
        assert len({hit.unit for hit in on.receiver.hits}) == len(on.receiver.hits) == 4
        assert await violations(connection) == []


async def test_a_connection_that_breaks_during_a_request_is_answered_with_503_and_never_with_500(
    url: str, connection: Platform
) -> None:
    """asyncpg has its own word for a connection that breaks between two of its steps: InternalClientError."""
    statuses: Counter[int] = Counter()
    taken = asyncio.Event()
    async with field(url) as on:

        async def write(part: int) -> None:
            for number in range(60 if IS_LONG else 30):
                body = {"executeTime": "2100-01-01T00:00:00Z"}
                answer = await on.api("PUT", f"/api/v1/jobs/publish/instances/key-{part}-{number}", body)
                statuses[answer.status] += 1
                if answer.status == 201:
                    taken.set()

        writing = asyncio.gather(*(write(part) for part in range(6)))
        while not writing.done():
            for _ in range(3):
                on.proxy.break_all()
                await asyncio.wait({writing}, timeout=LOOK_EVERY)
            taken.clear()  # one gets through, however busy this machine
            taking = asyncio.create_task(taken.wait())
            await asyncio.wait({writing, taking}, timeout=RECOVERY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            taking.cancel()
        await writing

    assert set(statuses) == {201, 503}
    assert await violations(connection) == []


async def test_a_node_recovers_by_itself_after_five_silent_seconds(url: str, connection: Platform) -> None:
    async with field(url) as on:
        await on.succeeds(await on.put("before"))
        on.proxy.set_mode("blackhole")
        loop = asyncio.get_running_loop()
        end = loop.time() + SILENCE_SECONDS

        async def is_over() -> bool:
            return loop.time() >= end

        await until(is_over, 2 * SILENCE_SECONDS, "the silence is over")
        on.proxy.set_mode("pass")

        await on.succeeds(await on.put("after"))
        assert len({hit.unit for hit in on.receiver.hits}) == len(on.receiver.hits) == 2
        assert await violations(connection) == []


async def test_a_slow_network_only_makes_it_slow(url: str, connection: Platform) -> None:
    async with field(url) as on:
        on.proxy.set_mode("delay")

        done = await on.succeeds(await on.put("article:42"))

        assert done["attempt"] == 1
        assert await violations(connection) == []
        on.proxy.set_mode("pass")  # the stop is not what is slow here


@pytest.mark.timeout(120)
async def test_while_postgresql_is_stopped_the_api_answers_503_and_all_goes_on_when_it_is_back(
    short_place: Path,
) -> None:
    server = EmbeddedPostgres(EmbeddedSettings(short_place / "stopped"))
    await server.start()
    try:
        async with Receiver() as receiver, harness.node(server.url) as api:
            await api("POST", "/api/v1/jobs", job_document("publish", receiver.url("/hook")))
            await server.stop()

            refused = await api("PUT", "/api/v1/jobs/publish/instances/during", {})
            assert refused.status == 503
            assert refused.headers["content-type"] == "application/problem+json"
            assert refused.json["code"] == "SCH_503_DATABASE_UNAVAILABLE"
            assert (await api("GET", "/readyz")).status == 503
            assert (await api("GET", "/healthz")).status == 200

            await server.start()
            answered: list[Any] = []

            async def is_taken() -> bool:
                answered.append(await api("PUT", "/api/v1/jobs/publish/instances/after", {}))
                return answered[-1].status == 201

            await until(is_taken, RECOVERY_SECONDS, "the API takes requests again")
            await api.until_state(answered[-1].json["instance"]["id"], "SUCCESS", within=RECOVERY_SECONDS)
            assert len(receiver.hits) == 1
    finally:
        await server.stop()
