"""Invariants of events, times, tenants, letters and lanes, each asked of a database that was broken by hand."""

from datetime import UTC, datetime

import pytest
from eventful_store import Store

from horai.db import nodes
from horai.db.verify import verify
from horai.operations import jobs


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
    assert "in the parking lane, and nothing will move it" in found["S2"].examples[0]

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
    await store.connection.execute("update horai.history_fold set kept_from = clock_timestamp()")

    assert [finding for finding in await verify(store.connection) if not finding.holds] == []
