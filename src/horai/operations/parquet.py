"""Parquet files, written and read by DuckDB, an optional package.

A session has a memory limit and spills to a directory. It loads no extension: it reads and writes local files only.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from horai.core.errors import ArchiveUnavailable
from horai.text import Hint, Refused

PACKAGE = "duckdb"
MEMORY = "256MB"
"""The memory of one session. DuckDB counts what it allocates; sorting a longer day spills to files."""


class ParquetFailed(Exception):
    """DuckDB could not read or write a file: the disk is full, or the file is damaged or gone."""


def is_installed() -> bool:
    """Return whether this process can read and write Parquet files."""
    return find_spec(PACKAGE) is not None


def quoted(path: Path | str) -> str:
    """Return a path as text of a statement."""
    return "'" + str(path).replace("'", "''") + "'"


class ParquetSession:
    """A DuckDB database in memory. It belongs to one thread at a time; `interrupt` may come from any thread."""

    def __init__(self, spill: Path | None = None, threads: int = 1) -> None:
        if not is_installed():
            raise ArchiveUnavailable(Refused.NO_PARQUET(), Hint.INSTALL_ARCHIVE())
        self._duckdb: Any = import_module(PACKAGE)
        config = {
            "memory_limit": MEMORY,
            "threads": threads,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "temp_directory": "" if spill is None else str(spill),
        }
        self._connection: Any = self._duckdb.connect(":memory:", config=config)
        self._connection.execute("set TimeZone = 'UTC'; set parquet_metadata_cache = true")

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows. Raises `ParquetFailed`."""
        try:
            return self._connection.execute(statement, list(values)).fetchall()
        except self._duckdb.Error as error:
            raise ParquetFailed(str(error).splitlines()[0]) from error

    def interrupt(self) -> None:
        """End the statement that runs, if one does: it raises `ParquetFailed`."""
        self._connection.interrupt()

    def close(self) -> None:
        """Free the memory and the files of the session."""
        self._connection.close()

    def __enter__(self) -> "ParquetSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
