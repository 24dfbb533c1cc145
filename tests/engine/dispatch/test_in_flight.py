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


async def test_B6_what_is_in_hand_is_bounded_and_counted():
    vitals = EngineHealth()
    holdings = InFlight(2, vitals)
    holdings.add([claimed(n) for n in (1, 2)])

    assert (holdings.room, len(holdings), vitals.in_flight) == (0, 2, 2)
    holdings.drop([held(1)])
    assert (holdings.room, len(holdings), vitals.in_flight) == (1, 1, 1)


async def test_B6_only_a_full_house_signals_that_there_is_room():
    holdings = InFlight(2, EngineHealth())
    holdings.freed = asyncio.Event()
    holdings.add([claimed(1)])
    holdings.drop([held(1)])
    assert not holdings.freed.is_set()
    holdings.add([claimed(1), claimed(2)])
    assert holdings.room == 0

    holdings.drop([held(1)])

    assert holdings.freed.is_set()


async def test_whoever_was_told_that_there_is_no_room_is_woken_when_the_pace_makes_some(
    monkeypatch: pytest.MonkeyPatch,
):
    now = 100.0
    monkeypatch.setattr("horai.engine.dispatch.in_flight.time.monotonic", lambda: now)
    crew = Shares(2, [""])
    holdings = InFlight(4_000, EngineHealth(), crew)
    holdings.freed = asyncio.Event()
    holdings.add([claimed(1), claimed(2)])
    crew.begin("", 2)
    assert holdings.room == 0
    holdings._paces[""] = pace = Prefetch(time.monotonic() - 0.1)
    pace.note(time.monotonic(), 1_000)
    holdings.worked([held(1)])
    assert holdings.freed.is_set()
    assert holdings.room > 0
    holdings.freed.clear()
    holdings.drop([held(1)])
    assert not holdings.freed.is_set()


async def test_the_same_instance_under_another_fence_is_another_claim():
    holdings = InFlight(9, EngineHealth())
    holdings.add([claimed(1, fence=1)])

    assert holdings.find(1, 1) is not None
    assert holdings.find(1, 2) is None
    assert holdings.find(1, 1) == held(1)
    assert holdings.find(1, 2) is None
    holdings.drop([held(1, fence=2)])
    assert len(holdings) == 1


async def test_what_was_known_at_a_moment_does_not_change_afterwards():
    holdings = InFlight(9, EngineHealth())
    holdings.add([claimed(1), claimed(2)])
    known = holdings.known()

    holdings.drop([held(1)])

    assert known == {(1, 1), (2, 1)}


async def test_emptied_waits_for_the_last_one():
    holdings = InFlight(9, EngineHealth())
    await holdings.emptied()
    holdings.add([claimed(1), claimed(2)])
    waiting = asyncio.create_task(holdings.emptied())
    holdings.drop([held(1)])
    await asyncio.sleep(0)
    assert not waiting.done()

    holdings.drop([held(2)])

    async with asyncio.timeout(30):
        await waiting


@pytest.mark.parametrize("limit", [1, 100])
async def test_what_is_dropped_twice_counts_once(limit: int):
    holdings = InFlight(limit, EngineHealth())
    holdings.add([claimed(1)])

    holdings.drop([held(1), held(1)])
    holdings.drop([held(1)])

    assert (len(holdings), holdings.room) == (0, limit)
