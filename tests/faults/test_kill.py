"""kill -9 of `horai up`, of its PostgreSQL, and of both, under load: nothing acknowledged is lost, stuck or doubled.

Duplicates are allowed for what was in flight at a kill, and known by it: such an instance has an attempt that ended
with NODE_LOST. Every further call of it carries the same Idempotency-Key and the same Horai-Unit.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from harness import Client, HoraiProcess

from faults.load import RETRY
from faults.outside import (
    IS_LONG,
    LOOK_EVERY,
    ReceiverProcess,
    database,
    job_document,
    kill_postmaster,
    lost_attempts,
    receiving,
    until,
    violations,
)

ROUNDS = 20 if IS_LONG else 3
PER_ROUND = 150
WRITERS = 3
BATCH = 5


@dataclass
class Load:
    """Clients that create instances without a break, and remember which were acknowledged."""

    horai: HoraiProcess
    session: aiohttp.ClientSession
    acknowledged: set[int] = field(default_factory=set[int])
    refused: int = 0
    writers: list["asyncio.Task[None]"] = field(default_factory=list["asyncio.Task[None]"])
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    @property
    def api(self) -> Client:
        return Client(self.horai.base, self.session)

    async def write(self) -> None:
        """Write until cancelled. A write without an answer may or may not be there: no check counts on it."""
        while True:
            try:
                await self._write_once()
            except (aiohttp.ClientError, TimeoutError, ConnectionError):
                self.refused += 1
                await asyncio.sleep(LOOK_EVERY)

    async def _write_once(self) -> None:
        number = next(self._numbers)
        if number % 3:
            put = await self.api("PUT", f"/api/v1/jobs/load/instances/key-{number}", {"executeTime": _now()})
            if put.status == 201:
                self.acknowledged.add(int(put.json["instance"]["id"]))
            else:
                await self._stand_back(put.status)
        else:
            items = [{"key": f"key-{number}-{item}"} if item % 2 else {} for item in range(BATCH)]
            batch = await self.api("POST", "/api/v1/jobs/load/instances/batch", {"items": items})
            if batch.status == 200:
                self.acknowledged |= {int(item["instanceId"]) for item in batch.json["items"]}
            else:
                await self._stand_back(batch.status)

    async def _stand_back(self, status: int) -> None:
        assert status == 503, f"the API answered {status}"
        self.refused += 1
        await asyncio.sleep(LOOK_EVERY)

    async def until_more(self, count: int) -> None:
        wanted = len(self.acknowledged) + count

        async def enough() -> bool:
            for writer in self.writers:
                if writer.done():
                    writer.result()
            return len(self.acknowledged) >= wanted

        await until(enough, 60, f"{count} more instances acknowledged")


def _now() -> str:
    return datetime.now(UTC).isoformat()


async def kill(round_number: int, horai: HoraiProcess) -> None:
    """Horai, its PostgreSQL, or both; and start again what does not start by itself."""
    victim = ("horai", "postmaster", "both")[round_number % 3]
    if victim in {"postmaster", "both"}:
        kill_postmaster(horai.data_dir)
    if victim in {"horai", "both"}:
        await asyncio.to_thread(horai.kill)
        await asyncio.to_thread(horai.start)


@contextlib.asynccontextmanager
async def load(horai: HoraiProcess, receiver: ReceiverProcess) -> AsyncGenerator[Load]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15)) as session:
        running = Load(horai, session)
        document = job_document("load", receiver.url("/hook?delay=0.1"), timeout="10s", retry=RETRY)
        assert (await running.api("POST", "/api/v1/jobs", document)).status == 201
        running.writers = [asyncio.create_task(running.write()) for _ in range(WRITERS)]
        try:
            yield running
        finally:
            for writer in running.writers:
                writer.cancel()
            await asyncio.gather(*running.writers, return_exceptions=True)
        assert all(writer.cancelled() for writer in running.writers)


@pytest.mark.timeout(1800 if IS_LONG else 180)
async def test_B18_nothing_acknowledged_is_lost_when_everything_is_killed_under_load(short_place: Path) -> None:
    horai = HoraiProcess(short_place / "killed", "--lease-ttl", "2s")
    await asyncio.to_thread(horai.start)
    try:
        with receiving(short_place / "killed.hits") as receiver:
            async with load(horai, receiver) as running:
                for number in range(ROUNDS):
                    await running.until_more(PER_ROUND)
                    await kill(number, horai)
                await running.until_more(PER_ROUND)
            await everything_ends_well(horai, receiver, running)
    except BaseException:
        print("\n".join((short_place / "killed.log").read_text().splitlines()[-200:]))
        raise
    finally:
        code = await asyncio.to_thread(horai.stop)
    assert code == 0


async def everything_ends_well(horai: HoraiProcess, receiver: ReceiverProcess, running: Load) -> None:
    async with database(horai.data_dir) as connection:

        async def nothing_is_live() -> bool:
            return not await connection.fetchval("select exists (select from horai.instance_live)")

        await until(nothing_is_live, 60, "0 rows in a state that is not final")
        lost = running.acknowledged - {
            row["id"] for row in await connection.fetch("select id from horai.instance_history where state = 2")
        }
        assert lost == set()
        assert await violations(connection) == []
        in_flight = await lost_attempts(connection)
    hits = receiver.by_key()
    duplicated = {key: len(of_key) - 1 for key, of_key in hits.items() if len(of_key) > 1}
    print(
        f"{ROUNDS} kills: {len(running.acknowledged)} acknowledged, {running.refused} refused,"
        f" {len(in_flight)} in flight at a kill, {sum(duplicated.values())} duplicates"
    )
    assert {key: more for key, more in duplicated.items() if more > in_flight.get(key, 0)} == {}
    assert [key for key, of_key in hits.items() if len({hit.unit for hit in of_key}) > 1] == []
    assert [key for key, of_key in hits.items() if len({hit.attempt for hit in of_key}) < len(of_key)] == []
