"""The dead letters that a replay takes, and those that it passes over."""

import itertools
from datetime import UTC, datetime, timedelta

import letters
import make
import pytest
import rows

from horai.core.errors import AlreadyFinal
from horai.core.fingerprints import fingerprint_of
from horai.core.outcome import Bury, Complete
from horai.core.queue import Rate
from horai.db import claims
from horai.db.dead_letters import LetterFilter, ReplayStatus
from horai.db.pool import Platform
from horai.features.dead_letters import service as dead_letters
from horai.operations import jobs
from horai.operations import letter_replay as replay
from horai.operations.letter_replay import ReplayRequest

FIRE = datetime(2026, 1, 1, tzinfo=UTC)
ALL = ReplayRequest(LetterFilter())


async def test_the_same_replay_again_replays_nothing(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        (letter, _) = await letters.of_keys(scope, connection, ["a", "b"])

        first = await replay.replay_matching(scope, ALL)
        second = await replay.replay_matching(scope, ALL)
        single = await dead_letters.replay_letter(scope, letter)

        assert (first.matched, first.replayed) == (2, 2)
        assert (second.matched, second.replayed) == (0, 0)
        assert (single.replayed, single.instance is not None) == (False, True)
        assert len(await letters.live(connection)) == 2


async def test_a_dry_run_counts_and_writes_nothing(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await letters.of_keys(scope, connection, ["a", "b", "c"])
        before = await rows.everything(connection)

        few = await replay.count_matching(scope, ReplayRequest(LetterFilter(), limit=2))
        enough = await replay.count_matching(scope, ReplayRequest(LetterFilter(), limit=3))

        assert (few.matched, few.replayed, few.more) == (2, 0, True)
        assert (enough.matched, enough.more) == (3, False)
        assert await rows.everything(connection) == before


async def test_the_oldest_come_first_and_a_limit_leaves_the_others(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await letters.of_keys(scope, connection, ["c", "a", "b"])

        done = await replay.replay_matching(scope, ReplayRequest(LetterFilter(), limit=2))

        assert (done.matched, done.replayed, done.more) == (2, 2, True)
        assert await letters.statuses(connection) == ["REPLAYED", "REPLAYED", "NEW"]
        assert [key for key, _ in await letters.live(connection)] == ["a", "c"]


async def test_a_rate_spaces_the_starts_over_all_batches(
    url: str, connection: Platform, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(replay, "BATCH", 3)
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.many(scope, 10)
        await letters.bury_due(connection)

        await replay.replay_matching(scope, ReplayRequest(LetterFilter(), rate=Rate(100, timedelta(seconds=1))))

        times = [
            row["execute_time"] for row in await connection.fetch("select * from horai.instance_live order by due")
        ]
        gaps = {later - sooner for sooner, later in itertools.pairwise(times)}
        assert gaps == {timedelta(milliseconds=10)}


async def test_filters_narrow_a_replay(url: str, connection: Platform):
    async with make.scope(url) as scope:
        publish, bill = await make.job(scope), await make.job(scope, "bill")
        await letters.of_keys(scope, connection, ["spent"])
        await letters.of_keys(scope, connection, ["slow"], Bury("TIMEOUT", "x", ("transient_error", "timeout")))
        await letters.of_keys(scope, connection, ["bad"], Bury("HTTP_400", "x", ("unrecoverable", "own")))
        await letters.of_keys(scope, connection, ["bill"], job="bill")
        third = await connection.fetchval("select created_at from horai.dead_letter order by id offset 2 limit 1")

        async def matching(**only: object) -> int:
            return (await replay.count_matching(scope, ReplayRequest(LetterFilter(**only)))).matched  # pyright: ignore[reportArgumentType]

        assert await matching() == 4
        assert await matching(job_id=publish.id) == 3
        assert await matching(tag="transient_error") == 3
        assert await matching(tag="timeout", job_id=bill.id) == 0
        assert await matching(tag="own") == 1
        assert await matching(error_code="HTTP_503") == 2
        assert await matching(fingerprint=fingerprint_of(bill.id, letters.SPENT.code, letters.SPENT.message)) == 1
        assert await matching(since=third) == 2
        assert await matching(until=third) == 2

        await replay.replay_matching(scope, ReplayRequest(LetterFilter(tag="timeout")))

        assert [key for key, _ in await letters.live(connection)] == ["slow"]


async def test_a_replay_ignores_dead_letters_created_after_it_began(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await letters.of_keys(scope, connection, ["a"])
        await connection.execute("update horai.dead_letter set created_at = clock_timestamp() + interval '1 second'")

        assert (await replay.replay_matching(scope, ALL)).matched == 0


async def test_a_key_that_lives_again_is_superseded_and_not_run_twice(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        (letter,) = await letters.of_keys(scope, connection, ["a"])
        await make.put(scope, "a", FIRE + timedelta(days=90_000))
        await connection.execute("update horai.dead_letter set replay_status = 'NEW'")  # as if the put had not seen it

        told = await dead_letters.replay_letter(scope, letter)

        assert (told.replayed, told.instance, told.letter.replay_status) == (False, None, ReplayStatus.SUPERSEDED)
        assert len(await letters.live(connection)) == 1


async def test_a_key_that_has_succeeded_since_is_superseded_and_not_run_again(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await letters.of_keys(scope, connection, ["a"])
        await make.put(scope, "a")
        (claimed,) = await make.claim(connection, node := await make.node(connection))
        await claims.finish_if_running(connection, node, [(claimed.held, Complete())])
        await connection.execute("update horai.dead_letter set replay_status = 'NEW'")

        done = await replay.replay_matching(scope, ALL)

        assert (done.matched, done.replayed, done.superseded) == (1, 0, 1)
        assert await letters.live(connection) == []
        assert await letters.statuses(connection) == ["SUPERSEDED"]


async def test_a_key_that_succeeded_before_it_died_is_replayed(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, "a")
        (claimed,) = await make.claim(connection, node := await make.node(connection))
        await claims.finish_if_running(connection, node, [(claimed.held, Complete())])
        await make.put(scope, "a", again=True)
        await letters.bury_due(connection)

        assert (await replay.replay_matching(scope, ALL)).replayed == 1


async def test_a_letter_of_a_deleted_job_is_refused_and_passed_over(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        (letter,) = await letters.of_keys(scope, connection, ["a"])
        await jobs.delete_job(scope, "publish")

        with pytest.raises(AlreadyFinal, match="was deleted"):
            await dead_letters.replay_letter(scope, letter)
        assert (await replay.replay_matching(scope, ALL)).matched == 0
        assert (await replay.count_matching(scope, ALL)).matched == 0
        assert (await dead_letters.discard_letter(scope, letter, None)).replay_status is ReplayStatus.DISCARDED


async def test_a_letter_whose_instance_is_no_longer_kept_is_refused(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        (letter,) = await letters.of_keys(scope, connection, ["a"])
        await connection.execute("delete from horai.instance_history")

        with pytest.raises(AlreadyFinal, match="no longer kept"):
            await dead_letters.replay_letter(scope, letter)
        assert (await replay.replay_matching(scope, ALL)).matched == 0
        assert await letters.statuses(connection) == ["NEW"]


async def test_a_replayed_instance_of_a_paused_job_is_parked(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await letters.of_keys(scope, connection, ["a"])
        await jobs.pause_job(scope, "publish", None)

        assert (await replay.replay_matching(scope, ALL)).replayed == 1

        assert await connection.fetchval("select lane from horai.instance_live") == 0
        assert not await make.claim(connection, await make.node(connection))
