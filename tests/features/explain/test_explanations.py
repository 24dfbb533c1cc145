"""The facts about a slot, read from a real database, and the explanation of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest

from horai.core.errors import Invalid, NotFound
from horai.core.queue import QueueSettings
from horai.core.states import FINAL, CancelReason, State
from horai.db.jobs import JobRow
from horai.db.pool import Platform
from horai.features.explain import SkippedSlots, Verdict
from horai.features.explain.service import ExplainResult, explain_slot
from horai.operations import jobs as accepted
from horai.operations import queues as accepted_queues
from horai.operations.scope import Scope

AGES_AGO = datetime(2020, 1, 1, tzinfo=UTC)
AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
"""A slot of a job that fires each hour, some time ago."""
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Store:
    """A job that has been there for ages, and a way to write the ends of its slots."""

    scope: Scope
    connection: Platform
    job: JobRow

    async def explain(self, at: datetime | str = AT) -> ExplainResult:
        return await explain_slot(self.scope, self.job.name, at)

    async def verdict(self, at: datetime | str = AT) -> Verdict:
        return (await self.explain(at)).explanation.verdict

    async def cursor(self, at: datetime | None, last_job: int = 0) -> None:
        await self.connection.execute("update horai.schedule set fire_time = $1, last_job = $2", at, last_job)

    async def skip(self, job_id: int | None, first: datetime, last: datetime, reason: str) -> None:
        await self.connection.execute(
            "insert into horai.skip (tenant_id, schedule_id, job_id, from_time, to_time, slots, reason)"
            " values ((select tenant_id from horai.job where id = $2), $1, $2, $3, $4, 3, $5)",
            self.job.schedule_id, job_id, first, last, reason,
        )  # fmt: skip

    async def live(self, at: datetime = AT, state: State = State.INIT, **columns: Any) -> int:
        row = {"slot": 0, "lane": self.job.lane_id, "key": None, "due": at, "created_at": at, **columns}
        node = await make.node(self.connection) if state is State.RUNNING else None
        return await self.connection.fetchval(
            "insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard,"
            " attempt, fence, state, node, claim, claimed_at, key, created_at)"
            " values (nextval('horai.instance_id'), $1, $2, $3, $3, $3, $4, 1, $5, 0, 1, 1, $6, $7, $8, $9, $10, $11) returning id",
            self.job.id, row["due"], at, row["slot"], row["lane"], int(state), node,
            None if node is None else 1, None if node is None else at, row["key"], row["created_at"],
        )  # fmt: skip

    async def ended(self, at: datetime = AT, state: State = State.SUCCESS, **columns: Any) -> int:
        assert state in FINAL
        row = {"slot": 0, "reason": None, "from": at, "to": at + timedelta(seconds=5), **columns}
        return await self.connection.fetchval(
            "insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, claimed_at,"
            " finished_at, fence, tenant_id, lane, attempt, retry_count, events, state, reason)"
            " values (nextval('horai.instance_id'), $1, $2, $2, $2, $3, $4, $4, $5, 1, 1, $6, 1, 0, 0, $7, $8) returning id",
            self.job.id, at, row["slot"], row["from"], row["to"], self.job.lane_id, int(state), row["reason"],
        )  # fmt: skip


@asynccontextmanager
async def store(url: str, connection: Platform, **fields: Any) -> AsyncGenerator[Store]:
    async with make.scope(url) as scope:
        job = await make.job(scope, **({"cron": "0 * * * *"} | fields))
        await connection.execute("update horai.job set active_from = $1, created_at = $1", AGES_AGO)
        await connection.execute("update horai.schedule set fire_time = $1", AT + HOUR)
        yield Store(scope, connection, job)


async def test_a_slot_in_history_is_told_with_its_instance_the_latest_generation_first(url: str, connection: Platform):
    async with store(url, connection) as known:
        await known.ended(state=State.DEAD)
        again = await known.ended(slot=1)

        found = await known.explain()

        assert found.explanation.verdict is Verdict.FIRED
        assert found.instance is not None
        assert (found.instance.id, found.instance.state, found.explanation.instance_id) == (again, State.SUCCESS, again)
        assert (found.explanation.previous, found.explanation.next) == (AT - HOUR, AT + HOUR)


async def test_a_live_slot_runs_or_waits_for_its_retry(url: str, connection: Platform):
    async with store(url, connection) as known:
        await known.live(state=State.RUNNING)
        await known.live(AT + HOUR, State.FAIL, due=datetime(2999, 1, 1, tzinfo=UTC))

        running = await known.explain()
        assert running.explanation.verdict is Verdict.RUNNING
        assert "on node test-node since 2026-03-02T09:00:00+00:00" in running.explanation.why
        failed = await known.explain(AT + HOUR)
        assert failed.explanation.verdict is Verdict.WAITING
        assert "tried again at 2999-01-01T00:00:00+00:00" in failed.explanation.why


async def test_a_skip_of_the_schedule_holds_for_each_job_and_a_jobs_own_for_it_alone(url: str, connection: Platform):
    async with store(url, connection) as known:
        other = await make.job(known.scope, "other", cron="0 * * * *")
        await connection.execute("update horai.job set active_from = $1, created_at = $1", AGES_AGO)
        await known.cursor(AT + 9 * HOUR)
        await known.skip(None, AT - 5 * HOUR, AT - 3 * HOUR, "MISFIRE_ONCE")
        await known.skip(known.job.id, AT - HOUR, AT + HOUR, "PAUSED_SKIP")
        await known.skip(other.id, AT + 3 * HOUR, AT + 5 * HOUR, "PAUSED_ONCE")

        down = await known.explain(AT - 4 * HOUR)
        assert down.explanation.skip == SkippedSlots(AT - 5 * HOUR, AT - 3 * HOUR, 3, "MISFIRE_ONCE")
        for at in (AT - HOUR, AT, AT + HOUR):
            assert (await known.explain(at)).explanation.skip == SkippedSlots(AT - HOUR, AT + HOUR, 3, "PAUSED_SKIP")
        assert await known.verdict(AT + 2 * HOUR) is Verdict.MISSED
        assert await known.verdict(AT + 4 * HOUR) is Verdict.MISSED
        theirs = await explain_slot(known.scope, "other", AT + 4 * HOUR)
        assert theirs.explanation.verdict is Verdict.SKIPPED


async def test_a_slot_before_the_cursor_is_missed_behind_it_late_and_in_line_when_deferred(
    url: str, connection: Platform
):
    async with store(url, connection) as known:
        assert await known.verdict(AT) is Verdict.MISSED
        assert await known.verdict(AT + HOUR) is Verdict.LATE
        late = await known.explain(AT + 2 * HOUR)
        assert "no live node makes slots" in late.explanation.why
        await make.node(connection)
        assert "no live node" not in (await known.explain(AT + HOUR)).explanation.why
        await known.cursor(AT + HOUR, last_job=known.job.id)
        assert await known.verdict(AT + HOUR) is Verdict.MISSED

        await connection.execute(
            "insert into horai.catchup (tenant_id, job_id, schedule_id, next_time, until_time) values (1, $1, $2, $3, $4)",
            known.job.id, known.job.schedule_id, AT - HOUR, AT + HOUR,
        )  # fmt: skip
        in_line = await known.explain()
        assert in_line.explanation.verdict is Verdict.LATE
        assert "one of 3 late slots" in in_line.explanation.why


async def test_the_next_slot_comes(url: str, connection: Platform):
    async with make.scope(url) as scope:
        job = await make.job(scope, cron="0 0 1 1 *", timezone="Asia/Shanghai")
        await connection.execute("update horai.job set created_at = $1", AGES_AGO)
        fire_time = await connection.fetchval("select fire_time from horai.schedule where id = $1", job.schedule_id)

        coming = (await explain_slot(scope, job.name, fire_time)).explanation
        assert (coming.verdict, coming.local) == (Verdict.COMING, f"{coming.at.year + 1}-01-01T00:00:00+08:00")
        before = (await explain_slot(scope, job.name, coming.previous or AT)).explanation
        assert before.verdict is Verdict.NOT_A_SLOT
        assert "follows this schedule since" in before.why


async def test_a_pause_holds_the_slots_that_come_and_what_waits(url: str, connection: Platform):
    async with store(url, connection) as known:
        await known.live()
        await accepted.pause_job(known.scope, known.job.name, "stock-taking")
        await connection.execute("update horai.job set paused_at = $1", AT + timedelta(minutes=1))

        waits = (await known.explain()).explanation
        assert (waits.verdict, "the job is paused since 2026-03-02T09:01:00+00:00 (stock-taking)" in waits.why) == (
            *(Verdict.HELD, True),
        )
        passed = (await known.explain(AT + HOUR)).explanation
        assert (passed.verdict, passed.instance_id) == (Verdict.HELD, None)
        assert "the misfire policy once makes only the last slot of the pause" in passed.why


async def test_a_slot_that_yielded_names_the_run_that_was_under_way(url: str, connection: Platform):
    async with store(url, connection, overlap="skip") as known:
        long = await known.ended(AT - 3 * HOUR, to=AT + timedelta(minutes=30))
        await known.ended(AT - 2 * HOUR, State.CANCELLED, reason=int(CancelReason.OVERLAP))
        await known.live(AT - HOUR, slot=-77, key="article:42")
        await known.ended(AT, State.CANCELLED, reason=int(CancelReason.OVERLAP))

        yielded = (await known.explain()).explanation

        assert yielded.verdict is Verdict.CANCELLED
        assert f"instance {long} was still in progress, and by overlap skip a slot yields to it" in yielded.why


async def test_a_slot_behind_its_gate_names_the_run_before_it(url: str, connection: Platform):
    async with store(url, connection, overlap="queue") as known:
        running = await known.live(AT - HOUR, State.RUNNING)
        await known.live(AT, lane=0)

        held = (await known.explain()).explanation

        assert held.verdict is Verdict.HELD
        assert f"by overlap queue it waits until instance {running} has ended" in held.why


async def test_a_queue_holds_what_waits_in_it(url: str, connection: Platform):
    async with store(url, connection, queue="slow") as known:
        await known.live()
        assert "no live node makes HTTP calls" in (await known.explain()).explanation.why
        await make.node(connection)
        assert await known.verdict() is Verdict.WAITING

        await accepted_queues.set_queue(known.scope, "slow", QueueSettings(paused=True))
        assert "its queue slow is paused" in (await known.explain()).explanation.why


async def test_X15_a_time_that_does_not_exist_is_explained_by_the_slot_behind_the_gap(url: str, connection: Platform):
    async with store(url, connection, cron="30 2 * * *", timezone="Europe/Berlin") as known:
        made = await known.ended(datetime(2026, 3, 29, 1, tzinfo=UTC))

        found = (await known.explain("2026-03-29T02:30")).explanation

        assert (found.verdict, found.instance_id, found.local) == (Verdict.FIRED, made, "2026-03-29T03:00:00+02:00")
        assert found.why.startswith(
            "02:30 does not exist on 2026-03-29: the clock jumps from 02:00 to 03:00, where its slot is. "
        )
        lost = (await known.explain("2026-03-29T02:15")).explanation
        assert (lost.verdict, lost.instance_id) == (Verdict.NOT_A_SLOT, None)
        assert "does not allow it either: the minute 15 is not 30" in lost.why


async def test_X15_of_a_time_that_comes_twice_both_are_explained_the_slot_first(url: str, connection: Platform):
    last = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "dst": {"overlap": "last"}}
    async with store(url, connection, **last) as known:
        made = await known.ended(datetime(2025, 10, 26, 1, 30, tzinfo=UTC))

        found = await known.explain("2025-10-26 02:30")

        assert (found.explanation.instance_id, found.explanation.local) == (made, "2025-10-26T02:30:00+01:00")
        assert found.also is not None
        assert (found.also.explanation.verdict, found.also.explanation.local) == (
            *(Verdict.NOT_A_SLOT, "2025-10-26T02:30:00+02:00"),
        )
        assert "by dst.overlap last the slot is at 2025-10-26T02:30:00+01:00" in found.also.explanation.why


async def test_a_job_without_a_schedule_explains_the_instance_of_that_time(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        _, planned = await make.put(scope, "article:42", datetime(2999, 1, 1, tzinfo=UTC))

        found = await explain_slot(scope, "publish", planned.fire_time)
        assert found.instance is not None
        assert (found.explanation.verdict, found.instance.key) == (Verdict.WAITING, "article:42")
        nothing = (await explain_slot(scope, "publish", "2999-01-01T00:00:01Z")).explanation
        assert (nothing.verdict, nothing.previous, nothing.next) == (Verdict.NOT_A_SLOT, None, None)
        assert "no schedule" in nothing.why


async def test_a_slot_that_follows_the_end_of_a_run_is_found_by_its_time(url: str, connection: Platform):
    async with make.scope(url) as scope:
        job = await make.job(scope, every="10m", everyFrom="finish")
        fire_time = await connection.fetchval("select fire_time from horai.instance_live where job_id = $1", job.id)

        found = (await explain_slot(scope, "publish", fire_time)).explanation
        assert found.verdict is Verdict.WAITING
        assert "present schedule" not in found.why
        nothing = (await explain_slot(scope, "publish", AT)).explanation
        assert "each run comes 10m after the one before has ended" in nothing.why


async def test_an_invalid_time_and_an_unknown_job_are_refused(url: str):
    async with make.scope(url) as scope:
        await make.job(scope)
        with pytest.raises(Invalid, match="at: is neither an instant nor a time of day") as refused:
            await explain_slot(scope, "publish", "tomorrow")
        assert "2026-03-29T02:30" in (refused.value.hint or "")
        with pytest.raises(NotFound):
            await explain_slot(scope, "nobody", AT)
