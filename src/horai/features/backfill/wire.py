"""Backfills on the wire."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from horai.wire.fields import Id, Instant, Model, Note, Text

ModeName = Literal["missing", "failed", "all"]
BackfillStatusName = Literal["RUNNING", "PAUSED", "DONE", "CANCELLED"]


class BackfillIn(Model):
    """`POST /api/v1/jobs/{job}/backfill`: the slots from `from` on and before `to` (now), and which of them are run.

    `missing` (the default) runs those that were never made, `failed` those whose last run is dead, `all` every one.
    """

    from_: Annotated[Instant, Field(alias="from")]
    to: Instant | None = None
    mode: ModeName | None = None
    rate: Annotated[Text | int, Field(json_schema_extra={"examples": ["100/s", "30/m", "1000/h", 5]})] | None = None
    max_concurrency: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": 10_000})] | None = None
    dry_run: bool | None = None
    note: Note | None = None


class ProgressOut(Model):
    """How far a backfill has come.

    `slots`: all of the range. `total`: those to run, as counted when it was asked for. `made` and `skipped`: those looked at.
    `running`: made and not ended. `eta`: when it will be done at `ratePerSecond`, its pace of late.
    """

    slots: int
    total: int
    made: int
    skipped: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    percent: float
    rate_per_second: float | None
    eta: datetime | None


class BackfillOut(Model):
    """A backfill as it is."""

    id: Id
    job: str
    job_id: Id
    from_: Annotated[datetime, Field(alias="from")]
    to: datetime
    mode: ModeName
    rate: str | None
    max_concurrency: int
    status: BackfillStatusName
    note: str | None
    progress: ProgressOut
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None


class BackfillList(Model):
    """A page of backfills, the newest first."""

    items: list[BackfillOut]
    next_cursor: str | None


class BackfillPlanOut(Model):
    """The answer to a dry run: what a backfill would run, to the slot, as things are now. Nothing was written."""

    dry_run: Literal[True]
    job: str
    job_id: Id
    from_: Annotated[datetime, Field(alias="from")]
    to: datetime
    mode: ModeName
    rate: str | None
    max_concurrency: int
    slots: int
    total: int
    skipped: int
    first: datetime | None
    last: datetime | None
