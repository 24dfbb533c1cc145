"""Request and response models of reconcilers and their reports."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Id, Model, Text
from horai.wire.jobs import StatusName


class SourceIn(Model):
    """A source of desired instances.

    `sql`: a query over any PostgreSQL database that returns `key, execute_time` and optionally `payload, version`: at
    most `$2` rows after the key `$1`, in order of key. `source` is the name of a database that the operator allows
    (`--source NAME=URL`), or `databaseUrl` is its URL. `http`: an address that answers `GET ?cursor=…&limit=…` with
    `{items: [{key, executeTime, payload?, version?}], nextCursor}`.
    """

    type: Literal["sql", "http"]
    query: Text | None = None
    source: Text | None = None
    database_url: Text | None = None
    url: Text | None = None
    headers: dict[Text, Text] | None = None


class ReconcilerFields(Model):
    """The schedule of a reconciler."""

    every: Text | None = None
    cron: Annotated[Text, Field(max_length=1_000)] | None = None
    timezone: Text | None = None


class ReconcilerIn(ReconcilerFields):
    """`POST /api/v1/reconcilers`: `every` or `cron` is the schedule; without either it runs only on demand."""

    name: Text
    job: Text
    source: SourceIn


class ReconcilerPatch(ReconcilerFields):
    """`PATCH /api/v1/reconcilers/{reconciler}`: change the given fields; null removes a field.

    A given source replaces the old one completely.
    """

    source: SourceIn | None = None


class ReportSummary(Model):
    """The counts of the last comparison; they grow while it runs."""

    id: Id
    started_at: datetime
    finished_at: datetime | None
    found: Annotated[int, From("tally.found")]
    missing: Annotated[int, From("tally.missing")]
    created: Annotated[int, From("tally.created")]
    surplus: int | None
    error: str | None


class ReconcilerOut(Model):
    """A reconciler; passwords and header values are not shown."""

    id: Id
    name: str
    job: str
    """The job that it watches."""
    job_id: Id
    run_job_id: Id
    """The job whose runs are its comparisons; use next and explain of this job."""
    status: StatusName
    note: str | None
    every: str | None
    cron: str | None
    timezone: str | None
    source: dict[str, Any]
    declared_by: str | None
    """The application whose code declares it; only that code changes it."""
    next_fire: datetime | None
    """The next fire time; null while it is paused, or if it runs only on demand."""
    last_report: ReportSummary | None
    version: int
    created_at: datetime
    updated_at: datetime


class ReconcilerList(Model):
    """A page of reconcilers, newest first."""

    items: list[ReconcilerOut]
    next_cursor: str | None


class FaultyItemOut(Model):
    """A row of the source that cannot be an instance."""

    key: str | None
    why: str


class ExamplesOut(Model):
    """Examples of the counted keys and rows, at most 20 of each kind."""

    missing: list[str]
    surplus: list[str]
    faulty: list[FaultyItemOut]


class ReportOut(Model):
    """The report of a comparison.

    `found`: rows of the source. `missing`: rows without an instance, live or ended. `created`: instances created for
    them. `surplus`: live instances that the source does not list; null if it is not known. `leftAlone`: rows whose
    instance has ended. `faulty`: rows that cannot be instances. `error`: why the last attempt failed.
    """

    id: Id
    instance_id: Id
    started_at: datetime
    finished_at: datetime | None
    found: Annotated[int, From("tally.found")]
    missing: Annotated[int, From("tally.missing")]
    created: Annotated[int, From("tally.created")]
    surplus: int | None
    left_alone: Annotated[int, From("tally.left_alone")]
    faulty: Annotated[int, From("tally.faulty")]
    error: str | None
    examples: ExamplesOut


class ReportList(Model):
    """A page of reports, newest first."""

    items: list[ReportOut]
    next_cursor: str | None
