"""Wire models of backfills."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Id, Instant, Model, Note, Text, Written

ModeName = Literal["missing", "failed", "all"]
BackfillStatusName = Literal["RUNNING", "PAUSED", "DONE", "CANCELLED"]


class BackfillIn(Model):
    """`POST /api/v1/jobs/{job}/backfill`: the slots from `from` (included) to `to` (excluded; default now), and a mode.

    `missing` (the default) runs slots that were never created, `failed` slots whose last run is dead, `all` every slot.
    """

    from_: Annotated[Instant, Field(alias="from")]
    to: Instant | None = None
    mode: ModeName | None = None
    rate: Annotated[Text | int, Field(json_schema_extra={"examples": ["100/s", "30/m", "1000/h", 5]})] | None = None
    max_concurrency: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": 10_000})] | None = None
    dry_run: bool | None = None
    note: Note | None = None


class ProgressOut(Model):
    """The progress of a backfill.

    `slots`: all slots of the range. `total`: those to run, as counted at the request. `made` and `skipped`: those
    checked so far. `running`: created and not ended. `eta`: when it will be done at `ratePerSecond`, its recent pace.
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
    """A backfill and its progress."""

    id: Id
    job: str
    job_id: Id
    from_: Annotated[datetime, From("since"), Field(alias="from")]
    to: Annotated[datetime, From("until")]
    mode: ModeName
    rate: Written | None
    max_concurrency: int
    status: BackfillStatusName
    note: str | None
    progress: ProgressOut
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None


class BackfillList(Model):
    """A page of backfills, newest first."""

    items: list[BackfillOut]
    next_cursor: str | None


class BackfillPlanOut(Model):
    """The answer to a dry run: the exact slots that a backfill would run now. Nothing was written."""

    dry_run: Literal[True]
    job: str
    job_id: Id
    from_: Annotated[datetime, Field(alias="from")]
    to: Annotated[datetime, From("until")]
    mode: ModeName
    rate: Written | None
    max_concurrency: int
    slots: int
    total: int
    skipped: int
    first: datetime | None
    last: datetime | None
