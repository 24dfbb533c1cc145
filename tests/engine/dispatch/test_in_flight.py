import asyncio
import time

import pytest

from horai.core.health import EngineHealth
from horai.core.prefetch import Prefetch
from horai.core.shares import Shares
from horai.db.claims import Claim, ClaimedRow
from horai.engine.dispatch.in_flight import InFlight
from horai.engine.dispatch.scans import START


def held(instance_id: int, fence: int = 1) -> Claim:
    return Claim(instance_id, 1, 1, fence, 1, 0)


def claimed(instance_id: int, fence: int = 1) -> ClaimedRow:
    return ClaimedRow(held(instance_id, fence), 1, START, 0, None, START, START, START, None, None)


async def test_B6_claims_in_flight_are_bounded_and_counted():
    health = EngineHealth()
    in_flight = InFlight(2, health)
    in_flight.add([claimed(n) for n in (1, 2)])

    assert (in_flight.room, len(in_flight), health.in_flight) == (0, 2, 2)
    in_flight.drop([held(1)])
    assert (in_flight.room, len(in_flight), health.in_flight) == (1, 1, 1)


async def test_B6_only_a_full_house_signals_that_there_is_room():
    in_flight = InFlight(2, EngineHealth())
    in_flight.freed = asyncio.Event()
    in_flight.add([claimed(1)])
    in_flight.drop([held(1)])
    assert not in_flight.freed.is_set()
    in_flight.add([claimed(1), claimed(2)])
    assert in_flight.room == 0

    in_flight.drop([held(1)])

    assert in_flight.freed.is_set()


async def test_a_dispatcher_that_found_no_room_is_woken_when_the_prefetch_pace_makes_room(
    monkeypatch: pytest.MonkeyPatch,
):
    now = 100.0
    monkeypatch.setattr("horai.engine.dispatch.in_flight.time.monotonic", lambda: now)
    crew = Shares(2, [""])
    in_flight = InFlight(4_000, EngineHealth(), crew)
    in_flight.freed = asyncio.Event()
    in_flight.add([claimed(1), claimed(2)])
    crew.begin("", 2)
    assert in_flight.room == 0
    in_flight._paces[""] = pace = Prefetch(time.monotonic() - 0.1)
    pace.note(time.monotonic(), 1_000)
    in_flight.worked([held(1)])
    assert in_flight.freed.is_set()
    assert in_flight.room > 0
    in_flight.freed.clear()
    in_flight.drop([held(1)])
    assert not in_flight.freed.is_set()


async def test_the_same_instance_under_another_fence_is_another_claim():
    in_flight = InFlight(9, EngineHealth())
    in_flight.add([claimed(1, fence=1)])

    assert in_flight.find(1, 1) is not None
    assert in_flight.find(1, 2) is None
    assert in_flight.find(1, 1) == held(1)
    assert in_flight.find(1, 2) is None
    in_flight.drop([held(1, fence=2)])
    assert len(in_flight) == 1


async def test_a_snapshot_of_the_known_claims_does_not_change_when_a_claim_is_dropped():
    in_flight = InFlight(9, EngineHealth())
    in_flight.add([claimed(1), claimed(2)])
    known = in_flight.known()

    in_flight.drop([held(1)])

    assert known == {(1, 1), (2, 1)}


async def test_emptied_waits_for_the_last_one():
    in_flight = InFlight(9, EngineHealth())
    await in_flight.emptied()
    in_flight.add([claimed(1), claimed(2)])
    waiting = asyncio.create_task(in_flight.emptied())
    in_flight.drop([held(1)])
    await asyncio.sleep(0)
    assert not waiting.done()

    in_flight.drop([held(2)])

    async with asyncio.timeout(30):
        await waiting


@pytest.mark.parametrize("limit", [1, 100])
async def test_dropping_a_claim_twice_frees_its_room_once(limit: int):
    in_flight = InFlight(limit, EngineHealth())
    in_flight.add([claimed(1)])

    in_flight.drop([held(1), held(1)])
    in_flight.drop([held(1)])

    assert (len(in_flight), in_flight.room) == (0, limit)
