"""The archive on the wire."""

import datetime as dt
from typing import Annotated, Literal

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Id, Model

TableName = Literal["instance_history", "attempt", "event", "note"]


class ArchiveFileOut(Model):
    """A Parquet file with the rows of a tenant that a table has of a day, in UTC.

    `fromTime` and `toTime` are the first and the last fire time of its instances; null for other tables.
    """

    id: Id
    table: Annotated[TableName, From("table_name")]
    day: dt.date
    path: Annotated[str, Field(description="Below the archive directory, or the prefix of the bucket.")]
    rows: int
    bytes: int
    sha256: str
    from_time: dt.datetime | None
    to_time: dt.datetime | None
    archived_at: dt.datetime


class ArchiveFileList(Model):
    """A page of archive files, the newest day first."""

    items: list[ArchiveFileOut]
    next_cursor: str | None


class RestoredOut(Model):
    """The restored instances of a day. A request works for at most 20 seconds: repeat it until `complete` is true."""

    day: dt.date
    rows: Annotated[int, Field(description="Instances in the file of the day.")]
    restored: Annotated[int, Field(description="Instances in the table `horai.restored_instance` now.")]
    complete: bool
