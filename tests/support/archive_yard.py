"""Days of history in the past, and the files that an archive has of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Protocol

import duckdb
from databases import Superuser
from s3_server import S3Server

from horai.db.archives import PartitionDay
from horai.db.cluster import cluster_id
from horai.operations.archive_bucket import BucketStore
from horai.operations.archive_directory import DirectoryStore
from horai.operations.archive_place import ArchivePlace

NOON = time(12, tzinfo=UTC)
_HISTORY = """
    insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, claimed_at, finished_at, fence, node,
        tenant_id, lane, attempt, retry_count, events, state, reason, key, error_code, error_msg, payload, result)
    select made.id, $1, made.at, made.at, made.at, -made.id, made.at, made.at, made.at + interval '1 s', 1, null, $2, $3, 1, 0, 1,
        case made.n % 10 when 0 then 4 when 1 then 5 else 2 end, case when made.n % 10 = 1 then 1 end, $6::text || made.n,
        case when made.n % 10 = 0 then 'HTTP_500' end, case when made.n % 10 = 0 then 'a "quoted"' || chr(10) || 'line' end,
        json_build_object('n', made.n), case when made.n % 10 > 1 then '{"ok": true}'::json end
    from (select nextval('horai.instance_id') as id, n, $4::timestamptz + n * interval '1 s' as at from generate_series(1, $5) as n) made
"""


class HasLane(Protocol):
    """A job, as far as its finished instances name it."""

    @property
    def id(self) -> int: ...
    @property
    def lane_id(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Lane:
    """A job of which no more is known."""

    id: int
    lane_id: int


def ago(days: int) -> date:
    """The day that many days ago, in UTC."""
    return datetime.now(UTC).date() - timedelta(days=days)


async def place(connection: Superuser, root: Path) -> ArchivePlace:
    """The archive of the database below a directory."""
    return ArchivePlace(DirectoryStore(root), await cluster_id(connection))


PREFIX = "horai"
"""The prefix of archives in a bucket."""


async def bucket_place(connection: Superuser, storage: S3Server, cache: Path) -> ArchivePlace:
    """The archive of the database in a bucket. The caller closes its store."""
    return ArchivePlace(BucketStore(storage.settings(PREFIX), cache, 1 << 20), await cluster_id(connection))


def in_bucket(storage: S3Server, cache: Path, **more: Any) -> dict[str, Any]:
    """The settings of a node that archives to a bucket."""
    bucket = {"archive_dir": f"s3://{storage.bucket}/{PREFIX}", "archive_bucket": storage.settings(PREFIX)}
    return {**bucket, "archive_cache": str(cache), **more}


async def strays(connection: Superuser) -> dict[str, bool]:
    """The files without a record, and whether they are to be deleted."""
    rows = await connection.fetch("select path, is_doomed from horai.archive_stray")
    return {row["path"]: row["is_doomed"] for row in rows}


async def recorded(connection: Superuser) -> set[str]:
    """The paths of all recorded files."""
    return {row["path"] for row in await connection.fetch("select path from horai.archive_file")}


async def make_day(connection: Superuser, day: date) -> None:
    """The partitions of a day."""
    await connection.execute("select horai.make_partitions($1, 1)", day)


async def history(
    connection: Superuser, job: HasLane, day: date, count: int, *, tenant_id: int = 1, prefix: str = "key-"
) -> PartitionDay:
    """Finished instances of a day: in ten of them one is DEAD, one CANCELLED and eight SUCCESS."""
    await make_day(connection, day)
    noon = datetime.combine(day, NOON)
    await connection.execute(_HISTORY, job.id, tenant_id, job.lane_id, noon, count, prefix)
    return PartitionDay("instance_history", day)


async def second_tenant(connection: Superuser, name: str = "north") -> int:
    """Another tenant."""
    return await connection.fetchval("insert into horai.tenant (name) values ($1) returning id", name)


def files(root: Path) -> list[Path]:
    """Every file below the directory but the lock."""
    return sorted(each for each in root.rglob("*") if each.is_file() and each.name != ".lock")


def parquet(root: Path) -> list[Path]:
    """Every file that has its name."""
    return [each for each in files(root) if each.suffix == ".parquet" and ".work" not in each.parts]


def read(file: Path, columns: str = "*") -> Sequence[tuple[Any, ...]]:
    """The rows of a file, as any tool for Parquet reads them."""
    with duckdb.connect() as plain:
        return plain.execute(f"select {columns} from read_parquet(?)", [str(file)]).fetchall()
