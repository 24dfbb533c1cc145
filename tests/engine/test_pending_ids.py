"""The ids that a stage has to decide on."""

from collections.abc import Sequence

import pytest

from horai.engine.pending_ids import PendingIds


async def test_ids_are_decided_in_batches_and_those_that_were_held_stay() -> None:
    pending, sizes = PendingIds(2), list[int]()
    pending.update(range(5))

    async def decide(ids: set[int]) -> set[int]:
        sizes.append(len(ids))
        return ids & {3}

    await pending.decide(decide)
    assert (sizes, await decided(pending)) == ([2, 2, 1], {3})
    assert not pending


async def test_a_failed_decision_keeps_its_ids_and_those_that_were_held_before() -> None:
    pending, seen = PendingIds(1), list[int]()
    pending.update([1, 2, 3])

    async def decide(ids: set[int]) -> set[int]:
        seen.extend(ids)
        if len(seen) == 2:
            raise ConnectionError
        return ids

    with pytest.raises(ConnectionError):
        await pending.decide(decide)
    assert len(seen) == 2
    assert await decided(pending) == {1, 2, 3}


async def test_pages_are_read_until_one_is_short() -> None:
    pending, asked = PendingIds(2), list[int]()
    stuck = [4, 7, 9]

    async def find(after: int, limit: int) -> Sequence[int]:
        asked.append(after)
        return [each for each in stuck if each > after][:limit]

    await pending.add_pages(find)
    assert (asked, await decided(pending)) == ([0, 7], {4, 7, 9})


async def decided(pending: PendingIds) -> set[int]:
    found: set[int] = set()

    async def decide(ids: set[int]) -> set[int]:
        found.update(ids)
        return set()

    await pending.decide(decide)
    return found
