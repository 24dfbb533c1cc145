"""The recorder: the order of events, and which of them are final."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import make
from databases import superuser
from rows import until_blocked
from stages import Workbench, workbench

from horai.core.controls import Controls
from horai.core.shards import EVERY_ROLE
from horai.db import outbox
from horai.db.pool import Platform
from horai.engine.loop import Stage
from horai.features import outbox as feature
from horai.features.outbox import store
from horai.features.outbox.recorder import Recorder
from horai.features.outbox.rules import pause_after
from horai.features.outbox.store import SinkStatus
from horai.features.parts import StageParts, stages_of


async def open_outbox(connection: Platform) -> None:
    """Insert a sink, as a request does."""
    position = await connection.fetchval("select horai.open_outbox()")
    await connection.execute(
        "insert into horai.sink (tenant_id, name, kind, place, batch, position) values (1, 'log', 'log', '{}', 1, $1)",
        position,
    )


def recorder_of(bench: Workbench) -> Recorder:
    parts = StageParts(bench.line, bench.lease, bench.scope.wakeups, bench.settings, EVERY_ROLE, bench.clock.now(), ())
    parts.controls.apply(Controls(records_events=True))
    stage: Stage = stages_of([feature.FEATURE], parts)[0]
    assert isinstance(stage, Recorder)
    return stage


async def record(recorder: Recorder) -> None:
    """Let the recorder take its next step now."""
    recorder.wake()
    await recorder.step(recorder._ready_at + timedelta(seconds=1))


async def recorded(connection: Platform) -> list[tuple[str, str | None]]:
    """Return the types and keys of recorded events, in order."""
    rows = await connection.fetch("select type, data ->> 'key' as key from horai.outbox order by position")
    return [(row["type"].removeprefix("horai.instance."), row["key"]) for row in rows]


async def tell(connection: Platform, instance: int, seq: int | None, kind: str, **columns: Any) -> None:
    at = columns.get("at", timedelta())
    await connection.execute(
        "insert into horai.event (tenant_id, instance_id, seq, at, kind, data) values (1, $1, $2, clock_timestamp() + $3, $4, $5)",
        instance, seq, at, kind, json.dumps({"key": f"k{instance}"}),
    )  # fmt: skip


async def test_an_event_is_recorded_only_when_every_transaction_before_it_has_ended(url: str) -> None:
    async with workbench(url) as bench:
        await open_outbox(bench.connection)
        recorder = recorder_of(bench)
        early, late = await superuser(url), await superuser(url)
        transaction = early.transaction()
        await transaction.start()
        await tell(early, 1, 1, "INSTANCE_FAILED")
        await tell(late, 2, 1, "INSTANCE_FAILED")
        await record(recorder)
        assert await recorded(bench.connection) == []
        await transaction.commit()
        await record(recorder)
        assert await recorded(bench.connection) == [("failed", "k1"), ("failed", "k2")]
        await record(recorder)
        assert len(await recorded(bench.connection)) == 2, "each event is recorded once"
        early.terminate()
        late.terminate()


async def test_a_transaction_that_began_early_and_wrote_late_waits_for_the_event_before_it(url: str) -> None:
    """B has the lowest id, C is open, A has the highest id and wrote before B: B waits for A."""
    async with workbench(url) as bench:
        await open_outbox(bench.connection)
        recorder = recorder_of(bench)
        first, second, third = await superuser(url), await superuser(url), await superuser(url)
        early, open_one = first.transaction(), second.transaction()
        await early.start()
        await first.execute("select pg_current_xact_id()")
        await open_one.start()
        await second.execute("select pg_current_xact_id()")
        await tell(third, 7, 1, "INSTANCE_FAILED")
        await tell(first, 7, 2, "INSTANCE_DEAD")
        await early.commit()
        await record(recorder)
        assert await recorded(bench.connection) == [], "the second event of the instance must not come first"
        await open_one.commit()
        await record(recorder)
        assert await recorded(bench.connection) == [("failed", "k7"), ("dead", "k7")]
        for each in (first, second, third):
            each.terminate()


async def test_events_of_an_instance_keep_their_order_when_the_clock_is_set_back(url: str) -> None:
    async with workbench(url) as bench:
        await open_outbox(bench.connection)
        recorder = recorder_of(bench)
        await tell(bench.connection, 1, 1, "INSTANCE_FAILED")
        await tell(bench.connection, 1, 2, "INSTANCE_RELEASED", at=-timedelta(minutes=5))
        await tell(bench.connection, 1, 3, "INSTANCE_DEAD", at=-timedelta(minutes=4))
        await record(recorder)
        assert [kind for kind, _ in await recorded(bench.connection)] == ["failed", "released", "dead"]


async def test_a_row_from_a_clock_that_was_set_back_between_two_recordings_is_found(url: str) -> None:
    async with workbench(url) as bench:
        await open_outbox(bench.connection)
        recorder = recorder_of(bench)
        await tell(bench.connection, 1, 1, "INSTANCE_FAILED")
        await record(recorder)
        # The clock goes back by an hour: by the monotonic clock of this process, an hour has passed that the database did not count.
        told = recorder._watch._monotonic
        recorder._watch._monotonic = lambda: told() + 3600.0
        await bench.connection.execute(
            "insert into horai.event (tenant_id, instance_id, seq, at, kind, data) "
            "values (1, 2, 1, clock_timestamp() - interval '59 minutes', 'INSTANCE_FAILED', '{\"key\": \"k2\"}')"
        )
        await record(recorder)
        assert await recorded(bench.connection) == [("failed", "k1"), ("failed", "k2")]


async def test_events_go_on_after_a_dump_was_restored_into_a_server_with_lower_transaction_ids(url: str) -> None:
    async with workbench(url) as bench:
        await open_outbox(bench.connection)
        recorder = recorder_of(bench)
        await bench.connection.execute("update horai.outbox_cursor set xid = '999999999999'")
        await tell(bench.connection, 1, 1, "INSTANCE_FAILED")
        await record(recorder)
        assert await recorded(bench.connection) == [("failed", "k1")]
        await tell(bench.connection, 1, 2, "INSTANCE_DEAD")
        await record(recorder)
        assert await recorded(bench.connection) == [("failed", "k1"), ("dead", "k1")]


async def test_a_rolled_back_change_has_no_event(url: str) -> None:
    async with workbench(url) as bench:
        await open_outbox(bench.connection)
        recorder = recorder_of(bench)
        transaction = bench.connection.transaction()
        await transaction.start()
        await tell(bench.connection, 1, 1, "INSTANCE_FAILED")
        await transaction.rollback()
        await tell(bench.connection, 2, 1, "INSTANCE_FAILED")
        await record(recorder)
        assert await recorded(bench.connection) == [("failed", "k2")]


async def test_a_sink_that_is_created_while_the_outbox_closes_finds_it_open(url: str) -> None:
    async with workbench(url) as bench:
        await open_outbox(bench.connection)
        await bench.connection.execute("delete from horai.sink")
        recorder = recorder_of(bench)
        creator = await superuser(url)
        transaction = creator.transaction()
        await transaction.start()
        await open_outbox(creator)
        line = await recorder.line.get()
        closing = asyncio.create_task(record(recorder))
        await until_blocked(bench.connection, line)
        await transaction.commit()
        await closing
        assert await bench.connection.fetchval("select is_on from horai.outbox_cursor")
        creator.terminate()


async def test_old_events_are_trimmed_and_young_ones_stay(url: str) -> None:
    async with workbench(url) as bench:
        await open_outbox(bench.connection)
        recorder = recorder_of(bench)
        await tell(bench.connection, 1, 1, "INSTANCE_FAILED")
        await record(recorder)
        await bench.connection.execute("update horai.outbox set recorded_at = recorded_at - interval '8 days'")
        await tell(bench.connection, 2, 1, "INSTANCE_FAILED")
        await record(recorder)
        now = bench.clock.now()
        assert await outbox.trim_outbox(bench.connection, now - outbox.KEPT_FOR, 10) == 1
        assert await recorded(bench.connection) == [("failed", "k2")]


async def test_the_rows_to_record_are_found_without_reading_the_whole_history(url: str) -> None:
    async with workbench(url) as bench:
        await make.job(bench.scope, "hello")
        await bench.connection.execute("select horai.make_partitions((now() at time zone 'UTC')::date - 1, 2)")
        await bench.connection.execute(
            """insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, finished_at, fence,
                 tenant_id, lane, attempt, retry_count, events, state)
               select n, 1, now(), now(), now(), 0, now(), now() - (200000 - n) * interval '100 ms', 1, 1, 1, 1, 0, 0, 2
               from generate_series(1, 200000) n"""
        )
        await bench.connection.execute("select horai.summarize_events()")
        await bench.connection.execute("analyze horai.instance_history")
        counted = await bench.connection.fetch(
            "explain (analyze, buffers) select * from horai.instance_history where finished_at >= now() - interval '5 seconds' and state = 2"
        )
        assert "Bitmap" in "\n".join(row[0] for row in counted)


async def test_a_delivery_that_was_overtaken_moves_no_sink(url: str) -> None:
    """Another node has moved the sink, or a user has moved it back or paused it, while events were sent."""
    async with workbench(url) as bench:
        await open_outbox(bench.connection)
        [served] = await store.sinks_to_serve(bench.connection)
        assert await store.sink_delivered(bench.connection, served.row, 5, 5) is SinkStatus.ACTIVE
        assert await store.sink_delivered(bench.connection, served.row, 3, 3) is None
        failed = await store.sink_failed(
            bench.connection, served.row, "late", timedelta(seconds=1), timedelta(minutes=5), is_final=False
        )
        assert failed is None
        await bench.connection.execute("update horai.sink set status = 'PAUSED'")
        paused = replace(served.row, position=5)
        assert await store.sink_delivered(bench.connection, paused, 6, 1) is None
        row = await bench.connection.fetchrow("select position, status, failures from horai.sink")
        assert row is not None
        assert tuple(row) == (5, "PAUSED", 0)


async def test_a_sink_that_fails_for_five_minutes_is_parked_and_goes_on_by_itself(url: str) -> None:
    async with workbench(url) as bench:
        await open_outbox(bench.connection)
        [served] = await store.sinks_to_serve(bench.connection)
        pause, limit = timedelta(seconds=1), timedelta(minutes=5)

        async def fail() -> tuple[SinkStatus, SinkStatus] | None:
            return await store.sink_failed(bench.connection, served.row, "HTTP 503", pause, limit, is_final=False)

        assert await fail() == (SinkStatus.ACTIVE, SinkStatus.ACTIVE)
        await bench.connection.execute("update horai.sink set failing_since = failing_since - interval '299 seconds'")
        assert await fail() == (SinkStatus.ACTIVE, SinkStatus.ACTIVE)
        await bench.connection.execute("update horai.sink set failing_since = failing_since - interval '2 seconds'")
        assert await fail() == (SinkStatus.ACTIVE, SinkStatus.PARKED)
        assert [each.row.status for each in await store.sinks_to_serve(bench.connection)] == [SinkStatus.PARKED]
        assert await store.sink_delivered(bench.connection, served.row, 1, 1) is SinkStatus.PARKED
        [served] = await store.sinks_to_serve(bench.connection)
        assert (served.row.status, served.row.failures, served.row.failing_since) == (SinkStatus.ACTIVE, 0, None)


def test_the_pause_after_failures_doubles_up_to_a_minute() -> None:
    pauses = [pause_after(failures).total_seconds() for failures in (1, 2, 3, 6, 7, 50)]
    assert pauses == [1, 2, 4, 32, 60, 60]
