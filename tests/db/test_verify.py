"""Each invariant is asked of a healthy database, and of one that was broken by hand in exactly that respect."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg
import make
import pytest
from databases import TEMPLATE, url_for
from stages import FixedKeeper

from horai.core.outcome import Bury, Complete, Release, RetryAt
from horai.core.settings import EngineSettings
from horai.db import claims, nodes, settlements
from horai.db.pool import Dedicated, connect
from horai.db.stage_connection import StageConnection
from horai.db.verify import BOUND, QUESTIONS, Finding, verify
from horai.db.wakeups import Wakeups
from horai.embedded import EmbeddedPostgres
from horai.engine.rescuer import Rescuer
from horai.engine.trigger import Trigger
from horai.operations import instances, jobs
from horai.operations.scope import Scope

LATER = timedelta(hours=1)
FILLED = "horai_filled"


@dataclass(frozen=True)
class Store:
    """A database in which a bit of everything has happened, and a way to break it."""

    scope: Scope
    connection: Dedicated
    url: str

    async def broken(self, statement: str, *arguments: object) -> dict[str, Finding]:
        """The violations found after `statement`, by invariant."""
        await self.connection.execute(statement, *arguments)
        return {finding.invariant: finding for finding in await verify(self.connection) if not finding.holds}

    async def id_of(self, key: str) -> int:
        return await self.connection.fetchval("select instance_id from horai.job_instance where key = $1", key)


@pytest.fixture(scope="module")
def filled(postgres: EmbeddedPostgres) -> str:
    """A database in which a bit of everything has happened, to make copies of."""

    async def fill() -> None:
        await _admin(postgres, f"create database {FILLED} template {TEMPLATE}")
        url = url_for(postgres, FILLED)
        connection = await connect(url, "horai test")
        async with make.scope(url) as scope:
            await _live_a_little(Store(scope, connection, url))
        await connection.close()

    asyncio.run(fill())
    return FILLED


@pytest.fixture
def store(runner: asyncio.Runner, postgres: EmbeddedPostgres, filled: str) -> Iterator[Store]:
    name, stack = f"t{os.urandom(6).hex()}", AsyncExitStack()

    async def copy() -> Store:
        await _admin(postgres, f"create database {name} template {filled} strategy file_copy")
        url = url_for(postgres, name)
        connection = await connect(url, "horai test")
        stack.callback(connection.terminate)
        return Store(await stack.enter_async_context(make.scope(url, size=2)), connection, url)

    async def drop() -> None:
        await stack.aclose()
        await _admin(postgres, f"drop database {name} with (force)")

    yield runner.run(copy())
    runner.run(drop())


async def _admin(postgres: EmbeddedPostgres, statement: str) -> None:
    connection = await asyncpg.connect(postgres.url)
    await connection.execute(statement)
    await connection.close()


async def _live_a_little(store: Store) -> None:
    """Success, failure, death, release, cancel, supersession, rescue, late result, pause, slots: through the product."""
    scope, connection = store.scope, store.connection
    await make.job(scope, retry={"maxRetry": 5})
    await make.job(scope, "tick", every="1s")
    await _claims_of_every_end(store)
    await make.put(scope, "replaced")
    node = await make.node(connection, LATER)
    (late,) = await make.claim(connection, node)
    await make.put(scope, "replaced", datetime.now(UTC) + LATER)
    await claims.keep_late(connection, [claims.LateResult(late.held, "SUCCESS", None, None)])
    await make.put(scope, "moved", datetime.now(UTC) + LATER)
    await make.put(scope, "moved", datetime.now(UTC) + 2 * LATER)
    await make.put(scope, "cancelled", datetime.now(UTC) + LATER)
    await instances.cancel_by_key(scope, "publish", "cancelled")
    await make.put(scope, "waiting", datetime.now(UTC) + LATER)
    await make.job(scope, "held", status="PAUSED")
    await make.put(scope, "parked", job="held")
    await _rescue(store)
    await _make_slots(store, 3)
    await make.put(scope, "running")
    await make.claim(connection, node)


async def _claims_of_every_end(store: Store) -> None:
    connection = store.connection
    for key in ("succeeded", "failed", "dead", "released"):
        await make.put(store.scope, key)
    held = {row.key: row.held for row in await make.claim(connection, await make.node(connection))}
    await settlements.apply(
        connection,
        [
            (held["succeeded"], Complete('{"ok": true}')),
            (held["failed"], RetryAt(LATER, "HTTP_503", "busy")),
            (held["dead"], Bury("HTTP_400", "no", ("unrecoverable",))),
            (held["released"], Release(LATER)),
        ],
    )


async def _rescue(store: Store) -> None:
    await make.put(store.scope, "rescued")
    lost = await make.node(store.connection, timedelta(seconds=-1))
    await make.claim(store.connection, lost)
    line = StageConnection(store.url, "horai test")
    await Rescuer(line, FixedKeeper(0).keeper, Wakeups(), EngineSettings()).step(datetime.now(UTC))
    await line.close()


async def _make_slots(store: Store, count: int) -> None:
    """Slots of the job `tick` that have passed, as a trigger makes them."""
    await store.connection.execute(
        "update horai.job set active_from = active_from - interval '1 minute' where name = 'tick'"
    )
    await store.connection.execute(
        "update horai.schedule set fire_time = date_trunc('second', clock_timestamp()) - $1 * interval '1 second'",
        count,
    )
    node = await make.node(store.connection)
    line = StageConnection(store.url, "horai test")
    trigger = Trigger(line, FixedKeeper(node).keeper, Wakeups(), EngineSettings(), datetime.now(UTC))
    for _ in range(count):
        await trigger.step(datetime.now(UTC))
    await nodes.stop_node(store.connection, node)
    await line.close()
    for row in await make.claim(store.connection, await make.node(store.connection)):
        await settlements.apply(store.connection, [(row.held, Complete())])


async def test_a_healthy_database_has_no_violation_and_every_invariant_was_asked(store: Store) -> None:
    found = await verify(store.connection)

    assert [finding for finding in found if not finding.holds] == []
    assert [finding.title for finding in found] == [question.title for question in QUESTIONS]
    assert {finding.invariant for finding in found} >= {f"I{n}" for n in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14, 15)}


async def test_the_healthy_database_has_a_row_of_every_kind(store: Store) -> None:
    """Else the test above would prove little."""
    states = await store.connection.fetch("select distinct state from horai.job_instance")
    assert {row["state"] for row in states} == {"INIT", "RUNNING", "SUCCESS", "FAIL", "DEAD", "CANCELLED"}
    for table in ("attempt", "event", "dead_letter", "instance_history"):
        assert await store.connection.fetchval(f"select count(*) from horai.{table}") > 0
    assert await store.connection.fetchval("select count(*) from horai.attempt where late") == 1
    assert await store.connection.fetchval("select count(*) from horai.instance_history where slot = 0") >= 3


async def test_verify_changes_nothing_and_needs_no_right_to(store: Store) -> None:
    await store.connection.execute("set default_transaction_read_only = on")

    assert all(finding.holds for finding in await verify(store.connection))


async def test_examples_are_few_and_the_count_is_of_all(store: Store) -> None:
    found = await store.broken(
        "insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, fence)"
        " select 1000000 + n, 1, 1, 1, 0, now(), now(), now(), now(), -1000000 - n, 7 from generate_series(1, 500) n"
    )

    assert found["I8"].violations == 500
    assert len(found["I8"].examples) == 10
    assert found["I8"].examples[0] == "instance 1000001 has attempt 0, retry count 0, fence 7"


COPY_TO_HISTORY = """
insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, finished_at, fence,
    tenant_id, lane, attempt, retry_count, events, state)
select id, job_id, fire_time, execute_time, born_for, slot, created_at, clock_timestamp(), fence, tenant_id, lane, attempt,
    retry_count, events, 2 from horai.instance_live where id = $1
"""


async def test_I1_an_instance_that_is_live_and_final_is_found(store: Store) -> None:
    found = await store.broken(COPY_TO_HISTORY, await store.id_of("running"))

    assert "is RUNNING and SUCCESS" in found["I1"].examples[0]


async def test_I1_an_instance_that_ended_twice_is_found(store: Store) -> None:
    found = await store.broken(
        "insert into horai.instance_history select * from horai.instance_history where id = $1",
        await store.id_of("succeeded"),
    )

    assert "in history 2 times" in found["I1"].examples[0]


async def test_I2_a_failure_that_is_not_of_the_row_s_last_claim_is_found(store: Store) -> None:
    found = await store.broken(
        "update horai.instance_live set attempt = attempt + 1, fence = fence + 1 where id = $1",
        await store.id_of("failed"),
    )

    assert "without the outcome of attempt 2, fence 2" in found["I2"].examples[0]


async def test_I2_an_attempt_ahead_of_its_instance_is_found(store: Store) -> None:
    found = await store.broken("update horai.attempt set fence = 9 where late")

    assert "fence 9 is ahead of instance" in found["I2"].examples[0]


async def test_I2_a_success_without_a_claim_is_found(store: Store) -> None:
    found = await store.broken(
        "update horai.instance_history set attempt = 0, fence = 0 where id = $1", await store.id_of("succeeded")
    )

    assert "is SUCCESS without a claim" in found["I2"].examples[0]


async def test_I3_a_swallowed_reschedule_is_found(store: Store) -> None:
    found = await store.broken(
        "update horai.instance_live set fire_time = born_for, execute_time = born_for where id = $1",
        await store.id_of("moved"),
    )

    assert "though it was put to" in found["I3"].examples[0]


async def test_I3_a_superseded_instance_without_its_successor_is_found(store: Store) -> None:
    found = await store.broken("delete from horai.instance_live where supersedes is not null")

    assert "has 0 successors" in found["I3"].examples[0]


async def test_I3_a_successor_at_another_time_than_was_wished_is_found(store: Store) -> None:
    found = await store.broken(
        "update horai.instance_live set born_for = born_for + interval '1 s' where supersedes is not null"
    )

    assert "has 1 successors" in found["I3"].examples[0]


async def test_I4_a_key_with_two_live_instances_is_found(store: Store) -> None:
    await store.connection.execute("drop index horai.instance_live_key")
    found = await store.broken("update horai.instance_live set key = 'waiting' where key = 'moved'")

    assert "key waiting has 2 live instances" in found["I4"].examples[0]


async def test_I5_a_row_running_on_a_rescued_node_is_found(store: Store) -> None:
    found = await store.broken(
        "update horai.node set fenced_at = now(), rescued_at = now() where incarnation ="
        " (select node from horai.instance_live where state = 1)"
    )

    assert "which has been rescued" in found["I5"].examples[0]


async def test_I5_a_row_running_on_a_node_that_never_was_is_found(store: Store) -> None:
    found = await store.broken("update horai.instance_live set node = 99999 where state = 1")

    assert "which nobody knows" in found["I5"].examples[0]


async def test_I5_a_dead_node_nobody_rescued_is_found_only_while_another_one_could_have(store: Store) -> None:
    running_on = await store.connection.fetchval("select node from horai.instance_live where state = 1")
    await store.connection.execute("update horai.node set stopped_at = now() where incarnation <> $1", running_on)
    alone = await store.broken("update horai.node set lease_until = now() - 2 * $1::interval", BOUND)
    assert "I5" not in alone

    rescuer = await make.node(store.connection, name="idle")
    found = await store.broken(
        "update horai.node set started_at = now() - 2 * $1::interval where incarnation = $2", BOUND, rescuer
    )

    assert "is dead and waits for its rescue" in found["I5"].examples[0]


async def test_I5_a_row_left_waiting_is_found_only_while_a_node_has_been_there(store: Store) -> None:
    waiting = await store.id_of("waiting")
    overdue = await store.broken(
        "update horai.instance_live set execute_time = now() - 2 * $1::interval, due = now() - 2 * $1::interval where id = $2",
        BOUND,
        waiting,
    )
    assert "I5" not in overdue

    found = await store.broken("update horai.node set started_at = now() - 2 * $1::interval", BOUND)

    assert f"instance {waiting} is INIT and due since" in found["I5"].examples[0]


async def test_I5_a_worker_s_lane_may_wait_for_its_worker(store: Store) -> None:
    await make.job(store.scope, "by-worker", target={"type": "worker", "handler": "nobody"})
    await make.put(store.scope, "w", job="by-worker")
    await store.connection.execute("update horai.node set started_at = now() - 2 * $1::interval", BOUND)

    found = await store.broken(
        "update horai.instance_live set execute_time = now() - 2 * $1::interval, due = now() - 2 * $1::interval where key = 'w'",
        BOUND,
    )

    assert "I5" not in found


async def test_I7_a_slot_made_again_after_it_went_to_history_is_found(store: Store) -> None:
    found = await store.broken(
        "insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot)"
        " select 1000000, job_id, tenant_id, lane, 0, fire_time, fire_time, fire_time, now(), slot"
        " from horai.instance_history where slot = 0 limit 1"
    )

    assert "was made 2 times" in found["I7"].examples[0]


async def test_I7_a_missing_slot_of_a_fixed_rate_is_found_unless_it_was_skipped(store: Store) -> None:
    middle = "(select fire_time from horai.instance_history where slot = 0 order by fire_time offset 1 limit 1)"
    lost_at = await store.connection.fetchval(f"select {middle}")
    found = await store.broken("delete from horai.instance_history where slot = 0 and fire_time = $1", lost_at)
    assert "has no slot between" in found["I7"].examples[0]

    skipped = await store.broken(
        "insert into horai.skip (schedule_id, from_time, to_time, slots, reason)"
        " select schedule_id, $1, $1, 1, 'MISFIRE_ONCE' from horai.job where name = 'tick'",
        lost_at,
    )

    assert "I7" not in skipped


async def test_I8_an_attempt_that_failed_twice_is_found(store: Store) -> None:
    found = await store.broken(
        "insert into horai.attempt select * from horai.attempt where not late and instance_id = $1",
        await store.id_of("failed"),
    )

    assert any("has attempt 1 2 times" in example for example in found["I8"].examples)


async def test_I8_a_failure_nobody_counted_is_found(store: Store) -> None:
    found = await store.broken(
        "update horai.instance_live set retry_count = 0 where id = $1", await store.id_of("failed")
    )

    assert "has failed 0 times, with 1 failed attempts" in found["I8"].examples[0]


async def test_I8_a_loss_without_its_attempt_is_found(store: Store) -> None:
    found = await store.broken("update horai.instance_live set lost = 0 where id = $1", await store.id_of("rescued"))

    assert "was lost 0 times, with 1 lost attempts" in found["I8"].examples[0]


async def test_I8_a_fence_that_jumped_is_found(store: Store) -> None:
    found = await store.broken("update horai.instance_live set fence = 5 where id = $1", await store.id_of("waiting"))

    assert "attempt 0, retry count 0, fence 5" in found["I8"].examples[0]


async def test_I8_a_successor_that_does_not_continue_its_predecessor_s_fence_is_found(store: Store) -> None:
    found = await store.broken("update horai.instance_live set fence = 0 where supersedes is not null")

    assert "its predecessor ended with 1" in found["I8"].examples[0]


async def test_I9_a_running_row_without_an_owner_is_found(store: Store) -> None:
    await store.connection.execute("alter table horai.instance_live drop constraint instance_live_running_has_owner")
    found = await store.broken("update horai.instance_live set node = null where state = 1")

    assert "is RUNNING with node ," in found["I9"].examples[0]


async def test_I9_an_owner_of_a_row_that_does_not_run_is_found(store: Store) -> None:
    await store.connection.execute("alter table horai.instance_live drop constraint instance_live_running_has_owner")
    found = await store.broken("update horai.instance_live set claim = 7 where key = 'waiting'")

    assert "is INIT" in found["I9"].examples[0]


@pytest.mark.parametrize("key", ["dead", "cancelled"])
async def test_I10_an_end_that_no_event_tells_of_is_found(store: Store, key: str) -> None:
    instance = await store.id_of(key)
    found = await store.broken("update horai.event set kind = 'NOTHING' where instance_id = $1", instance)

    assert f"instance {instance} is {key.upper()}, and no event says so" in found["I10"].examples


async def test_I10_a_failure_that_no_event_tells_of_is_found(store: Store) -> None:
    found = await store.broken("update horai.event set kind = 'NOTHING' where kind = 'INSTANCE_FAILED'")

    assert "has failed 1 times, and events tell of 0" in found["I10"].examples[0]


async def test_I10_a_loss_that_no_event_tells_of_is_found(store: Store) -> None:
    found = await store.broken("update horai.event set kind = 'NOTHING' where kind = 'INSTANCE_LOST'")

    assert "was lost 1 times, and events tell of 0" in found["I10"].examples[0]


async def test_I10_a_late_result_that_no_event_tells_of_is_found(store: Store) -> None:
    found = await store.broken("delete from horai.event where kind = 'INSTANCE_LATE_RESULT'")

    assert "has 1 late attempts, and events tell of 0" in found["I10"].examples[0]


async def test_I11_a_hole_in_the_numbers_of_events_is_found(store: Store) -> None:
    found = await store.broken("update horai.event set seq = 4 where instance_id = $1", await store.id_of("moved"))

    assert "numbered 4 to 4" in found["I11"].examples[0]


async def test_I11_an_event_that_was_lost_is_found(store: Store) -> None:
    found = await store.broken("delete from horai.event where instance_id = $1", await store.id_of("released"))

    assert "counts 1 events; there are 0" in found["I11"].examples[0]


async def test_I12_a_claim_before_its_time_is_found_live_and_in_history(store: Store) -> None:
    live = await store.broken("update horai.instance_live set claimed_at = due - interval '1 ms' where state = 1")
    assert live["I12"].violations == 1

    both = await store.broken(
        "update horai.instance_history set claimed_at = execute_time - interval '1 ms' where id = $1",
        await store.id_of("succeeded"),
    )

    assert both["I12"].violations == 2


async def test_I12_a_row_due_before_its_time_is_found(store: Store) -> None:
    found = await store.broken(
        "update horai.instance_live set due = execute_time - interval '1 s' where key = 'waiting'"
    )

    assert "before its time" in found["I12"].examples[0]


@pytest.mark.parametrize("table", ["instance_live", "instance_history", "attempt", "event", "dead_letter", "lane"])
async def test_I15_a_row_of_another_tenant_is_found(store: Store, table: str) -> None:
    other = await store.connection.fetchval("insert into horai.tenant (name) values ('other') returning id")

    found = await store.broken(f"update horai.{table} set tenant_id = $1", other)

    assert list(found) == ["I15"]
    assert f"is of tenant {other}, the job of 1" in found["I15"].examples[0]


async def test_S1_a_dead_instance_without_its_letter_is_found(store: Store) -> None:
    found = await store.broken("delete from horai.dead_letter")

    assert "is DEAD and has no dead letter" in found["S1"].examples[0]


async def test_S1_a_letter_of_an_instance_that_is_not_dead_is_found(store: Store) -> None:
    found = await store.broken(
        "insert into horai.dead_letter (tenant_id, job_id, instance_id, error_code) values (1, 1, $1, 'X')",
        await store.id_of("succeeded"),
    )

    assert "has a dead letter and is not DEAD" in found["S1"].examples[0]


async def test_S2_a_parked_row_of_a_job_that_is_not_paused_is_found(store: Store) -> None:
    found = await store.broken("update horai.job set status = 0 where name = 'held'")
    assert "in the parking lane, and nobody will move it" in found["S2"].examples[0]

    marked = await store.broken("update horai.job set relane = true where name = 'held'")
    assert "S2" not in marked


async def test_S2_a_deleted_job_leaves_nothing_parked(store: Store) -> None:
    await jobs.delete_job(store.scope, "held")

    assert all(finding.holds for finding in await verify(store.connection))


async def test_S3_a_lane_that_there_is_not_is_found(store: Store) -> None:
    found = await store.broken("update horai.instance_live set lane = 4711 where key = 'waiting'")

    assert "waits in lane 4711" in found["S3"].examples[0]


async def test_S4_a_row_in_a_default_partition_is_found(store: Store) -> None:
    found = await store.broken("insert into horai.event (tenant_id, kind, at) values (1, 'X', '2100-01-01')")

    assert "an event of 2100-01-01" in found["S4"].examples[0]


async def test_a_day_dropped_by_retention_is_no_violation(store: Store) -> None:
    """Rows that outlive the partition of their first events are not held against them."""
    await nodes.make_partitions(store.connection, 3)
    today = datetime.now(UTC).strftime("%Y%m%d")
    await store.connection.execute(f"drop table horai.event_{today}, horai.attempt_{today}")

    assert [finding for finding in await verify(store.connection) if not finding.holds] == []
