"""The race of seed 000 with real processes: three clients of each unit change its time around the moment it is due."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import asyncpg
import pytest
from harness import Client
from sizes import IS_LONG

from faults.accountant import Accountant
from faults.authors import CLIENTS, SAID, Author, wishes
from faults.cluster import cluster
from faults.outside import LOOK_EVERY, LoggedHit, ReceiverProcess, job_document, receiving, until, violations
from horai.core.outcome import Complete
from horai.core.put import PutDecision
from horai.db.claims import Claim
from horai.db.pool import Platform, connect

NODES = ("one", "two", "three")
UNITS = 2_000 if IS_LONG else 50
AT_ONCE = 25
"""Units whose moment is near: on a slow machine the race takes longer, and stays one."""
AHEAD = timedelta(seconds=1)
"""From when a unit is taken up to its moment, later than its first words."""
PAST_EVERY = 20
"""The past grows, and the clients have only so much of this process: it is read at one in so many looks."""
JOB = "publish"
HOOK = "/publish?delay=0.3"
"""Long enough for a change of mind to come while the call is under way."""

Past = Sequence[asyncpg.Record]


@pytest.mark.timeout(900 if IS_LONG else 180)
async def test_A12_A14_X18_changes_of_mind_around_the_due_instant_fire_the_last_time_and_take_effect_once(
    short_place: Path, url: str, connection: Platform
) -> None:
    with receiving(short_place / "minds.hits") as receiver:
        async with cluster(short_place, url, *NODES, lease=8.0) as nodes:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
                doors = [Client(base, session) for base in nodes.doors.values()]
                job = await doors[0]("POST", "/api/v1/jobs", job_document(JOB, receiver.url(HOOK)))
                accountant = Accountant(int(job.json["id"]))
                async with watched(url, accountant):
                    await race(doors, accountant)
                    await until(lambda: nothing_is_live(connection), 60, "0 rows in a state that is not final")
                past = await connection.fetch("select * from horai.job_instance order by instance_id")
        hits = receiver.by_key()
    accountant.reported += said_by_the_business(accountant.job_id, past, hits)
    verdicts = Counter(put.verdict for put in accountant.puts)
    calls = sum(map(len, hits.values()))
    print(f"{UNITS} units, {len(accountant.puts)} puts: {dict(verdicts)}; {calls} calls", flush=True)

    assert await accountant.audit(connection) == []
    assert await violations(connection) == []
    assert len(accountant.puts) == UNITS * CLIENTS * len(SAID)
    assert verdicts[PutDecision.INSERTED] == UNITS
    for verdict in (PutDecision.UPDATED, PutDecision.SUPERSEDED, PutDecision.IGNORED):
        assert verdicts[verdict] > UNITS / 10  # else the changes came too early or too late, and this proves nothing
    assert each_succeeded_once(past) == []
    assert too_early(past, hits) == []
    assert effects(receiver) == {f"default:{JOB}:{key_of(number)}": 1 for number in range(UNITS)}


def key_of(unit: int) -> str:
    return f"article:{unit}"


async def race(doors: Sequence[Client], accountant: Accountant) -> None:
    """Every unit has its own moment; a client of it stays at its own door."""
    dice, numbers = random.Random(6), iter(range(UNITS))

    async def one_after_the_other() -> None:
        for number in numbers:
            minds = wishes(datetime.now(UTC) + AHEAD, dice)
            authors = [Author(door, JOB, key_of(number), accountant) for door in doors]
            await asyncio.gather(*(author.say(mind) for author, mind in zip(authors, minds, strict=True)))

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(one_after_the_other())


@asynccontextmanager
async def watched(url: str, accountant: Accountant) -> AsyncGenerator[None]:
    """Meanwhile the accountant looks again and again, each time at one moment of the database."""
    connection, is_over = await connect(url, "horai test watcher"), asyncio.Event()

    async def watch() -> None:
        for number in itertools.count():
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                await accountant.look_at_live(connection)
                if number % PAST_EVERY == 0:
                    await accountant.look_at_past(connection)
            if is_over.is_set():
                break
            await asyncio.sleep(LOOK_EVERY)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        is_over.set()
        await watching
        await connection.close()


async def nothing_is_live(connection: Platform) -> bool:
    return not await connection.fetchval("select exists (select from horai.instance_live)")


def said_by_the_business(
    job_id: int, past: Past, hits: Mapping[str, Sequence[LoggedHit]]
) -> list[tuple[Claim, Complete]]:
    """Return the reports of the business, which answers every call with a success.

    A claim that succeeded without a call has no report: no actor settled it.
    """
    ids = {row["idem_key"]: row["instance_id"] for row in past}
    return [
        (Claim(ids[key], job_id, call.attempt, call.fence, 0, 0), Complete())
        for key, calls in hits.items()
        for call in calls
    ]


def each_succeeded_once(past: Past) -> list[str]:
    """Return the units without exactly one success, and the instances that are neither SUCCESS nor CANCELLED."""
    successes = Counter(row["key"] for row in past if row["state"] == "SUCCESS")
    strange = [str(row) for row in past if row["state"] not in {"SUCCESS", "CANCELLED"}]
    return strange + [key for key in map(key_of, range(UNITS)) if successes[key] != 1]


def too_early(past: Past, hits: Mapping[str, Sequence[LoggedHit]]) -> list[str]:
    """Calls before the time that the instance ended for; a time moves no more once it has been called."""
    times = {row["idem_key"]: row["execute_time"] for row in past}
    return [str(call) for key, calls in hits.items() for call in calls if call.at < times[key].timestamp()]


def effects(receiver: ReceiverProcess) -> Counter[str]:
    """Count the effects of each unit."""
    return Counter(hit.unit for hit in receiver.hits() if hit.is_effective)
