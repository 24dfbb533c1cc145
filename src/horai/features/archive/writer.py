"""Write the files of one day with DuckDB, and compare each of them with the rows of the database.

The database exports the day once, with a digest of each row. The digests of a file are computed from the file as it is
read again: a row that is missing, double or changed in any column gives another sum.
"""

from dataclasses import dataclass
from pathlib import Path

from horai.operations.archive_directory import sha256_of, sync_file
from horai.operations.archive_tables import TABLES
from horai.operations.parquet import ParquetSession, quoted

ROW_GROUP = 20_480
"""Rows per group: a page of instances reads one or two groups."""
LONGEST_LINE = 4_000_000
"""Bytes of a CSV line: a payload of 1 MB whose quotes are doubled, or sealed, a result and an error text fit."""
DIALECT = (
    r"""delim=',', quote='"', escape='"', nullstr='\N', allow_quoted_nulls=false"""
    f", max_line_size={LONGEST_LINE}, buffer_size={4 * LONGEST_LINE}"
)
"""The CSV of PostgreSQL. A text that reads `\\N` is quoted, null is not."""


class ArchiveDamaged(Exception):
    """A file does not have the rows that it was made of."""


@dataclass(frozen=True, slots=True)
class RowSum:
    """The number of rows, and the sum of their digests."""

    rows: int
    checksum: str


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A verified file that has not got its name yet. Times are in microseconds; None if the table has no fire time."""

    place: Path
    sum: RowSum
    bytes: int
    sha256: str
    first_fire: int | None
    last_fire: int | None


class DayWriter:
    """The files of one day of a table. Its methods block: a thread calls them."""

    def __init__(self, table: str, work: Path) -> None:
        self._table = TABLES[table]
        self._has_fires = any(column.name == "fire_time" for column in self._table.columns)
        self._work = work
        self._sorted = work / "sorted.parquet"
        self._sums: dict[int, RowSum] = {}
        self._session = ParquetSession(work / "spill")

    def sort(self, exported: Path) -> dict[int, RowSum]:
        """Sort the exported rows by tenant. Return the sum of each tenant, by the digests of the database."""
        table = self._table
        source = f"read_csv({quoted(exported)}, columns={table.exported}, auto_detect=false, header=false, {DIALECT})"
        self._session.run(
            f"copy (select tenant_id, {table.converted}, digest from {source} order by tenant_id, {table.order})"  # noqa: S608
            f" to {quoted(self._sorted)} (format parquet, row_group_size {ROW_GROUP})"
        )
        exported.unlink()
        rows = self._session.run(
            f"select tenant_id, {_sum('digest')} from read_parquet({quoted(self._sorted)}) group by tenant_id"  # noqa: S608
        )
        self._sums = {tenant_id: RowSum(count, str(total)) for tenant_id, count, total in rows}
        return self._sums

    def write(self, tenant_id: int) -> WrittenFile:
        """Write the rows of a tenant to a file, put it on disk, read it again and compare it. Raises `ArchiveDamaged`."""
        place = self._work / f"tenant-{tenant_id}.parquet"
        source = f"read_parquet({quoted(self._sorted)})"
        self._session.run(
            f"copy (select {self._table.names} from {source} where tenant_id = {tenant_id} order by {self._table.order})"  # noqa: S608
            f" to {quoted(place)} (format parquet, compression zstd, row_group_size {ROW_GROUP})"
        )
        sync_file(place)
        fires = "epoch_us(min(fire_time)), epoch_us(max(fire_time))" if self._has_fires else "null, null"
        [(count, total, first, last)] = self._session.run(
            f"select {_sum(self._table.digest)}, {fires} from read_parquet({quoted(place)})"  # noqa: S608
        )
        found, wanted = RowSum(count, str(total)), self._sums[tenant_id]
        if found != wanted:
            raise ArchiveDamaged(
                f"the file of tenant {tenant_id} has {found.rows} rows with the checksum {found.checksum}, not {wanted.rows}"
                f" with {wanted.checksum}"
            )
        return WrittenFile(place, found, place.stat().st_size, sha256_of(place), first, last)

    def interrupt(self) -> None:
        """End the statement that runs, from another thread."""
        self._session.interrupt()

    def close(self) -> None:
        """End the session."""
        self._session.close()


def _sum(digest: str) -> str:
    return f"count(*), coalesce(sum(md5_number_lower({digest})::hugeint), 0)"
