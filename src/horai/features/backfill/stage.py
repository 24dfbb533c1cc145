"""The stage that creates the slots of backfills: few at a time, beside current work.

A step locks the backfill and its job, counts the instances that have ended, creates the next slots as far as cap and
rate leave room, and writes the progress, all in one transaction: a crash loses nothing and repeats nothing, and two
nodes that work on one backfill never exceed its cap. Its instances are in the low-priority lane beside the job's own,
so that current work waits behind at most as many instances as the cap allows.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice

import structlog

from horai.core.backfill_status import BackfillStatus
from horai.core.settings import EngineSettings
from horai.core.shards import Duty, Role
from horai.core.wakes import MoveWaitingWake
from horai.db import instances, jobs, quotas
from horai.db.claims import Claimable
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.lease import Lease
from horai.engine.loop import Stage
from horai.features.backfill import store as backfills
from horai.features.backfill.rules import OPEN, Progress, SlotChoice, after, choose, smoothed, starts
from horai.features.backfill.store import BackfillRow, BackfillStep, Ends, SlotToMake, Taken
from horai.features.parts import StageParts
from horai.operations.job_hooks import JobHooks
from horai.time.fires_between import slots_from

log = structlog.get_logger(__name__)

FEW, PAGE = 50, 1_000
"""Slots checked in one step: 50 at first, up to 1,000 while none of them is to be run."""
PORTION = 100
"""Slots created in one step: due work waits for at most this many of them, regardless of the cap."""
QUICK, SLOW, LONGEST = timedelta(milliseconds=10), timedelta(seconds=1), timedelta(seconds=30)
"""The pause between steps: 10 ms while instances end at each step, growing to 1 s while none ends. Without any end, as
when no worker runs the job, it grows to 30 s."""
GROWTH = 1.25
"""The growth of a pause of `SLOW` or longer: an end is noticed within a quarter of the time that was waited for it."""
IDLE = timedelta(minutes=2)
"""The pause without open backfills. A process that starts one sends a wake; this pause covers a lost wake."""
JOB_DELETED = "the job was deleted"


@dataclass(frozen=True, slots=True)
class BackfillProgressed:
    """The result of a step. `goes_on`: there is room for more at once."""

    woken: list[Claimable] = field(default_factory=list[Claimable])
    is_moved: bool = False
    goes_on: bool = False


class BackfillStage:
    """The stage that processes open backfills."""

    name = "backfill"

    def __init__(
        self,
        line: StageConnection,
        lease: Lease,
        wakeups: Wakeups,
        settings: EngineSettings,
        hooks: Sequence[JobHooks],
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._settings = settings
        self._hooks = hooks
        self._pause = QUICK
        self._pages: dict[int, int] = {}
        self._unreadable: set[int] = set()

    def hear(self) -> None:
        """Run a step now and soon again: a backfill was started or changed, or a new process may run its slots."""
        self._pause = QUICK
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Advance each open backfill of this node's shards once."""
        shards = self._lease.shards(Duty.trigger)
        if not self._lease.holds() or not shards:
            return now + self._settings.sweep
        connection = await self.line.get()
        open_ones = await backfills.open_backfills(connection, shards)
        self._pages = {i: size for i, size in self._pages.items() if i in open_ones}
        made = [await self._advance_readable(connection, backfill_id) for backfill_id in open_ones]
        if not made:
            self._pause = QUICK
            return now + IDLE
        is_moved = any(each.is_moved for each in made)
        self._pause = max(QUICK, min(self._pause, SLOW) / 2) if is_moved else _longer(self._pause)
        return now if any(each.goes_on for each in made) else now + self._pause

    async def _advance_readable(self, connection: Platform, backfill_id: int) -> BackfillProgressed:
        """Advance a backfill. If this node lacks its zone or calendar, log it once and do not delay the others."""
        try:
            return await self._advance(connection, backfill_id)
        except ValueError as error:
            if backfill_id not in self._unreadable:
                log.error("backfill cannot be read; its slots wait", backfill=backfill_id, error=str(error))
            self._unreadable.add(backfill_id)
            return BackfillProgressed()

    async def _advance(self, connection: Platform, backfill_id: int) -> BackfillProgressed:
        async with connection.transaction():
            taken = await backfills.take_backfill(connection, backfill_id)
            if taken is None:
                return BackfillProgressed()
            ends = await backfills.settle_backfill(connection, taken.row)
            look = await self._look(connection, taken, ends)
            if look.is_changed(ends):
                await self._write(connection, taken, ends, look)
        self._wakeups.announce_new(look.woken)
        return BackfillProgressed(look.woken, look.is_changed(ends), look.goes_on)

    async def _look(self, connection: Platform, taken: Taken, ends: Ends) -> "_Look":
        """Create as many slots as there is room for now."""
        row = taken.row
        if row.status is not BackfillStatus.RUNNING or taken.is_job_paused or taken.is_job_deleted:
            return _Look(row, row.next_time, row.next_start, row.status if not taken.is_job_deleted else _ended(row))
        room = row.max_concurrency - row.progress.running + ends.count
        if room > 0 and (left := await quotas.room(connection, row.tenant_id)) is not None:
            room = min(room, left)
        begin_at = starts(row.rate, row.next_start, row.now, min(room, PORTION))
        if row.next_time is None or not begin_at:
            return _Look(row, row.next_time, row.next_start)
        size = max(self._pages.get(row.id, FEW), len(begin_at))
        page = await asyncio.to_thread(_page, row, row.next_time, size + 1)
        page, following = page[:size], page[size] if len(page) > size else None
        choice, woken = await self._make(connection, row, page, begin_at)
        self._pages[row.id] = FEW if choice.chosen else min(2 * size, PAGE)
        next_time = choice.stopped_at or following
        skipped = choice.skipped + len(choice.chosen) - len(woken)
        next_start = after(row.rate, begin_at[: len(choice.chosen)], row.next_start)
        has_room = len(choice.chosen) < len(begin_at) or len(begin_at) == PORTION < room
        goes_on = next_time is not None and has_room
        return _Look(row, next_time, next_start, row.status, woken, skipped, goes_on)

    async def _make(
        self, connection: Platform, row: BackfillRow, page: list[datetime], begin_at: list[datetime]
    ) -> tuple[SlotChoice, list[Claimable]]:
        """Create the chosen slots of a page. Read upcoming slots first: one created in between is then a known slot."""
        if not page:
            return SlotChoice((), 0), []
        coming = await backfills.coming_slots(connection, row.job_id)
        known = await backfills.known_slots(connection, row.job_id, page[0], page[-1])
        choice = choose(row.mode, page, known, coming, len(begin_at))
        if not choice.chosen:
            return choice, []
        dead = [known[slot].dead for slot, _ in choice.chosen if slot in known]
        if letters := [instance_id for instance_id in dead if instance_id is not None]:
            await instances.supersede_dead_letters(connection, letters)
            for hooks in self._hooks:
                if hooks.replaced is not None:
                    await hooks.replaced(connection, letters)
        lane = await backfills.low_lane(connection, row.job_id)
        slots = [
            SlotToMake(slot, generation, at) for (slot, generation), at in zip(choice.chosen, begin_at, strict=False)
        ]
        made = await backfills.make_backfill_slots(connection, row, lane, slots)
        await quotas.note_added(connection, row.tenant_id, len(made))
        return choice, made

    async def _write(self, connection: Platform, taken: Taken, ends: Ends, look: "_Look") -> None:
        row, progress = taken.row, look.progress(ends)
        is_over = progress.running == 0 and (look.next_time is None or look.status is BackfillStatus.CANCELLED)
        status = BackfillStatus.DONE if is_over and look.status in OPEN else look.status
        note = JOB_DELETED if taken.is_job_deleted and row.status in OPEN else None
        step = BackfillStep(look.next_time, look.next_start, progress, status, note, is_finished=is_over)
        await backfills.write_backfill(connection, row.id, step)
        if status is not row.status:
            data = {"backfillId": str(row.id), "made": progress.made, "skipped": progress.skipped, "note": note}
            await jobs.insert_event(connection, taken.row.tenant_id, row.job_id, f"BACKFILL_{status.name}", data)


@dataclass(frozen=True, slots=True)
class _Look:
    """The outcome of one step: the position of the backfill, the created instances, and the number of skipped slots."""

    row: BackfillRow
    next_time: datetime | None
    next_start: datetime | None
    status: BackfillStatus = BackfillStatus.RUNNING
    woken: list[Claimable] = field(default_factory=list[Claimable])
    skipped: int = 0
    goes_on: bool = False

    def is_changed(self, ends: Ends) -> bool:
        """Return whether there is something to write."""
        is_over = self.row.progress.running == 0 and (self.next_time is None or self.status not in OPEN)
        return bool(ends.count or self.woken or self.skipped) or self.status is not self.row.status or is_over

    def progress(self, ends: Ends) -> Progress:
        """Return the progress including the ended and the created instances."""
        before = self.row.progress
        pace = before.pace
        if self.row.status is BackfillStatus.RUNNING:
            pace = smoothed(pace, ends.count, self.row.now - self.row.looked_at)
        return replace(
            before,
            made=before.made + len(self.woken),
            skipped=before.skipped + self.skipped,
            succeeded=before.succeeded + ends.succeeded,
            failed=before.failed + ends.failed,
            cancelled=before.cancelled + ends.cancelled,
            pace=pace,
        )


def _longer(pause: timedelta) -> timedelta:
    """Return the pause that follows a pause in which no instance ended."""
    return min(SLOW, pause * 2) if pause < SLOW else min(LONGEST, pause * GROWTH)


def _ended(row: BackfillRow) -> BackfillStatus:
    """Return the status of a backfill whose job is deleted."""
    return BackfillStatus.CANCELLED if row.status in OPEN else row.status


def _page(row: BackfillRow, first: datetime, size: int) -> list[datetime]:
    return [*islice(slots_from(row.schedule, first, row.end), size)]


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage if this process is a scheduler."""
    if Role.scheduler not in parts.roles:
        return []
    backfill_stage = BackfillStage(parts.line("backfill"), parts.lease, parts.wakeups, parts.settings, parts.hooks)
    parts.wakeups.subscribe(MoveWaitingWake, lambda _: backfill_stage.hear())
    parts.lease.on_change.append(backfill_stage.hear)
    return [backfill_stage]
