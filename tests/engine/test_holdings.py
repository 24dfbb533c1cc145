import asyncio

import pytest

from horai.core.vitals import Vitals
from horai.db.claims import Held
from horai.engine.holdings import Holdings


def held(instance_id: int, fence: int = 1) -> Held:
    return Held(instance_id, 1, 1, fence, fence, 1, 0)


async def test_B6_what_is_in_hand_is_bounded_and_counted():
    vitals = Vitals()
    holdings = Holdings(2, vitals)
    for n in (1, 2):
        holdings.add(held(n))

    assert (holdings.room, len(holdings), vitals.in_flight) == (0, 2, 2)
    holdings.drop(held(1))
    assert (holdings.room, len(holdings), vitals.in_flight) == (1, 1, 1)


async def test_B6_only_a_full_house_signals_that_there_is_room():
    holdings = Holdings(2, Vitals())
    holdings.freed = asyncio.Event()
    holdings.add(held(1))
    holdings.drop(held(1))
    assert not holdings.freed.is_set()
    holdings.add(held(1))
    holdings.add(held(2))

    holdings.drop(held(1))

    assert holdings.freed.is_set()


async def test_the_same_instance_under_another_fence_is_another_claim():
    holdings = Holdings(9, Vitals())
    holdings.add(held(1, fence=1))

    assert holdings.has(held(1, fence=1))
    assert not holdings.has(held(1, fence=2))
    holdings.drop(held(1, fence=2))
    assert len(holdings) == 1


async def test_emptied_waits_for_the_last_one():
    holdings = Holdings(9, Vitals())
    await holdings.emptied()
    holdings.add(held(1))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await holdings.emptied()

    holdings.drop(held(1))

    await holdings.emptied()
