"""C47: a large payload stays in its row until an attempt is about to run, and is read by the claim's own fence."""

import json
import random
import string
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import asyncpg
import make
import pytest
from stages import Workbench, workbench

from horai.core.outcome import Release
from horai.core.queue import QueueSettings
from horai.db import claims, queues
from horai.db.claims import ClaimedBy, ClaimedRow, Position
from horai.db.pool import Platform
from horai.operations import queues as setting
from horai.operations.scope import Scope

LARGE = 100_000


def noise(size: int, seed: int = 1) -> str:
    """Text that cannot be stored any smaller."""
    return "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=size))


async def large(scope: Scope, connection: Platform) -> tuple[ClaimedRow, str]:
    """A claimed instance of 100 kB, and its payload."""
    await make.job(scope)
    text = noise(LARGE)
    await make.put(scope, "article:42", payload=text)
    (claimed,) = await make.claim(connection, await make.node(connection))
    return claimed, json.dumps(text)


# What a claim carries


async def test_C47_a_large_payload_does_not_travel_with_the_claim_and_is_there_for_its_holder(
    url: str, connection: Platform
):
    async with make.scope(url) as scope:
        claimed, text = await large(scope, connection)

        assert claimed.payload is None
        assert claimed.has_large_payload is True
        assert await claims.payload_of(connection, claimed.held) == text


async def test_C47_a_claim_with_a_slot_leaves_a_large_payload_behind_as_well(url: str, connection: Platform):
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await setting.set_queue(scope, "default", QueueSettings(max_concurrency=5))
        for key, size in (("large", LARGE), ("small", 10)):
            await make.put(scope, key, payload=noise(size))
        by = ClaimedBy(await make.node(connection), 1, datetime.now(UTC))
        queue = await setting.read_queue(scope, "default")
        positions = [Position(shard, job.lane_id, make.LONG_AGO, -1) for shard in range(32)]

        claimed = {row.key: row for row in await queues.claim_limited(connection, by, queue.id, positions, 5)}

        assert (claimed["large"].payload, claimed["large"].has_large_payload) == (None, True)
        assert (claimed["small"].payload, claimed["small"].has_large_payload) == (json.dumps(noise(10)), False)


@pytest.mark.parametrize("size", [0, 1000, 8000])
async def test_C47_a_small_payload_comes_with_the_claim(url: str, connection: Platform, size: int):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, "k", payload=noise(size))

        (claimed,) = await make.claim(connection, await make.node(connection))

        assert (claimed.payload, claimed.has_large_payload) == (json.dumps(noise(size)), False)


async def test_C47_a_payload_that_compresses_well_is_large_all_the_same(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, "k", payload="x" * LARGE)

        (claimed,) = await make.claim(connection, await make.node(connection))

        assert (claimed.payload, claimed.has_large_payload) == (None, True)


async def test_no_payload_is_not_a_large_one(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, "k")

        (claimed,) = await make.claim(connection, await make.node(connection))

        assert claimed.payload is None
        assert not claimed.has_large_payload
        assert await claims.payload_of(connection, claimed.held) is None


# Whose it is to read


async def _supersede(scope: Scope, _connection: Platform, _claimed: ClaimedRow) -> None:
    await make.put(scope, "article:42", payload="something else")


async def _release(_scope: Scope, connection: Platform, claimed: ClaimedRow) -> None:
    await claims.release_if_running(connection, [(claimed.held, Release())])


async def _claim_again(scope: Scope, connection: Platform, claimed: ClaimedRow) -> None:
    await _release(scope, connection, claimed)
    assert await make.claim(connection, claimed.held.node)


MEANWHILE: dict[str, Callable[[Scope, Platform, ClaimedRow], Awaitable[None]]] = {
    "superseded": _supersede,
    "released": _release,
    "released and claimed again": _claim_again,
}


@pytest.mark.parametrize("end", MEANWHILE.values(), ids=MEANWHILE.keys())
async def test_C47_the_payload_of_a_claim_that_is_over_is_nobodys_to_read(
    url: str, connection: Platform, end: Callable[[Scope, Platform, ClaimedRow], Awaitable[None]]
):
    async with make.scope(url) as scope:
        claimed, _ = await large(scope, connection)
        await end(scope, connection, claimed)

        with pytest.raises(LookupError, match=str(claimed.held.id)):
            await claims.payload_of(connection, claimed.held)


# On its way to the executor


async def hand_out(bench: Workbench, claimed: list[ClaimedRow]) -> None:
    """Start the claimed rows as a dispatcher does, after the test has made its changes."""
    made = bench.parts()
    bench.in_flight.add(claimed)
    await made.admission.start(bench.connection, claimed, bench.clock.now())
    await bench.settle()


async def test_C47_a_large_payload_arrives_at_the_executor_whole(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        texts = {f"article:{n}": noise(LARGE, n) for n in range(20)}
        for key, text in texts.items():
            await make.put(bench.scope, key, payload=text)
        bench.executor.gate.set()

        await bench.dispatcher().step(bench.clock.now())
        await bench.called(20)
        await bench.settle()

        assert {call.key: call.payload for call in bench.executor.calls} == {
            key: json.dumps(text) for key, text in texts.items()
        }
        assert await bench.states() == {"SUCCESS": 20}


async def test_C47_an_instance_superseded_before_its_payload_was_read_is_not_sent(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.put(bench.scope, "article:42", payload=noise(LARGE))
        claimed = await make.claim(bench.connection, bench.lease.incarnation)
        await make.put(bench.scope, "article:42", payload="the new one")
        bench.executor.gate.set()

        await hand_out(bench, claimed)

        assert bench.executor.calls == []
        assert await bench.states() == {"CANCELLED": 1, "INIT": 1}
        assert await bench.connection.fetchval("select count(*) from horai.attempt") == 0, "nothing was tried"
        assert bench.health.late_results == 0


async def test_C47_an_instance_whose_payload_cannot_be_read_is_given_back_and_counts_no_failure(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        (reading,) = [line for line in bench.lines if line._application == "horai attempts"]
        with pytest.raises(asyncpg.DivisionByZeroError):  # a transaction that has failed: the next statement does too
            await (await reading.get()).execute("begin; select 1 / 0")
        bench.executor.gate.set()
        await make.put(bench.scope, "article:42", payload=noise(LARGE))

        await dispatcher.step(bench.clock.now())
        await bench.settle()
        assert (await bench.states(), bench.executor.calls) == ({"INIT": 1}, [])
        await bench.connection.execute("update horai.instance_live set due = clock_timestamp()")  # the pause is over
        dispatcher.rescan_all()
        await dispatcher.step(bench.clock.now())
        await bench.called(1)
        await bench.settle()

        (call,) = bench.executor.calls
        assert (call.attempt, call.payload) == (1, json.dumps(noise(LARGE)))
        done = await bench.connection.fetchrow("select state, retry_count from horai.job_instance")
        assert done is not None
        assert tuple(done) == ("SUCCESS", 0)
