"""One check of a tick of a refresh job: it records ended runs and loads due entities at their time.

A tick loads at most the limit of its job at a time, spread evenly over the time until the next tick, and loads nothing
while the runs of its last load wait to start. It checks again until everything it loaded has ended, or until a later
tick has begun, which finds the same entities. All progress is in the table: a repeated attempt continues where the last
one stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from horai.core.job import Definition
from horai.core.refresh import LOOK, RefreshPace, RefreshRule, until_begun, until_ended
from horai.core.timing import Timing
from horai.db import instances, jobs
from horai.db.calendars import definition_of
from horai.db.claims import Claimable
from horai.db.instances import NewInstance, target_of
from horai.db.jobs import JobRow
from horai.db.pool import AnyWrite, Platform
from horai.features.refresh import store as entities
from horai.features.refresh.store import Batch, DueSet, Loaded

PAGE, PAGES = 1_000, 100
"""Entities per page and pages per check of running entities; the rest waits for the next check."""


@dataclass(frozen=True, slots=True)
class Tick:
    """An instance of the job that makes ticks; its id is the number of the batch that it loads."""

    ticks_id: int
    batch_no: int
    fire_time: datetime


@dataclass(slots=True)
class TickResult:
    """The time until the next check (None if the tick is over), its result, and the runs to announce after commit."""

    again: timedelta | None = None
    result: dict[str, Any] = field(default_factory=dict[str, Any])
    woken: list[Claimable] = field(default_factory=list[Claimable])


@dataclass(frozen=True, slots=True)
class _Bench:
    """The data of one check, all of it locked."""

    connection: Platform
    job: JobRow
    refresh: RefreshRule
    due: DueSet
    batch_no: int


async def finish_some(connection: AnyWrite, job_id: int, pages: int = PAGES) -> None:
    """Record the ends of the runs of a job's entities; each page is its own transaction."""
    after = 0
    for _ in range(pages):
        page = await entities.finish_entities(connection, job_id, after, PAGE)
        if page.looked < PAGE or page.last_id is None:
            return
        after = page.last_id


async def check(connection: Platform, tick: Tick) -> TickResult:
    """Check a tick once: record ended runs, then load due entities in one transaction."""
    refreshed = await entities.refreshed_by(connection, tick.ticks_id)
    if refreshed is None:
        return TickResult()
    await finish_some(connection, refreshed)
    async with connection.transaction():
        job = await jobs.share_job(connection, refreshed)
        definition = None if job is None else await definition_of(connection, job)
        if job is None or definition is None or definition.refresh is None:
            return TickResult()
        due = DueSet(job.id, tick.fire_time, definition.refresh.window)
        bench = _Bench(connection, job, definition.refresh, due, tick.batch_no)
        batch = await _begun(bench)
        looked = await _go_on(bench, batch, _pace(definition, due, batch.due))
        if looked.again is None:
            await entities.end_batch(connection, job.id, tick.batch_no)
    return looked


async def _begun(bench: _Bench) -> Batch:
    known = await entities.lock_batch(bench.connection, bench.due.job_id, bench.batch_no)
    if known is not None:
        return known
    count = await entities.count_due_entities(bench.connection, bench.due)
    await entities.begin_batch(bench.connection, bench.due, bench.batch_no, count)
    begun = await entities.lock_batch(bench.connection, bench.due.job_id, bench.batch_no)
    assert begun is not None  # noqa: S101 — this or another attempt has just begun it
    return begun


def _pace(definition: Definition, due: DueSet, count: int) -> RefreshPace:
    return RefreshPace(due.tick, period_after(definition.timing, due.tick, due.window), due.window, count)


def period_after(timing: Timing, tick: datetime, window: timedelta) -> timedelta:
    """Return the time from a tick to the next; the length of the window after the last tick."""
    following = timing.next_after(tick)
    return window if following is None else following - tick


async def _go_on(bench: _Bench, batch: Batch, pace: RefreshPace) -> TickResult:
    looked = TickResult()
    head = None if batch.is_followed else await entities.next_due_entity(bench.connection, bench.due)
    if head is not None and pace.wanted(batch.loaded, head.finished_at) <= batch.now:
        limit = bench.refresh.limit
        if await entities.refreshes_waiting(bench.connection, bench.job.id, limit) >= limit:
            looked.again = until_begun(batch.started_at, batch.now)
            return looked
        loaded = await entities.load_entities(bench.connection, bench.due, limit, bench.batch_no)
        looked.woken = await _run(bench, loaded, pace, batch.loaded)
        batch = replace(batch, loaded=batch.loaded + len(loaded))
        head = await entities.next_due_entity(bench.connection, bench.due)
    if head is not None:
        looked.again = max(pace.wanted(batch.loaded, head.finished_at) - batch.now, LOOK)
        return looked
    counts = await entities.batch_counts(bench.connection, bench.job.id, bench.batch_no)
    if counts.running and not batch.is_followed:
        looked.again = until_ended(batch.started_at, batch.now)
    looked.result = {
        "due": batch.due,
        "loaded": batch.loaded,
        "running": counts.running,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
    }
    return looked


async def _run(bench: _Bench, loaded: Sequence[Loaded], pace: RefreshPace, first: int) -> list[Claimable]:
    """Create the instances of loaded entities. For a key with a live instance, the end of that instance counts."""
    connection, job = bench.connection, bench.job
    times = pace.spread(first, [entity.due for entity in loaded])
    wishes = [NewInstance(entity.due.key, at, entity.payload, None) for entity, at in zip(loaded, times, strict=True)]
    made = await instances.insert_keyed(connection, target_of(job, is_charged=False), wishes)
    pasts = await instances.past_of_keys(connection, job.id, list(made))
    await instances.inherit(connection, {made[key].id: known for key, known in pasts.items()})
    if letters := [letter for known in pasts.values() for letter in known.dead]:
        await instances.supersede_dead_letters(connection, letters)
    await entities.bind_entities(connection, job.id, {key: woken.id for key, woken in made.items()})
    if taken := [wish.key for wish in wishes if wish.key not in made]:
        await entities.adopt_live(connection, job.id, taken)
    await entities.note_loaded(connection, job.id, bench.batch_no, len(loaded))
    return list(made.values())
