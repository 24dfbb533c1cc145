"""The columns of archived tables, and the DuckDB expressions made of them.

The order is that of the statements `export_…` in db/sql/archives.sql. A name such as `fire_time` is text of this module
and never input, so that it can be part of a statement.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ColumnType(StrEnum):
    """The type of a column in a Parquet file. Times are exported in microseconds since 1970."""

    INTEGER = "integer"
    BIGINT = "bigint"
    TEXT = "varchar"
    BOOLEAN = "boolean"
    DOUBLE = "double"
    TIME = "timestamptz"


@dataclass(frozen=True, slots=True)
class ArchivedColumn:
    """A column of an archived table."""

    name: str
    type: ColumnType

    @property
    def quoted(self) -> str:
        """Return the name as an identifier: some names are words of SQL."""
        return f'"{self.name}"'

    @property
    def exported(self) -> str:
        """Return the type in the CSV file."""
        return "bigint" if self.type is ColumnType.TIME else self.type.value

    @property
    def converted(self) -> str:
        """Return the expression that makes the column from the CSV file."""
        return f"make_timestamp({self.quoted})::timestamptz as {self.quoted}" if self._is_time else self.quoted

    @property
    def told(self) -> str:
        """Return the expression of the value as Python takes it: a time is a number of microseconds."""
        return f"epoch_us({self.quoted})" if self._is_time else self.quoted

    @property
    def cell(self) -> str:
        """Return the expression of the text that enters the digest of a row."""
        match self.type:
            case ColumnType.TEXT:
                text = self.quoted
            case ColumnType.DOUBLE:
                text = f"floor({self.quoted} * 1000000000)::bigint::varchar"
            case _:
                text = f"{self.told}::varchar"
        return rf"coalesce({text}, '\N')"

    @property
    def _is_time(self) -> bool:
        return self.type is ColumnType.TIME


@dataclass(frozen=True, slots=True)
class ArchivedTable:
    """An archived table: its columns but the tenant, and the order of the rows in a file."""

    columns: tuple[ArchivedColumn, ...]
    order: str

    @property
    def exported(self) -> str:
        """Return the columns of the CSV file as DuckDB takes them."""
        named = {
            "tenant_id": "integer",
            **{column.name: column.exported for column in self.columns},
            "digest": "varchar",
        }
        return "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in named.items()) + "}"

    @property
    def converted(self) -> str:
        """Return the list of columns that a file is made of."""
        return ", ".join(column.converted for column in self.columns)

    @property
    def names(self) -> str:
        """Return the names of the columns."""
        return ", ".join(column.quoted for column in self.columns)

    @property
    def digest(self) -> str:
        """Return the expression of the digest of a row, which equals that of the database."""
        return "md5(" + " || chr(31) || ".join(column.cell for column in self.columns) + ")"


def _columns(**types: str) -> tuple[ArchivedColumn, ...]:
    return tuple(ArchivedColumn(name, kind) for kind, names in _spelled(types) for name in names)


def _spelled(types: Mapping[str, str]) -> list[tuple[ColumnType, list[str]]]:
    return [(ColumnType[kind.rstrip("_0123456789").upper()], names.split()) for kind, names in types.items()]


TABLES: Mapping[str, ArchivedTable] = {
    "instance_history": ArchivedTable(
        _columns(
            bigint="id job_id",
            text="job key state reason",
            time="fire_time execute_time born_for",
            bigint_2="slot",
            time_2="created_at claimed_at finished_at",
            integer="attempt retry_count events",
            bigint_3="fence",
            integer_2="lane",
            text_2="queue priority",
            bigint_4="node",
            text_3="node_name",
            bigint_5="version supersedes replay_of",
            text_4="error_code error_msg payload result",
            boolean="encrypted",
        ),
        "fire_time desc, id desc",
    ),
    "attempt": ArchivedTable(
        _columns(
            bigint="instance_id job_id",
            integer="attempt",
            bigint_2="fence node",
            time="started_at finished_at",
            boolean="late",
            text="outcome error_code error_msg",
        ),
        "instance_id, attempt, finished_at",
    ),
    "event": ArchivedTable(
        _columns(bigint="id job_id instance_id", integer="seq", time="at", text="kind data"),
        '"at", id',
    ),
    "note": ArchivedTable(
        _columns(
            bigint="instance_id fence n",
            time="at",
            bigint_2="node",
            integer="attempt",
            double="progress",
            text="message",
        ),
        "instance_id, fence, n",
    ),
}
