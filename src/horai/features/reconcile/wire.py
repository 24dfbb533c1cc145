"""Reconcilers on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.fields import Id, Model, Text
from horai.wire.jobs import StatusName


class SourceIn(Model):
    """Where the business keeps what it wants to be run.

    `sql`: a query over any PostgreSQL that returns `key, execute_time` and perhaps `payload, version`, the rows behind `$1` in
    the order of their keys, `$2` of them; `source` is the name of a database that the operator allows (`--source NAME=URL`), or
    `databaseUrl` is its URL. `http`: an address that answers `GET ?cursor=…&limit=…` with `{items: [{key, executeTime, payload?, version?}], nextCursor}`.
    """

    type: Literal["sql", "http"]
    query: Text | None = None
    source: Text | None = None
    database_url: Text | None = None
    url: Text | None = None
    headers: dict[Text, Text] | None = None


class ReconcilerFields(Model):
    """When a reconciler looks."""

    every: Text | None = None
    cron: Annotated[Text, Field(max_length=1_000)] | None = None
    timezone: Text | None = None


class ReconcilerIn(ReconcilerFields):
    """`POST /api/v1/reconcilers`: `every` or `cron` says how often; without either it runs when it is told to."""

    name: Text
    job: Text
    source: SourceIn


class ReconcilerPatch(ReconcilerFields):
    """`PATCH /api/v1/reconcilers/{reconciler}`: what is given is changed; null takes a time away, a source is given whole."""

    source: SourceIn | None = None


class ReportSummary(Model):
    """What the last comparison came to, or has so far."""

    id: Id
    started_at: datetime
    finished_at: datetime | None
    found: int
    missing: int
    created: int
    surplus: int | None
    error: str | None


class ReconcilerOut(Model):
    """A reconciler as it is; passwords and headers are not shown."""

    id: Id
    name: str
    job: str
    """The job that it watches over."""
    job_id: Id
    run_job_id: Id
    """The job whose runs are its comparisons: next and explain of it are the reconciler's."""
    status: StatusName
    note: str | None
    every: str | None
    cron: str | None
    timezone: str | None
    source: dict[str, Any]
    declared_by: str | None
    """The application whose code declares it, and alone changes it."""
    next_fire: datetime | None
    """When it looks next; null while it is paused, or when it only runs on demand."""
    last_report: ReportSummary | None
    version: int
    created_at: datetime
    updated_at: datetime


class ReconcilerList(Model):
    """A page of reconcilers, the newest first."""

    items: list[ReconcilerOut]
    next_cursor: str | None


class FaultyItemOut(Model):
    """A row of the source that cannot be an instance."""

    key: str | None
    why: str


class ExamplesOut(Model):
    """Some of what was counted, at most 20 of each."""

    missing: list[str]
    surplus: list[str]
    faulty: list[FaultyItemOut]


class ReportOut(ReportSummary):
    """What a comparison came to.

    `found`: rows of the source. `missing`: those without an instance, live or ended. `created`: made for them. `surplus`:
    live instances that the source does not have; null while, or when, it is not known. `leftAlone`: rows whose instance has
    ended. `faulty`: rows that cannot be instances. `error`: why the last attempt broke off.
    """

    instance_id: Id
    left_alone: int
    faulty: int
    examples: ExamplesOut


class ReportList(Model):
    """A page of reports, the newest first."""

    items: list[ReportOut]
    next_cursor: str | None
