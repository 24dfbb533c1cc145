"""The executor of reconcilers: it reads a source page by page and creates missing instances.

A run that takes longer than a slice is postponed and continues after its last page; so does an interrupted run.
"""

import asyncio
import traceback
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, assert_never
from urllib.parse import urlsplit

import asyncpg
import msgspec
import structlog

from horai.core.addresses import AddressPolicy
from horai.core.calls import Call
from horai.core.encryption import EnvelopeBroken
from horai.core.errors import HoraiError, Invalid, KeyUnavailable, NotFound, RetryLimited
from horai.core.outcome import FailedRetryable, FailedUnrecoverable, NotSent, Outcome, Postponed, Succeeded
from horai.db import signing_secrets
from horai.db.pool import GONE, Plans, Platform, PlatformConnections, acquire, transaction
from horai.db.wakeups import Wakeups
from horai.engine.executors.dial import AddressRefused, CallbackSessions
from horai.features.parts import ExecutorParts
from horai.features.reconcile import store as reconcilers
from horai.features.reconcile.compare import Comparison, Overtaken, ReconcileRun, begin, counts_of
from horai.features.reconcile.definition import (
    RECONCILE_HANDLER,
    HttpSource,
    PythonSource,
    Source,
    SqlSource,
    stored_source,
)
from horai.features.reconcile.http_source import PagedAddress, SourceReach
from horai.features.reconcile.rules import REPORTS_KEPT, Row
from horai.features.reconcile.sql_source import Database, SourceFault, business_table
from horai.features.reconcile.store import ReconcilerRow, Report
from horai.operations import target_secrets
from horai.operations.keyring import Keyring, keyring_of

HANDLER = RECONCILE_HANDLER

log = structlog.get_logger(__name__)

NOT_OURS = NotSent()
GO_ON = Postponed(timedelta(0))
STOPPING = "the node is stopping"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a run: rows per page, time per slice, and pages before a source counts as endless."""

    page: int = 1_000
    slice: timedelta = timedelta(seconds=30)
    pages: int = 20_000
    at_once: int = 4
    """Concurrent runs of one node; more runs wait.

    Each has a connection to its source, and uses one of the API's for each page.
    """
    statement: timedelta = timedelta(seconds=30)
    """The time limit of a source database for one page."""
    reports: int = REPORTS_KEPT


class Pages(Protocol):
    """A source of desired rows."""

    async def page(self, cursor: str | None, limit: int) -> tuple[list[Row], str | None]:
        """Return up to `limit` rows after a cursor, and the next cursor; None after the last page."""
        ...


class ReconcileExecutor:
    """The executor of reconciler runs. Call `open` before the first run and `close` after the last.

    `sources` are the databases that the operator allows, by name.
    """

    def __init__(
        self,
        pool: PlatformConnections,
        wakeups: Wakeups,
        policy: AddressPolicy,
        bounds: Bounds | None = None,
        sources: Mapping[str, str] | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        self._pool = pool
        self._keyring = keyring or Keyring()
        self._wakeups = wakeups
        self._policy = policy
        self._bounds = bounds or Bounds()
        self._sources = sources or {}
        self._places = asyncio.Semaphore(self._bounds.at_once)
        self._sessions: CallbackSessions | None = None

    async def open(self) -> None:
        self._sessions = CallbackSessions(self._policy)

    async def close(self) -> None:
        sessions, self._sessions = self._sessions, None
        if sessions is not None:
            await sessions.close()

    async def run(self, call: Call) -> Outcome:
        """Execute one attempt of one run. Raises only `CancelledError`."""
        try:
            async with self._places:
                return await self._run(call)
        except Overtaken:
            return NOT_OURS
        except SourceFault as fault:
            return await self._broken(call, FailedRetryable("SOURCE", str(fault)))
        except NotFound as error:
            return await self._broken(call, FailedUnrecoverable("JOB_GONE", error.detail))
        except RetryLimited as error:
            return await self._broken(call, FailedRetryable("QUOTA", error.detail))
        except (HoraiError, asyncpg.PostgresError, *GONE) as error:
            return await self._broken(
                call, FailedRetryable("DATABASE", f"the comparison was interrupted: {type(error).__name__}")
            )
        except Exception as error:  # without the text of the error: it may contain data of the source
            where = "".join(traceback.format_tb(error.__traceback__))
            log.error(
                "reconciler failed unexpectedly",
                instance=call.instance_id,
                error=type(error).__name__,
                traceback=where,
            )
            return await self._broken(
                call, FailedRetryable("EXECUTOR_ERROR", f"{type(error).__name__}; see the log of the node")
            )

    async def _broken(self, call: Call, outcome: FailedRetryable | FailedUnrecoverable) -> Outcome:
        """Write the error to the report if possible, and return the outcome."""
        try:
            async with acquire(self._pool) as connection:
                await reconcilers.fail_report(
                    connection, call.instance_id, call.attempt, f"{outcome.code}: {outcome.message}"
                )
        except (HoraiError, asyncpg.PostgresError, *GONE):
            log.warning("writing the report failed", instance=call.instance_id)
        return outcome

    def _write(self, plans: Plans) -> AbstractAsyncContextManager[Platform]:
        return transaction(self._pool, plans)

    async def _run(self, call: Call) -> Outcome:
        async with acquire(self._pool) as connection:
            reconciler = await reconcilers.reconciler_of_job(connection, call.job_id)
            if reconciler is None:
                return FailedUnrecoverable("NO_RECONCILER", "the job does not belong to a reconciler")
            reach = await signing_secrets.reach_of(connection, reconciler.tenant_id)
        run = ReconcileRun(call.instance_id, call.attempt)
        comparison = await begin(self._write, self._wakeups, reconciler, run, self._bounds.reports)
        if comparison.report.finished_at is not None:
            return _told(comparison.report)
        async with self._source(reconciler, SourceReach(call.tenant, reach)) as source:
            is_read = await self._read(source, comparison)
        return _told(await comparison.finish()) if is_read else GO_ON

    async def _read(self, source: Pages, comparison: Comparison) -> bool:
        """Process pages until the source or this time slice ends; return whether the source has ended."""
        report = comparison.report
        if report.is_read:
            return True
        cursor, deadline = report.cursor, asyncio.get_running_loop().time() + self._bounds.slice.total_seconds()
        for taken in range(report.pages, self._bounds.pages):
            if taken > report.pages and asyncio.get_running_loop().time() > deadline:
                return False
            rows, following = await source.page(cursor, self._bounds.page)
            await comparison.take(rows, following)
            if following is None:
                return True
            cursor = following
        raise SourceFault(f"the source did not end within {self._bounds.pages} pages")

    @asynccontextmanager
    async def _source(self, reconciler: ReconcilerRow, reach: SourceReach) -> AsyncGenerator[Pages]:
        source = await self._stored(reconciler)
        match source:
            case SqlSource():
                database = await self._database(source, reach)
                async with business_table(database, source.query, self._bounds.statement) as table:
                    yield table
            case HttpSource():
                if self._sessions is None:
                    raise SourceFault(STOPPING)
                async with self._sessions.session(reach.reach) as session:
                    yield PagedAddress(session, source, reach)
            case PythonSource():
                raise SourceFault("a worker of the application runs this reconciler")
            case _:
                assert_never(source)

    async def _stored(self, reconciler: ReconcilerRow) -> Source:
        """Return the source of a reconciler with its secrets."""
        place = target_secrets.place_of_source(reconciler.name, reconciler.source)
        try:
            async with acquire(self._pool) as connection:
                source = await target_secrets.opened(
                    connection, self._keyring, reconciler.tenant_id, place, reconciler.source
                )
            return stored_source(source)
        except (KeyUnavailable, EnvelopeBroken) as error:
            raise SourceFault(f"the secrets of the source cannot be read: {error.detail}") from error
        except Invalid as error:
            raise SourceFault(f"the stored source is no longer valid, change it: {error.detail}") from error

    async def _database(self, source: SqlSource, reach: SourceReach) -> Database:
        """Return the database of a source.

        A source of the operator is used unchanged. Any other must resolve to addresses that callbacks may use, and the
        node connects to exactly those.
        """
        if source.name is not None:
            if (found := self._sources.get(source.name)) is None:
                raise SourceFault(
                    f"this node has no source {source.name}; an operator can add it with --source NAME=URL"
                )
            return Database(found)
        assert source.url is not None  # noqa: S101 — `checked_source` requires a name or a URL
        if self._sessions is None:
            raise SourceFault(STOPPING)
        try:
            answers = await self._sessions.resolver(reach.reach).resolve(urlsplit(source.url).hostname or "")
        except OSError as error:
            raise SourceFault("the name of the database's host could not be resolved") from error
        except AddressRefused as error:
            refused = f"the database {reach.why_refused(error)}"
            raise SourceFault(f"{refused}, or give it a name with --source NAME=URL") from error
        return Database(source.url, tuple(answer["host"] for answer in answers))


def _told(report: Report) -> Succeeded:
    return Succeeded(msgspec.json.encode({"reportId": str(report.id), **counts_of(report)}).decode())


@asynccontextmanager
async def executor(parts: ExecutorParts) -> AsyncGenerator[ReconcileExecutor]:
    """Open the executor for one process."""
    policy = AddressPolicy(parts.settings.callback_allow)
    keyring = keyring_of(parts.settings).forget_when_erased(parts.wakeups)
    opened = ReconcileExecutor(parts.pool, parts.wakeups, policy, sources=parts.sources, keyring=keyring)
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()
