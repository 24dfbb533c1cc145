"""Replays and discards: what they write, what they leave alone, and who wins when several ask."""

import asyncio
import itertools
import json
from datetime import UTC, datetime, timedelta

import asyncpg
import letters
import make
import pytest
import rows

from horai.core.errors import AlreadyFinal, NotFound
from horai.core.fingerprints import fingerprint_of
from horai.core.outcome import Bury, Complete
from horai.core.put import PutDecision
from horai.core.queue import Rate
from horai.db import claims, instances, verify
from horai.db.instances import InsertTarget, NewInstance
from horai.db.pool import Dedicated
from horai.features.dead_letters import replay
from horai.features.dead_letters import service as dead_letters
from horai.features.dead_letters.replay import ReplayRequest
from horai.features.dead_letters.store import LetterFilter, ReplayStatus
from horai.operations import jobs

FIRE = datetime(2026, 1, 1, tzinfo=UTC)
ALL = ReplayRequest(LetterFilter())
WAITS_FOR_A_KEY = """select exists (select from pg_stat_activity
    where wait_event_type = 'Lock' and query like '%insert_replays%' and datname = current_database())"""


async def test_a_burial_keeps_the_fingerprint_of_its_fault(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        job = await make.job(scope)
        (first,) = await letters.of_keys(scope, connection, ["a"], Bury("X", "order 1 is lost"))
        (second,) = await letters.of_keys(scope, connection, ["b"], Bury("X", "order 22 is lost"))

        found = [await dead_letters.read_letter(scope, letter) for letter in (first, second)]

        assert {letter.fingerprint for letter in found} == {fingerprint_of(job.id, "X", "order 3 is lost")}
        assert (found[0].replay_status, found[0].changed_at, found[0].key) == (ReplayStatus.NEW, None, "a")


async def test_C17_C36_a_replay_is_a_new_instance_of_the_same_work(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
        (letter,) = await letters.of_keys(scope, connection, ["a"])
        dead = await connection.fetchrow("select * from horai.instance_history")
        assert dead is not None

        told = await dead_letters.replay_letter(scope, letter)

        assert told.replayed
        assert told.instance is not None
        made = await connection.fetchrow("select * from horai.instance_live")
        assert made is not None
        assert made["id"] == told.instance.id == told.letter.replayed_as != dead["id"]
        assert (made["replay_of"], made["key"], made["fire_time"]) == (dead["id"], "a", FIRE)
        assert (json.loads(made["payload"]), made["fence"]) == ({"key": "a"}, dead["fence"])
        assert (made["attempt"], made["retry_count"], made["state"]) == (0, 0, 0)
        assert made["due"] >= made["execute_time"] > dead["finished_at"]
        assert (told.letter.replay_status, told.letter.changed_at is not None) == (ReplayStatus.REPLAYED, True)
        assert (None, "INSTANCE_REPLAYED") in await rows.events(connection, dead["id"])
        assert not await _violations(connection)

        (claimed,) = await make.claim(connection, await make.node(connection))
        assert claimed.held.fence == dead["fence"] + 1


async def _violations(connection: Dedicated) -> list[str]:
    return [finding.invariant for finding in await verify.verify(connection) if not finding.holds]


async def test_an_instance_without_a_key_is_replayed_with_its_fire_time_and_payload(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope, payload={"n": 1})
        await make.many(scope, 2, at=FIRE)
        found = await letters.bury_due(connection)
        await connection.execute("update horai.job set payload = '{\"n\": 2}'")

        done = await replay.replay_matching(scope, ALL)

        assert (done.matched, done.replayed, done.more) == (2, 2, False)
        made = await connection.fetch("select * from horai.instance_live")
        assert [(row["fire_time"], row["payload"], row["slot"], row["fence"]) for row in made] == [
            (FIRE, '{"n": 1}', -row["id"], 1) for row in made
        ]
        assert len(found) == len(made) == 2


async def test_the_same_replay_again_replays_nothing(url: str, connection: Dedicated):
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


async def test_a_dry_run_counts_and_writes_nothing(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
        await letters.of_keys(scope, connection, ["a", "b", "c"])
        before = await rows.everything(connection)

        few = await replay.count_matching(scope, ReplayRequest(LetterFilter(), limit=2))
        enough = await replay.count_matching(scope, ReplayRequest(LetterFilter(), limit=3))

        assert (few.matched, few.replayed, few.more) == (2, 0, True)
        assert (enough.matched, enough.more) == (3, False)
        assert await rows.everything(connection) == before


async def test_the_oldest_come_first_and_a_limit_leaves_the_others(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
        await letters.of_keys(scope, connection, ["c", "a", "b"])

        done = await replay.replay_matching(scope, ReplayRequest(LetterFilter(), limit=2))

        assert (done.matched, done.replayed, done.more) == (2, 2, True)
        assert await letters.statuses(connection) == ["REPLAYED", "REPLAYED", "NEW"]
        assert [key for key, _ in await letters.live(connection)] == ["a", "c"]


async def test_a_rate_spaces_the_starts_over_all_batches(
    url: str, connection: Dedicated, monkeypatch: pytest.MonkeyPatch
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


async def test_filters_narrow_a_replay(url: str, connection: Dedicated):
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


async def test_what_dies_again_while_a_replay_goes_on_is_left_for_the_next(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
        await letters.of_keys(scope, connection, ["a"])
        await connection.execute("update horai.dead_letter set created_at = clock_timestamp() + interval '1 second'")

        assert (await replay.replay_matching(scope, ALL)).matched == 0


async def test_a_key_that_lives_again_is_superseded_and_not_run_twice(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
        (letter,) = await letters.of_keys(scope, connection, ["a"])
        await make.put(scope, "a", FIRE + timedelta(days=90_000))
        await connection.execute("update horai.dead_letter set replay_status = 'NEW'")  # as if the put had not seen it

        told = await dead_letters.replay_letter(scope, letter)

        assert (told.replayed, told.instance, told.letter.replay_status) == (False, None, ReplayStatus.SUPERSEDED)
        assert len(await letters.live(connection)) == 1


async def test_a_key_that_has_succeeded_since_is_superseded_and_not_run_again(url: str, connection: Dedicated):
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


async def test_a_key_that_succeeded_before_it_died_is_replayed(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, "a")
        (claimed,) = await make.claim(connection, node := await make.node(connection))
        await claims.finish_if_running(connection, node, [(claimed.held, Complete())])
        await make.put(scope, "a", again=True)
        await letters.bury_due(connection)

        assert (await replay.replay_matching(scope, ALL)).replayed == 1


async def test_a_letter_of_a_deleted_job_is_refused_and_passed_over(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
        (letter,) = await letters.of_keys(scope, connection, ["a"])
        await jobs.delete_job(scope, "publish")

        with pytest.raises(AlreadyFinal, match="was deleted"):
            await dead_letters.replay_letter(scope, letter)
        assert (await replay.replay_matching(scope, ALL)).matched == 0
        assert (await replay.count_matching(scope, ALL)).matched == 0
        assert (await dead_letters.discard_letter(scope, letter, None)).replay_status is ReplayStatus.DISCARDED


async def test_a_letter_whose_instance_is_no_longer_kept_is_refused(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
        (letter,) = await letters.of_keys(scope, connection, ["a"])
        await connection.execute("delete from horai.instance_history")

        with pytest.raises(AlreadyFinal, match="no longer kept"):
            await dead_letters.replay_letter(scope, letter)
        assert (await replay.replay_matching(scope, ALL)).matched == 0
        assert await letters.statuses(connection) == ["NEW"]


async def test_the_replay_of_a_paused_job_is_parked_and_let_go_with_it(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
        await letters.of_keys(scope, connection, ["a"])
        await jobs.pause_job(scope, "publish", None)

        assert (await replay.replay_matching(scope, ALL)).replayed == 1

        assert await connection.fetchval("select lane from horai.instance_live") == 0
        assert not await make.claim(connection, await make.node(connection))


async def test_a_discarded_letter_stays_discarded(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
        (letter, replayed) = await letters.of_keys(scope, connection, ["a", "b"])
        await dead_letters.replay_letter(scope, replayed)

        first = await dead_letters.discard_letter(scope, letter, "the account is closed")
        again = await dead_letters.discard_letter(scope, letter, "another reason")

        assert (first.replay_status, first.reason) == (ReplayStatus.DISCARDED, "the account is closed")
        assert again == first
        assert (None, "INSTANCE_DISCARDED") in await rows.events(connection, first.instance_id)
        with pytest.raises(AlreadyFinal, match="DISCARDED"):
            await dead_letters.replay_letter(scope, letter)
        assert [key for key, _ in await letters.live(connection)] == ["b"]
        with pytest.raises(AlreadyFinal, match="REPLAYED"):
            await dead_letters.discard_letter(scope, replayed, None)
        with pytest.raises(NotFound):
            await dead_letters.discard_letter(scope, 999_999, None)


async def test_a_replay_that_dies_has_a_letter_of_its_own(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
        await letters.of_keys(scope, connection, ["a"])
        for _ in range(3):
            assert (await replay.replay_matching(scope, ALL)).replayed == 1
            await letters.bury_due(connection)

        assert await letters.statuses(connection) == ["REPLAYED", "REPLAYED", "REPLAYED", "NEW"]
        fences = await connection.fetch("select fence from horai.instance_history order by finished_at")
        assert [row["fence"] for row in fences] == [1, 2, 3, 4]
        assert not await _violations(connection)


@pytest.mark.parametrize("keyed", [True, False], ids=["with keys", "without keys"])
async def test_eight_replays_at_once_replay_each_letter_once(
    url: str, connection: Dedicated, monkeypatch: pytest.MonkeyPatch, keyed: bool
):
    monkeypatch.setattr(replay, "BATCH", 40)
    async with make.scope(url, size=20) as scope:
        await make.job(scope)
        if keyed:
            items = [make.Item(FIRE, None, f"key-{n}") for n in range(500)]
            await make.instances.insert_batch(scope, "publish", items)
        else:
            await make.many(scope, 500)
        assert len(await letters.bury_due(connection)) == 500

        done = await asyncio.gather(*(replay.replay_matching(scope, ALL) for _ in range(8)))

        assert sum(each.replayed for each in done) == 500
        assert sum(each.superseded + each.held for each in done) == 0
        assert await connection.fetchval("select count(distinct replay_of) from horai.instance_live") == 500
        assert await connection.fetchval("select count(*) from horai.instance_live") == 500
        assert set(await letters.statuses(connection)) == {"REPLAYED"}


async def test_a_replay_gives_way_to_a_put_that_has_its_key(url: str, connection: Dedicated):
    """The put has the key and wants the letter, the replay has the letter and wants the key."""
    async with make.scope(url) as scope:
        job = await make.job(scope)
        (letter, _) = await letters.of_keys(scope, connection, ["a", "b"])
        place = InsertTarget(job.id, job.tenant_id, job.lane_now, None)
        async with rows.connections(url, 1) as (putting,), putting.transaction():
            await instances.insert_keyed(putting, place, [NewInstance("a", FIRE + timedelta(days=90_000), None, None)])

            async with asyncio.timeout(8):  # without giving way, it waits 5 s for the batch and 5 s for the letter
                done = await replay.replay_matching(scope, ALL)

            assert (done.matched, done.replayed, done.held, done.more) == (2, 1, 1, True)
            dead = await instances.past_of_keys(putting, job.id, ["a"])
            await instances.supersede_dead_letters(putting, dead["a"].dead)

        told = await dead_letters.replay_letter(scope, letter)
        assert (told.replayed, told.letter.replay_status) == (False, ReplayStatus.SUPERSEDED)
        assert [key for key, _ in await letters.live(connection)] == ["a", "b"]


async def test_one_replay_gives_way_until_the_put_is_done(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        job = await make.job(scope)
        (letter,) = await letters.of_keys(scope, connection, ["a"])
        place = InsertTarget(job.id, job.tenant_id, job.lane_now, None)
        async with rows.connections(url, 1) as (putting,):
            await putting.execute("set deadlock_timeout = '300ms'")  # it would be the victim, sooner than the replay
            async with putting.transaction():
                await instances.insert_keyed(
                    putting, place, [NewInstance("a", FIRE + timedelta(days=90_000), None, None)]
                )
                replaying = asyncio.create_task(dead_letters.replay_letter(scope, letter))
                await rows.until(lambda: connection.fetchval(WAITS_FOR_A_KEY))
                dead = await instances.past_of_keys(putting, job.id, ["a"])
                await instances.supersede_dead_letters(putting, dead["a"].dead)

            told = await replaying

        assert (told.replayed, told.letter.replay_status) == (False, ReplayStatus.SUPERSEDED)


async def test_a_replay_does_not_wait_for_a_job_that_somebody_holds(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        held, _ = await make.job(scope), await make.job(scope, "bill")
        await letters.of_keys(scope, connection, ["a"])
        await letters.of_keys(scope, connection, ["b"], job="bill")
        async with connection.transaction():
            await connection.execute("select from horai.job where id = $1 for update", held.id)

            done = await replay.replay_matching(scope, ALL)

        assert (done.replayed, done.held) == (1, 1)
        assert await letters.statuses(connection) == ["NEW", "REPLAYED"]


async def test_puts_and_replays_of_the_same_keys_at_once_leave_one_live_instance_each(url: str, connection: Dedicated):
    async with make.scope(url, size=20) as scope:
        await make.job(scope)
        keys = [f"key-{n}" for n in range(60)]
        await make.instances.insert_batch(scope, "publish", [make.Item(FIRE, None, key) for key in keys])
        await letters.bury_due(connection)
        later = datetime.now(UTC) + timedelta(hours=1)

        async def put(key: str) -> PutDecision:
            return (await make.put(scope, key, later))[0]

        replaying = [replay.replay_matching(scope, ALL) for _ in range(3)]
        done = asyncio.gather(*replaying)
        verdicts = await asyncio.gather(*(put(key) for key in keys))
        replayed = sum(each.replayed for each in await done)

        settled = await letters.statuses(connection)
        assert settled.count("REPLAYED") == replayed
        assert settled.count("SUPERSEDED") == len(keys) - replayed == verdicts.count(PutDecision.INSERTED)
        assert sorted(key or "" for key, _ in await letters.live(connection)) == sorted(keys)
        times = await connection.fetch("select distinct execute_time from horai.instance_live")
        assert [row["execute_time"] for row in times] == [later]
        assert not await _violations(connection)


async def test_a_crash_between_two_batches_leaves_no_letter_without_its_instance(
    url: str, connection: Dedicated, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(replay, "BATCH", 4)
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.many(scope, 10)
        await letters.bury_due(connection)
        await connection.execute(
            "create function horai.crash() returns trigger language plpgsql as $$ begin"
            " if (select count(*) from horai.instance_live) > 5 then raise exception 'crash'; end if; return new; end $$;"
            " create trigger crash before update on horai.dead_letter for each row execute function horai.crash()"
        )

        with pytest.raises(asyncpg.RaiseError):
            await replay.replay_matching(scope, ALL)

        assert (await letters.statuses(connection)).count("REPLAYED") == 4 == len(await letters.live(connection))
        await connection.execute("drop trigger crash on horai.dead_letter")
        assert (await replay.replay_matching(scope, ALL)).replayed == 6
        assert len(await letters.live(connection)) == 10


async def test_a_put_of_the_key_notes_when_it_settled_the_letter(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
        (letter,) = await letters.of_keys(scope, connection, ["a"])

        await make.put(scope, "a")

        settled = await dead_letters.read_letter(scope, letter)
        assert settled.replay_status is ReplayStatus.SUPERSEDED
        assert settled.changed_at is not None
