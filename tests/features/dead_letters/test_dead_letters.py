"""Replays and discards: what they write, what they leave alone, and who wins when several ask."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import asyncpg
import letters
import make
import pytest
import rows

from horai.core.errors import AlreadyFinal, NotFound
from horai.core.fingerprints import fingerprint_of
from horai.core.outcome import Bury
from horai.core.put import PutDecision
from horai.db import instances, verify
from horai.db.dead_letters import LetterFilter, ReplayStatus
from horai.db.instances import InsertTarget, NewInstance
from horai.db.pool import Platform
from horai.features.dead_letters import service as dead_letters
from horai.operations import letter_replay as replay
from horai.operations.letter_replay import ReplayRequest

FIRE = datetime(2026, 1, 1, tzinfo=UTC)
ALL = ReplayRequest(LetterFilter())
WAITS_FOR_A_KEY = """select exists (select from pg_stat_activity
    where wait_event_type = 'Lock' and query like '%insert_replays%' and datname = current_database())"""


async def test_a_burial_keeps_the_fingerprint_of_its_fault(url: str, connection: Platform):
    async with make.scope(url) as scope:
        job = await make.job(scope)
        (first,) = await letters.of_keys(scope, connection, ["a"], Bury("X", "order 1 is lost"))
        (second,) = await letters.of_keys(scope, connection, ["b"], Bury("X", "order 22 is lost"))

        found = [await dead_letters.read_letter(scope, letter) for letter in (first, second)]

        assert {letter.fingerprint for letter in found} == {fingerprint_of(job.id, "X", "order 3 is lost")}
        assert (found[0].replay_status, found[0].changed_at, found[0].key) == (ReplayStatus.NEW, None, "a")


async def test_C17_C36_a_replay_is_a_new_instance_of_the_same_work(url: str, connection: Platform):
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


async def _violations(connection: Platform) -> list[str]:
    return [finding.invariant for finding in await verify.verify(connection) if not finding.holds]


async def test_an_instance_without_a_key_is_replayed_with_its_fire_time_and_payload(url: str, connection: Platform):
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
        assert not await _violations(connection)


async def test_a_discarded_letter_stays_discarded(url: str, connection: Platform):
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


async def test_a_replay_that_dies_has_a_letter_of_its_own(url: str, connection: Platform):
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
    url: str, connection: Platform, monkeypatch: pytest.MonkeyPatch, keyed: bool
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


async def test_a_replay_gives_way_to_a_put_that_has_its_key(url: str, connection: Platform):
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


async def test_one_replay_gives_way_until_the_put_is_done(url: str, connection: Platform):
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


async def test_a_replay_does_not_wait_for_a_job_locked_by_another_transaction(url: str, connection: Platform):
    async with make.scope(url) as scope:
        held, _ = await make.job(scope), await make.job(scope, "bill")
        await letters.of_keys(scope, connection, ["a"])
        await letters.of_keys(scope, connection, ["b"], job="bill")
        async with connection.transaction():
            await connection.execute("select from horai.job where id = $1 for update", held.id)

            done = await replay.replay_matching(scope, ALL)

        assert (done.replayed, done.held) == (1, 1)
        assert await letters.statuses(connection) == ["NEW", "REPLAYED"]


async def test_puts_and_replays_of_the_same_keys_at_once_leave_one_live_instance_each(url: str, connection: Platform):
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
    url: str, connection: Platform, monkeypatch: pytest.MonkeyPatch
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


async def test_a_put_of_the_key_notes_when_it_settled_the_letter(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        (letter,) = await letters.of_keys(scope, connection, ["a"])

        await make.put(scope, "a")

        settled = await dead_letters.read_letter(scope, letter)
        assert settled.replay_status is ReplayStatus.SUPERSEDED
        assert settled.changed_at is not None
