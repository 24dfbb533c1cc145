"""A run of a reconciler over a table of the business: what is missing is created, once, and nothing is undone."""

import asyncio
import json
import random
from contextlib import suppress
from datetime import timedelta

import drift
import make
import pytest
from drift import TOMORROW, desk

from horai.core.errors import NotFound
from horai.core.outcome import FailedUnrecoverable, NotSent, Postponed, Succeeded
from horai.core.states import CancelReason
from horai.db import instances as plans
from horai.db.pool import opened
from horai.features.reconcile.compare import Overtaken, ReconcileRun, begin
from horai.features.reconcile.executor import Bounds
from horai.features.reconcile.rules import DesiredInstance
from horai.features.reconcile.service import ReconcilerChange, change_reconciler
from horai.operations import instances

SMALL = Bounds(page=100)


async def test_B16_an_instance_that_was_never_put_is_created_with_its_time_and_payload(url: str) -> None:
    async with desk(url) as at:
        await at.write("article:1", "article:2")
        await make.put(at.scope, "article:2", TOMORROW + timedelta(hours=1))

        outcome = await at.compare()
        assert isinstance(outcome, Succeeded), outcome

        live, report = await at.live(), await at.report()
        payload = await at.connection.fetchval("select payload from horai.instance_live where key = 'article:1'")
    assert live == {"article:1": TOMORROW, "article:2": TOMORROW + timedelta(hours=1)}
    assert json.loads(payload) == {"article": "article:1"}
    assert (report.tally.found, report.tally.missing, report.tally.created, report.surplus) == (2, 1, 1, 0)
    assert report.tally.missing_keys == ("article:1",)
    assert report.finished_at is not None
    assert isinstance(outcome, Succeeded)
    assert json.loads(outcome.output or "")["created"] == 1


async def test_B16_a_thousand_instances_deleted_by_hand_are_created_again_once(url: str) -> None:
    async with desk(url, bounds=SMALL) as at:
        await at.write_many(3_000)
        assert (await at.compared()).tally.created == 3_000
        deleted = await at.connection.fetch(
            "delete from horai.instance_live where id in (select id from horai.instance_live order by random() limit 1000)"
            " returning key"
        )

        first, again = await at.compared(), await at.compared()

        live = await at.live()
    assert len(deleted) == 1_000
    assert (first.tally.found, first.tally.missing, first.tally.created) == (3_000, 1_000, 1_000)
    assert (again.tally.found, again.tally.missing, again.tally.created, again.surplus) == (3_000, 0, 0, 0)
    assert len(live) == 3_000


async def test_B16_ended_instances_are_not_created_again(url: str) -> None:
    async with desk(url) as at:
        keys = ["cancelled", "dead", "done", "overlapped", "parentless"]
        await at.write(*keys)
        await at.compared()
        await instances.cancel_by_key(at.scope, "publish", "cancelled")
        await _end(at, "overlapped", CancelReason.OVERLAP)
        await _end(at, "parentless", CancelReason.PARENT)
        await _finish(at, "done", 2)
        await _finish(at, "dead", 4)

        report = await at.compared()

        live = await at.live()
    assert live == {}
    assert (report.tally.missing, report.tally.created, report.tally.left_alone) == (0, 0, 5)


async def test_B16_a_superseded_instance_whose_successor_was_deleted_is_missing(url: str) -> None:
    async with desk(url) as at:
        await at.write("article:1")
        await at.compared()
        await _end(at, "article:1", CancelReason.SUPERSEDED)
        await at.connection.execute("update horai.instance_history set fence = 7, version = 3")

        report = await at.compared()

        row = await at.connection.fetchrow("select fence, version from horai.instance_live")
    assert report.tally.created == 1
    assert row is not None
    assert tuple(row) == (7, 3)


async def test_B16_a_drift_is_told_as_an_event_of_the_job_and_no_drift_is_not(url: str) -> None:
    async with desk(url) as at:
        await at.write("article:1")

        await at.compared()
        await at.compared()

        events = await at.connection.fetch("select job_id, data from horai.event where kind = 'RECONCILE_DRIFT'")
    assert [event["job_id"] for event in events] == [at.reconciler.target_id]
    told = json.loads(events[0]["data"])
    assert (told["reconciler"], told["found"], told["missing"], told["created"]) == ("articles", 1, 1, 1)


async def test_B16_live_instances_that_the_source_does_not_have_are_counted_and_left(url: str) -> None:
    async with desk(url) as at:
        await at.write("article:1")
        for number in range(25):
            await make.put(at.scope, f"stray:{number:02}", TOMORROW)
        await make.many(at.scope, 3)

        report = await at.compared()

        live = await at.live()
        seen = await at.connection.fetchval("select count(*) from horai.reconcile_seen")
    assert report.surplus == 25
    assert report.surplus_keys == tuple(f"stray:{number:02}" for number in range(20))
    assert len(live) == 26
    assert seen == 0


async def test_B16_the_surplus_is_unknown_when_what_was_met_is_lost(url: str) -> None:
    async with desk(url, bounds=Bounds(page=1, slice=timedelta(0))) as at:
        await at.write("article:1", "article:2")
        assert isinstance(await at.compare(77), Postponed)
        await at.connection.execute("truncate horai.reconcile_seen")  # as after a crash of the database

        while isinstance(await at.compare(77, 2), Postponed):
            pass

        report = await at.report()
    assert report.finished_at is not None
    assert report.surplus is None


async def test_B16_a_long_run_goes_on_behind_its_last_page_and_counts_every_row_once(url: str) -> None:
    async with desk(url, bounds=Bounds(page=100, slice=timedelta(0))) as at:
        await at.write_many(950)
        outcomes = [await at.compare(42, attempt) for attempt in range(1, 11)]

        report = await at.report()
        reports = await at.connection.fetchval("select count(*) from horai.reconcile_report")
        repeated = await at.compare(42, 11)
    assert [type(outcome) for outcome in outcomes] == [Postponed] * 9 + [Succeeded]
    assert (report.tally.found, report.tally.created, report.pages, reports) == (950, 950, 10, 1)
    assert repeated == outcomes[-1]


async def test_B16_a_run_whose_source_is_changed_reads_the_new_one_from_its_beginning(url: str) -> None:
    async with desk(url, bounds=Bounds(page=1, slice=timedelta(0))) as at:
        await at.write("b", "c", "d")
        assert isinstance(await at.compare(42, 1), Postponed)
        await at.write("a")
        other = drift.QUERY.replace("state = 'waiting'", "state <> 'gone'")

        await change_reconciler(at.scope, "articles", ReconcilerChange({}, {**drift.SQL, "query": other}))
        outcomes = [await at.compare(42, attempt) for attempt in range(2, 7)]

        report, live = await at.report(), await at.live()
    assert [type(outcome) for outcome in outcomes] == [Postponed] * 4 + [Succeeded]
    assert set(live) == {"a", "b", "c", "d"}
    assert (report.tally.found, report.tally.created, report.surplus) == (4, 4, 0)


async def test_B16_a_page_of_a_source_that_was_changed_meanwhile_is_not_counted(url: str) -> None:
    async with desk(url) as at:
        run = ReconcileRun(42, 1)
        comparison = await begin(at.scope.write, at.scope.wakeups, at.reconciler, run)
        await change_reconciler(at.scope, "articles", ReconcilerChange({}, drift.SQL))

        with pytest.raises(Overtaken):
            await comparison.take([DesiredInstance("stale", TOMORROW)], "stale")

        live = await at.live()
    assert live == {}


async def test_B16_the_newest_reports_are_kept_and_that_of_a_run_under_way(url: str) -> None:
    async with desk(url, bounds=Bounds(reports=3)) as at:
        await at.write("article:1")
        (running,) = await make.many(at.scope, 1)
        await begin(at.scope.write, at.scope.wakeups, at.reconciler, ReconcileRun(running, 1))

        kept = [(await at.compared()).id for _ in range(6)][-3:]

        rows = await at.connection.fetch("select id, instance_id from horai.reconcile_report order by id")
    assert [row["id"] for row in rows][1:] == kept
    assert rows[0]["instance_id"] == running


async def test_B16_the_keys_seen_by_an_unfinished_run_are_deleted_by_the_next_run(url: str) -> None:
    async with desk(url, bounds=Bounds(page=1, slice=timedelta(0))) as at:
        await at.write("article:1", "article:2", "article:3")
        assert isinstance(await at.compare(41, 1), Postponed)  # and it never goes on

        assert isinstance(await at.compare(42, 1), Postponed)

        seen = await at.connection.fetch("select report_id from horai.reconcile_seen")
    assert len(seen) == 1


async def test_B16_an_attempt_that_was_overtaken_writes_nothing(url: str) -> None:
    async with desk(url, bounds=Bounds(page=1, slice=timedelta(0))) as at:
        await at.write("article:1", "article:2", "article:3")
        await at.compare(42, 2)

        stale = await at.compare(42, 1)

        report = await at.report()
    assert isinstance(stale, NotSent)
    assert (report.attempt, report.tally.found) == (2, 1)


async def test_B16_a_key_that_another_transaction_puts_does_not_delay_the_other_keys(url: str) -> None:
    async with desk(url) as at:
        await at.write("article:1", "article:2", "article:3")
        job = at.reconciler.target_id
        async with at.scope.write() as theirs:
            place = plans.InsertTarget(job, 1, 1, None)
            await plans.insert_keyed(theirs, place, [plans.NewInstance("article:2", TOMORROW, None, None)])

            report = await at.compared()

        live = await at.live()
    assert (report.tally.missing, report.tally.created) == (3, 2)
    assert set(live) == {"article:1", "article:2", "article:3"}


async def test_B16_a_key_that_ends_while_its_page_is_compared_is_taken_back(url: str) -> None:
    """It is put and runs to its end between the look and the insert: the second look into history finds it."""
    async with desk(url) as at:
        await at.write("article:1")
        await at.connection.execute(
            "create function pg_temp_end() returns trigger language plpgsql as $$ begin "
            "if exists (select from horai.instance_history where key = new.key) then return new; end if; "
            "insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, finished_at,"
            " fence, tenant_id, lane, attempt, retry_count, events, state, key)"
            " values (-new.id, new.job_id, now(), now(), now(), new.slot, now(), now(), 1, 1, new.lane, 1, 0, 0, 2, new.key);"
            " return new; end $$"
        )
        await at.connection.execute(
            "create trigger ends before insert on horai.instance_live for each row execute function pg_temp_end()"
        )

        report = await at.compared()

        live = await at.live()
    assert live == {}
    assert (report.tally.missing, report.tally.created) == (1, 0)


async def test_B16_a_deleted_job_ends_the_run_for_good(url: str) -> None:
    async with desk(url) as at:
        await at.write("article:1")
        await at.connection.execute("update horai.job set deleted_at = now() where name = 'publish'")

        outcome = await at.compare()

        report = await at.report()
    assert isinstance(outcome, FailedUnrecoverable)
    assert outcome.code == "JOB_GONE"
    assert (report.error or "").startswith("JOB_GONE")


async def test_B16_under_load_no_key_is_doubled_and_no_deletion_outlives_one_comparison(url: str) -> None:
    """Puts, moves, cancels and ends go on while one instance in a hundred is deleted by hand, again and again."""
    keys = [f"article:{number:05}" for number in range(1, 2_001)]
    dice = random.Random(16)
    async with desk(url, bounds=Bounds(page=250)) as at:
        await at.write_many(len(keys))
        await at.compared()
        stop = asyncio.Event()

        async def business() -> None:
            while not stop.is_set():
                with suppress(NotFound):  # deleted before its answer was read
                    await make.put(at.scope, dice.choice(keys[100:]), TOMORROW + timedelta(minutes=dice.randrange(60)))

        async def operator() -> None:
            """Cancels the first hundred, one after the other, on purpose."""
            for key in keys[:100]:
                await instances.cancel_by_key(at.scope, "publish", key)

        async def vandal() -> None:
            async with opened(url, "horai test vandal") as other:
                for _ in range(10):
                    await other.execute(
                        "delete from horai.instance_live where id in "
                        "(select id from horai.instance_live where key > 'article:00100' order by random() limit $1)",
                        len(keys) // 100,
                    )
                    await at.compared()
            stop.set()

        async with asyncio.timeout(60):
            await asyncio.gather(business(), business(), operator(), vandal())
        last = await at.compared()
        live = await at.live()  # it asserts that no key is there twice
    assert (last.tally.missing, last.tally.left_alone) == (0, 100)
    assert set(live) == set(keys[100:])


async def _end(at: drift.Desk, key: str, reason: CancelReason) -> None:
    async with at.scope.write() as connection:
        live = await plans.live_of_keys(connection, at.reconciler.target_id, [key])
        await plans.cancel_live(connection, [live[key].id], reason, running=True)


async def _finish(at: drift.Desk, key: str, state: int) -> None:
    """Moves a key's instance to history, as the settler does."""
    await _end(at, key, CancelReason.USER)
    await at.connection.execute(
        "update horai.instance_history set state = $2, reason = null where key = $1", key, state
    )
