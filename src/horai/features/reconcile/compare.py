"""A run of a reconciler, page by page: it creates each missing instance once.

This holds even if other transactions put, finish or delete instances meanwhile. Each page is one transaction together
with the report that counts it, so an interrupted run continues after its last page. A newer attempt takes the report
over; after that the older attempt writes nothing, nor does an attempt whose source was changed.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from horai.core.errors import HoraiError
from horai.core.put import Past
from horai.db import instances, jobs
from horai.db.claims import Claimable
from horai.db.instances import InsertTarget, KeyPast, NewInstance, target_of
from horai.db.pool import AnyRead, AnyWrite, Plans, retrying
from horai.db.wakeups import Wakeups
from horai.features.reconcile import store as reconcilers
from horai.features.reconcile.rules import (
    REPORTS_KEPT,
    DesiredInstance,
    ReconcileCounts,
    Row,
    SortedRows,
    SourceChoice,
    choose,
    sort_rows,
    tally_of,
)
from horai.features.reconcile.store import ReconcilerRow, Report
from horai.operations.scope import job_not_found

HELD_FOR = timedelta(milliseconds=200)
"""The time to wait for another transaction that holds a key; after that, the key is being put and is not missing."""
REPORTS_FORGOTTEN_AT_ONCE = 100
"""The number of old reports that a run deletes when it begins; each run adds one report."""


Write: TypeAlias = Callable[[Plans], AbstractAsyncContextManager[AnyWrite]]
"""A function that begins a transaction: that of a scope, or one on the connections of the engine."""


class Overtaken(HoraiError):
    """An attempt that must not write: another attempt has the report, the source was changed, or the run is over."""

    code = "SCH_409_OVERTAKEN"
    status = 409
    title = "Overtaken"


class Comparison:
    """One attempt of one run. Call `begin` before the first page and `finish` after the last."""

    def __init__(self, write: Write, wakeups: Wakeups, reconciler: ReconcilerRow, report: Report) -> None:
        self._write = write
        self._wakeups = wakeups
        self._reconciler = reconciler
        self.report = report

    async def take(self, rows: Sequence[Row], cursor: str | None) -> ReconcileCounts:
        """Create the missing instances of a page; `cursor` is the start of the next page, None after the last."""
        page = sort_rows(rows)
        tally, woken = await retrying(lambda: self._take(page, cursor))
        self._wakeups.announce_new(woken)
        return tally

    async def _take(self, page: SortedRows, cursor: str | None) -> tuple[ReconcileCounts, list[Claimable]]:
        async with self._write(Plans.KEPT) as connection:
            report = await self._hold(connection)
            place = await self._place(connection)
            live = await reconcilers.live_keys(connection, place.job_id, page.keys)
            choices = await _choices(connection, place, page.wanted, live)
            made = await _create(
                connection, place, [page.wanted[k] for k, c in choices.items() if c is SourceChoice.create]
            )
            met = await reconcilers.note_seen(connection, report, [*live.values(), *(one.id for one in made)])
            tally = report.tally.plus(tally_of(page, choices, len(made)))
            await reconcilers.write_report(connection, report, tally, cursor, met)
        return tally, made

    async def _hold(self, connection: AnyWrite) -> Report:
        held = await reconcilers.lock_report(connection, self.report)
        if held is None:
            raise Overtaken(f"The run {self.report.instance_id} is over, or another attempt has taken it over.")
        return held

    async def _place(self, connection: AnyWrite) -> InsertTarget:
        job = await jobs.share_job(connection, self._reconciler.target_id)
        if job is None:
            raise job_not_found(self._reconciler.target)
        return target_of(job)

    async def finish(self) -> Report:
        """Finish the run after the whole source was read: live instances that it does not list are surplus.

        Insert an event RECONCILE_DRIFT in the same transaction if instances were missing.
        """
        async with self._write(Plans.KEPT) as connection:
            report = await self._hold(connection)
            surplus, keys = await self._surplus(connection, report)
            report = await reconcilers.finish_report(connection, report, surplus, keys)
            if report.tally.missing:
                data = {"reconciler": self._reconciler.name, "reportId": str(report.id), **counts_of(report)}
                target = self._reconciler
                await jobs.insert_event(connection, target.tenant_id, target.target_id, "RECONCILE_DRIFT", data)
            await reconcilers.forget_seen(connection, report)
        return report

    async def _surplus(self, connection: AnyRead, report: Report) -> tuple[int | None, list[str]]:
        """Return the number of surplus instances and example keys.

        The number is None if a crash of the database lost the list of seen instances.
        """
        if await reconcilers.count_seen(connection, report) != report.live:
            return None, []
        return await reconcilers.surplus_of(connection, self._reconciler.target_id, report)


@dataclass(frozen=True, slots=True)
class ReconcileRun:
    """One attempt of an instance. `begins_anew`: every attempt reads the source from its beginning."""

    instance_id: int
    attempt: int
    begins_anew: bool = False


async def begin(
    write: Write, wakeups: Wakeups, reconciler: ReconcilerRow, run: ReconcileRun, kept: int = REPORTS_KEPT
) -> Comparison:
    """Take over a run where the previous attempt stopped. Raises `Overtaken` if a later attempt has it.

    If the source was changed since, the run reads it from its beginning. A new run deletes the leftovers of old runs.
    """
    async with write(Plans.KEPT) as connection:
        report = await reconcilers.begin_report(connection, reconciler, run.instance_id, run.attempt)
        if report is not None and _is_to_rewind(report, reconciler, run):
            await reconcilers.forget_seen(connection, report)
            report = await reconcilers.rewind_report(connection, report, reconciler.source_version)
    if report is None:
        raise Overtaken(f"A later attempt has taken over the run {run.instance_id}.")
    if report.pages == 0:
        async with write(Plans.FRESH) as connection:
            await reconcilers.forget_seen_before(connection, report)
        async with write(Plans.FRESH) as connection:
            await reconcilers.forget_reports(connection, report, kept, REPORTS_FORGOTTEN_AT_ONCE)
    return Comparison(write, wakeups, reconciler, report)


def _is_to_rewind(report: Report, reconciler: ReconcilerRow, run: ReconcileRun) -> bool:
    if report.finished_at is not None:
        return False
    return run.begins_anew or report.source_version != reconciler.source_version


def counts_of(report: Report) -> dict[str, int | None]:
    """Return the counts of a run by their public names."""
    tally = report.tally
    return {
        "found": tally.found,
        "missing": tally.missing,
        "created": tally.created,
        "surplus": report.surplus,
        "leftAlone": tally.left_alone,
        "faulty": tally.faulty,
    }


async def _choices(
    connection: AnyRead, place: InsertTarget, wanted: Mapping[str, DesiredInstance], live: Mapping[str, int]
) -> dict[str, SourceChoice]:
    """Return the choice for each key.

    History is read after the live rows, so a row that moves is seen in one of them.
    """
    absent = [key for key in wanted if key not in live]
    ends = await reconcilers.ends_of_keys(connection, place.job_id, absent) if absent else {}
    return {key: choose(one, is_live=key in live, ended=ends.get(key)) for key, one in wanted.items()}


async def _create(connection: AnyWrite, place: InsertTarget, missing: Sequence[DesiredInstance]) -> list[Claimable]:
    """Insert missing instances, then check history again.

    Once the key is taken, every ended instance of it is visible in history.
    """
    if not missing:
        return []
    made = await _insert(connection, place, missing)
    ends = await reconcilers.ends_of_keys(connection, place.job_id, list(made)) if made else {}
    wanted = {one.key: one for one in missing}
    ended = {
        key: end
        for key, end in ends.items()
        if choose(wanted[key], is_live=False, ended=end) is not SourceChoice.create
    }
    if ended:
        await instances.take_back(connection, [made[key].id for key in ended])
    renewed = {
        made[key].id: KeyPast(Past(version=end.version), end.fence) for key, end in ends.items() if key not in ended
    }
    if renewed:
        await instances.inherit(connection, renewed)
    return [woken for key, woken in made.items() if key not in ended]


async def _insert(
    connection: AnyWrite, place: InsertTarget, missing: Sequence[DesiredInstance]
) -> dict[str, Claimable]:
    """Insert instances.

    Skip a key that another transaction has inserted, or holds uncommitted for longer than `HELD_FOR`.
    """
    wishes = [NewInstance(one.key, one.at, one.payload, one.version) for one in missing]
    made = await reconcilers.insert_unless_held(connection, place, wishes, HELD_FOR)
    if made is None:  # a key is held: insert one by one, so that the others succeed
        singly = [await reconcilers.insert_unless_held(connection, place, [wish], HELD_FOR) for wish in wishes]
        made = {key: woken for one in singly for key, woken in (one or {}).items()}
    return made
