"""Each invariant of instances is asked of a healthy database, and of one that was broken by hand in that respect."""

import make
from eventful_store import Store

from horai.db.verify import BOUND, QUESTIONS, verify


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
    assert await store.connection.fetchval("select count(*) from horai.attempt where late") == 2
    assert await store.connection.fetchval("select count(*) from horai.instance_history where slot = 0") >= 3


async def test_verify_changes_nothing_and_needs_no_right_to(store: Store) -> None:
    await store.connection.execute("set default_transaction_read_only = on")

    assert all(finding.holds for finding in await verify(store.connection))


async def test_examples_are_few_and_the_count_is_of_all(store: Store) -> None:
    found = await store.broken(
        "insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, attempt)"
        " select 1000000 + n, 1, 1, 1, 0, now(), now(), now(), now(), -1000000 - n, 7 from generate_series(1, 500) n"
    )

    assert found["I8"].violations == 500
    assert len(found["I8"].examples) == 10
    assert found["I8"].examples[0] == "instance 1000001 has attempt 7, retry count 0, fence 0"


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


async def test_I2_an_outcome_with_a_higher_attempt_than_its_instance_is_found(store: Store) -> None:
    found = await store.broken(
        "update horai.attempt set attempt = 2 where instance_id = $1", await store.id_of("failed")
    )

    assert "attempt 2, fence 1 is ahead of instance" in "".join(found["I2"].examples)


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

    assert "which does not exist" in found["I5"].examples[0]


async def test_I5_verify_reports_a_dead_node_without_a_rescue_only_if_another_node_could_rescue_it(
    store: Store,
) -> None:
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


async def test_I8_verify_reports_a_failed_attempt_that_the_retry_count_lacks(store: Store) -> None:
    found = await store.broken(
        "update horai.instance_live set retry_count = 0 where id = $1", await store.id_of("failed")
    )

    assert "has failed 0 times, with 1 failed attempts" in found["I8"].examples[0]


async def test_I8_a_loss_without_its_attempt_is_found(store: Store) -> None:
    found = await store.broken("update horai.instance_live set lost = 0 where id = $1", await store.id_of("rescued"))

    assert "was lost 0 times, with 1 lost attempts" in found["I8"].examples[0]


async def test_I8_a_fence_behind_its_attempts_is_found(store: Store) -> None:
    found = await store.broken("update horai.instance_live set attempt = 5 where id = $1", await store.id_of("waiting"))

    assert "attempt 5, retry count 0, fence 0" in found["I8"].examples[0]


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
