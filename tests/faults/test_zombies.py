"""Nodes that stop without knowing it, and come back: what they say then is kept, and changes nothing."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import harness
from harness import Client, HoraiProcess
from receiver import DROP, HANG, HOLD, Answer, Receiver

from faults.outside import job_document, until, violations
from horai.db.pool import Platform

LEASE_SECONDS = 2
RESCUE_SECONDS = 2
SLACK_SECONDS = 8
"""For a busy machine; what is proved is that it happens by itself, and soon."""
WITHOUT_GATES = json.dumps(
    {"horai.core.circuit_breaker.FEWEST_RESULTS": 1_000_000, "horai.core.retry_budget.SPAN": 0.001}
)
"""Targets that fail are called again and again, as the test wants it: no breaker opens, and no retry counts for a budget."""


@contextmanager
def stopped(pid: int) -> Generator[None]:
    """SIGSTOP, and SIGCONT in the end."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@asynccontextmanager
async def process(place: Path, url: str, name: str) -> AsyncGenerator[tuple[HoraiProcess, Client]]:
    """A node of its own process on a shared database."""
    node = HoraiProcess(
        place / f"{name}-{os.urandom(4).hex()}",
        "--lease-ttl", f"{LEASE_SECONDS}s", "--name", name, "--grace", "1s", "--database-url", url,
        HORAI_TEST_CONSTANTS=WITHOUT_GATES,
    )  # fmt: skip
    await asyncio.to_thread(node.start)
    try:
        async with aiohttp.ClientSession() as session:
            yield node, Client(node.base, session)
    finally:
        await asyncio.to_thread(node.stop)


async def put(api: Client, job: str, key: str) -> int:
    answer = await api("PUT", f"/api/v1/jobs/{job}/instances/{key}", {})
    assert answer.status == 201
    return int(answer.json["instance"]["id"])


async def held_by(connection: Platform, name: str) -> int:
    """Count the instances that run on the node of this name."""
    return await connection.fetchval(
        "select count(*) from horai.instance_live live join horai.node on node.incarnation = live.node where node.name = $1",
        name,
    )


async def finished(connection: Platform, instance_id: int) -> tuple[object, ...] | None:
    row = await connection.fetchrow("select * from horai.instance_history where id = $1", instance_id)
    return None if row is None else tuple(row.values())


async def test_B17_a_stopped_node_that_comes_back_changes_nothing_and_its_result_is_kept_as_late(
    short_place: Path, url: str, connection: Platform
) -> None:
    async with Receiver() as receiver, process(short_place, url, "zombie") as (zombie, api):
        receiver.on("/hook", Answer(200, delay=0.3), Answer(200))
        await api("POST", "/api/v1/jobs", job_document("publish", receiver.url("/hook"), timeout="60s"))
        instance = await put(api, "publish", "article:42")
        await receiver.wait_for(1)
        with stopped(zombie.pid):
            async with harness.node(url) as other:
                await other.until_state(str(instance), "SUCCESS", within=LEASE_SECONDS + RESCUE_SECONDS + SLACK_SECONDS)
            before = await finished(connection, instance)

        async def is_kept() -> object:
            return await connection.fetchval("select count(*) from horai.attempt where late")

        await until(is_kept, 20, "the stale result is kept as late")
        assert await finished(connection, instance) == before
        tries = await connection.fetch(
            "select attempt, fence, late, outcome, error_code from horai.attempt order by late"
        )
        assert [tuple(row) for row in tries] == [(1, 1, False, "LOST", "NODE_LOST"), (1, 1, True, "SUCCESS", None)]
        told = await connection.fetch("select kind from horai.event where instance_id = $1 order by id", instance)
        assert [row["kind"] for row in told] == ["INSTANCE_LOST", "INSTANCE_LATE_RESULT"]
        assert (await api("GET", "/api/v1/scheduler/health")).json["lateResults"] == 1
        assert {hit.headers["idempotency-key"] for hit in receiver.hits} == {
            receiver.hits[0].headers["idempotency-key"]
        }
        assert [hit.headers["horai-fence"] for hit in receiver.hits] == ["1", "2"]
        assert await violations(connection) == []


async def test_a_stopped_node_that_comes_back_goes_on_working_as_a_new_incarnation(
    short_place: Path, url: str, connection: Platform
) -> None:
    async with Receiver() as receiver, process(short_place, url, "zombie") as (zombie, api):
        await api("POST", "/api/v1/jobs", job_document("publish", receiver.url("/hook")))
        await put(api, "publish", "before")
        await receiver.wait_for(1)
        with stopped(zombie.pid):
            async with harness.node(url):

                async def is_fenced() -> object:
                    return await connection.fetchval(
                        "select exists (select from horai.node where fenced_at is not null)"
                    )

                await until(is_fenced, LEASE_SECONDS + RESCUE_SECONDS + SLACK_SECONDS, "the stopped node is fenced")

        after = await put(api, "publish", "after")

        await api.until_state(str(after), "SUCCESS", within=30)
        incarnations = await connection.fetch("select incarnation from horai.node where name = 'zombie'")
        assert len(incarnations) == 2
        assert await violations(connection) == []


async def test_B17_dirty_running_rows_after_a_crash_fail_or_die_by_their_loss_cap_within_lease_and_sweep(
    short_place: Path, url: str, connection: Platform
) -> None:
    async with Receiver() as receiver, process(short_place, url, "crashed") as (crashed, api):
        receiver.on("/hang", HANG)
        for name, most in (("patient", 5), ("final", 0)):
            document = job_document(name, receiver.url("/hang"), timeout="60s", retry={"maxLost": most, "base": "60s"})
            await api("POST", "/api/v1/jobs", document)
        patient, final = [await put(api, job, "article:42") for job in ("patient", "final")]
        await receiver.wait_for(2)
        assert await connection.fetchval("select count(*) from horai.instance_live where state = 1") == 2
        await asyncio.to_thread(crashed.kill)

        async with harness.node(url) as other:
            within = LEASE_SECONDS + RESCUE_SECONDS + SLACK_SECONDS
            failed = await other.until_state(str(patient), "FAIL", within=within)
            dead = await other.until_state(str(final), "DEAD", within=within)

        for told in (failed, dead):
            assert (told["errorCode"], told["attempt"]) == ("NODE_LOST", 1)
            assert (told["retryCount"], told["lostCount"]) == (0, 1), "a loss is not a failure"
        letter = await connection.fetchrow("select instance_id, tags from horai.dead_letter")
        assert letter is not None
        assert (letter["instance_id"], "crash_loop" in letter["tags"]) == (final, True)
        assert await violations(connection) == []


async def test_B18_chaos_converges_to_no_row_in_a_state_that_is_not_final(
    short_place: Path, url: str, connection: Platform
) -> None:
    """Two nodes, one stopped beyond its lease, then killed; targets that work, fail, drop and recover."""
    retry = {"maxRetry": 3, "base": "20ms", "jitter": "full"}
    scripts = {
        "works": [HOLD],  # in flight when the node is stopped, however busy this machine
        "recovers": [Answer(503), Answer(503), Answer(200)],
        "fails": [Answer(503)],
        "drops": [DROP],
        "refuses": [Answer(400)],
    }
    async with (
        Receiver() as receiver,
        process(short_place, url, "one") as (one, api),
        process(short_place, url, "two") as (_, other),
    ):
        for name, answers in scripts.items():
            receiver.on(f"/{name}", *answers)
            document = job_document(name, receiver.url(f"/{name}"), timeout="10s", retry=retry)
            assert (await api("POST", "/api/v1/jobs", document)).status == 201
        for client, part in ((api, "a"), (other, "b")):
            for name in scripts:
                items = [{"key": f"{part}-{number}"} for number in range(20)]
                assert (await client("POST", f"/api/v1/jobs/{name}/instances/batch", {"items": items})).status == 200
        await until(lambda: held_by(connection, "one"), 20, "node one has work in flight")
        with stopped(one.pid):

            async def is_fenced() -> object:
                return await connection.fetchval("select exists (select from horai.node where fenced_at is not null)")

            await until(is_fenced, LEASE_SECONDS + RESCUE_SECONDS + SLACK_SECONDS, "the stopped node is fenced")
        await asyncio.to_thread(one.kill)
        receiver.let_go()

        async def nothing_is_live() -> bool:
            return not await connection.fetchval("select exists (select from horai.instance_live)")

        await until(nothing_is_live, 60, "0 rows in a state that is not final")

    rows = await connection.fetch("select state, count(*) from horai.instance_history group by state")
    counts: dict[int, int] = {row["state"]: row["count"] for row in rows}
    assert sum(counts.values()) == 200
    assert set(counts) == {2, 4}
    assert await connection.fetchval("select count(*) from horai.dead_letter") == counts[4]
    lost = await connection.fetchval("select count(*) from horai.attempt where error_code = 'NODE_LOST'")
    assert lost > 0  # else no node was disturbed, and this would prove nothing
    assert await violations(connection) == []
