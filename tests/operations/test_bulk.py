"""The loop of the bulk verbs: pages, rows that another transaction has locked, the limit and the deadline."""

from dataclasses import replace
from datetime import UTC, datetime

import asyncpg
import letters
import make
import pytest

from horai.core.states import LIVE, State
from horai.db.dead_letters import LetterFilter
from horai.db.instance_lists import InstanceFilter
from horai.db.instance_queries import LAST
from horai.db.job_lists import JobFilter
from horai.db.pool import Platform
from horai.features.dead_letters import discard, replay_matching
from horai.features.dead_letters.replay_matching import InstanceReplayRequest
from horai.operations import cancel_matching, pause_matching
from horai.operations import letter_replay as replay
from horai.operations.bulk import BulkPage, brief_transaction, change_pages
from horai.operations.cancel_matching import CancelSummary
from horai.operations.letter_replay import ReplayRequest
from horai.operations.pause_matching import PauseSummary, pausing
from horai.operations.scope import Scope

LATER = datetime(2100, 1, 1, tzinfo=UTC)
WAITING = InstanceFilter(LIVE - {State.RUNNING})
DEAD = InstanceFilter(frozenset({State.DEAD}))
BRIEF = 0.01
"""Seconds: the first page begins within them, and a wait for a lock takes longer."""


async def planned(scope: Scope, keys: str) -> None:
    await make.job(scope)
    for key in keys:
        await make.put(scope, key, LATER)


async def lock(connection: Platform, key: str) -> None:
    await connection.execute("select from horai.instance_live where key = $1 for update", key)


async def live_keys(connection: Platform) -> list[str | None]:
    return [key for key, _ in await letters.live(connection)]


async def test_a_locked_row_of_a_page_is_left_and_later_pages_are_changed(
    url: str, connection: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancel_matching, "PORTION", 2)
    async with make.scope(url) as scope:
        await planned(scope, "abcde")
        async with connection.transaction():
            await lock(connection, "d")  # on the first page: the newest instances come first
            done = await cancel_matching.cancel_matching(scope, WAITING, 100)

        assert done == CancelSummary(matched=5, cancelled=4, held=1, more=False)
        assert await live_keys(connection) == ["d"]


async def test_rows_that_were_left_count_towards_the_limit(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await planned(scope, "abc")
        async with connection.transaction():
            await lock(connection, "c")
            done = await cancel_matching.cancel_matching(scope, WAITING, 2)

        assert done == CancelSummary(matched=2, cancelled=1, held=1, more=True)
        assert await live_keys(connection) == ["a", "c"]


async def test_a_request_whose_time_is_over_leaves_the_rows_of_a_held_up_page(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await planned(scope, "abc")
        async with connection.transaction():
            await lock(connection, "b")
            done = await cancel_matching.cancel_matching(replace(scope, longest=BRIEF), WAITING, 100)

        assert done == CancelSummary(matched=3, cancelled=0, held=3, more=False)
        assert await live_keys(connection) == ["a", "b", "c"]


async def test_a_request_without_time_changes_nothing_and_says_that_there_is_more(
    url: str, connection: Platform
) -> None:
    async with make.scope(url) as unhurried:
        await make.job(unhurried)
        await letters.of_keys(unhurried, connection, ["dead"])
        await make.put(unhurried, "waits", LATER)
        scope = replace(unhurried, longest=0.0)

        cancelled = await cancel_matching.cancel_matching(scope, WAITING, 100)
        paused = await pause_matching.change_matching(scope, pausing(None), JobFilter(), 100)
        replayed = await replay.replay_matching(scope, ReplayRequest(LetterFilter()))
        by_instance = await replay_matching.replay_matching(scope, InstanceReplayRequest(DEAD, 100), LAST)
        discarded = await discard.discard_matching(scope, LetterFilter(), 100, "why")

        assert cancelled == CancelSummary(matched=0, cancelled=0, held=0, more=True)
        assert paused == PauseSummary(matched=0, changed=0, held=0, more=True)
        assert (replayed.matched, replayed.more) == (0, True)
        assert (by_instance.matched, by_instance.reached) == (0, LAST)
        assert (discarded.matched, discarded.more) == (0, True)
        assert await live_keys(connection) == ["waits"]
        assert await letters.statuses(connection) == ["NEW"]


class Search:
    """A verb whose search waits for a lock, before it has found a row."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    async def change_page(self, page: BulkPage[int, int]) -> int:
        async with brief_transaction(self.scope) as connection:
            page.rows = [row["id"] for row in await connection.fetch("select id from horai.job for update")]
        return len(page.rows)

    async def change_row(self, row: int) -> int:
        raise AssertionError(f"{row} was never found")


async def test_a_search_that_is_held_up_is_an_error_and_not_the_end_of_the_pages(
    url: str, connection: Platform
) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        async with connection.transaction():
            await connection.execute("select from horai.job for update")

            with pytest.raises(asyncpg.LockNotAvailableError):
                await change_pages(scope, Search(scope), 0, 100, 10)

        assert (await change_pages(scope, Search(scope), 0, 100, 10)).matched == 1
