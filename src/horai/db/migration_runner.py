"""Runs the statements of a migration while nodes work.

A statement whose lock blocks writes waits for it 300 ms at most: a request for such a lock stops every later claim, even while
an older transaction holds it up. After a lock timeout the whole file is rolled back and tried again. A file that begins with
`-- no-transaction` runs statement by statement, and from its first statement again after a crash.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeAlias

import asyncpg

from horai.db.catalog import sql
from horai.db.isolation import Change
from horai.db.migration_effects import effects_of
from horai.db.migration_errors import MigrationBlocked, MigrationError
from horai.db.migration_file import Migration
from horai.db.migration_words import WordReader
from horai.db.pool import Platform
from horai.db.sql_script import ScriptStatement

Progress: TypeAlias = Callable[[str], None]
"""Called with one line about what the migration does or waits for."""
LONGEST_NAME = 63


@dataclass(frozen=True, slots=True)
class LockPatience:
    """The time that a migration waits for a lock that blocks writes, its tries, and the pause between two of them."""

    lock_timeout: timedelta = timedelta(milliseconds=300)
    pause: timedelta = timedelta(seconds=1)
    tries: int = 300


PATIENT = LockPatience()


@dataclass(frozen=True, slots=True)
class ConcurrentIndex:
    """A `create index concurrently`, in parts."""

    unique: str
    name: str
    table: str
    rest: str
    """The text after the table."""

    @property
    def schema(self) -> str:
        """Return the schema of the table, which is that of the index."""
        return self.table.rpartition(".")[0]

    def statement(self, how: str) -> str:
        """Return the statement; `how` stands before the table."""
        is_concurrent = "" if how else "concurrently "
        return f"create {self.unique}index {is_concurrent}if not exists {self.name} on {how}{self.table}{self.rest}"

    @property
    def qualified(self) -> str:
        """Return the name of the index with its schema."""
        return f"{self.schema}.{self.name}" if self.schema else self.name

    def for_partition(self, schema: str, name: str) -> "ConcurrentIndex":
        """Return the same index for a partition."""
        ending = name.removeprefix(self.table.rpartition(".")[2]).lstrip("_")
        own = f"{self.name[: LONGEST_NAME - len(ending) - 1]}_{ending}"
        return ConcurrentIndex(self.unique, own, f"{schema}.{name}", self.rest)


def concurrent_index_of(statement: ScriptStatement) -> ConcurrentIndex | None:
    """Return the parts of a `create index concurrently`; None for another statement."""
    reader = WordReader(statement.words)
    reader.take("create")
    unique = "unique " if reader.take("unique") else ""
    if not reader.take("index", "concurrently"):
        return None
    reader.take("if", "not", "exists")
    name = reader.name()
    reader.take("on")
    table = reader.name()
    return ConcurrentIndex(unique, name, table, statement.after(reader.place - 1))


class MigrationRunner:
    """Applies files on one connection, which no other task uses meanwhile."""

    def __init__(self, connection: Platform, progress: Progress, patience: LockPatience = PATIENT) -> None:
        self._connection = connection
        self._progress = progress
        self._patience = patience

    async def apply(self, migration: Migration, tables: Sequence[str], record: Change) -> None:
        """Apply a file, and record it with `record`: in its transaction, or after its last statement."""
        if migration.in_transaction:
            await self.retried(tables, partial(self._in_transaction, migration, record))
            return
        for statement in migration.statements():
            await self._outside(statement)
        await record()

    async def retried(self, tables: Sequence[str], change: Change) -> None:
        """Run a change with the short lock timeout, and again after each one; `tables` are those that it locks."""
        before = await self._limit_waits(self._patience.lock_timeout)
        try:
            for trial in range(1, self._patience.tries + 1):
                try:
                    await change()
                except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                    await self._wait(tables, trial)
                else:
                    return
        finally:
            await self._restore_waits(before)

    async def _limit_waits(self, limit: timedelta) -> str:
        """Set the lock timeout of the session, and return the one before."""
        before = await self._connection.fetchval("select current_setting('lock_timeout')")
        milliseconds = f"{limit // timedelta(milliseconds=1)}ms"
        await self._connection.execute("select set_config('lock_timeout', $1, false)", milliseconds)
        return before

    async def _restore_waits(self, before: str) -> None:
        if not self._connection.is_closed():
            await self._connection.execute("select set_config('lock_timeout', $1, false)", before)

    async def _wait(self, tables: Sequence[str], trial: int) -> None:
        holders = await self._connection.fetch(sql("blocking_sessions"), list(tables))
        said = "; ".join(
            f"session {row['pid']} ({row['application'] or 'unnamed'}) holds {row['relation']}"
            + (f" since {row['since']:%H:%M:%S} UTC" if row["since"] else "")
            for row in holders
        )
        if trial == self._patience.tries:
            raise MigrationBlocked(
                f"No lock was free in {trial} tries: {said or 'the sessions that held it have ended'}.",
                "End the transactions that hold it and run `horai migrate` again. The tables are as they were.",
            )
        self._progress(f"waiting for a lock (try {trial}): {said or 'its holder has ended'}")
        await asyncio.sleep(self._patience.pause.total_seconds())

    async def _in_transaction(self, migration: Migration, record: Change) -> None:
        async with self._connection.transaction():
            await self._connection.execute(migration.text)
            await record()

    async def _outside(self, statement: ScriptStatement) -> None:
        if (index := concurrent_index_of(statement)) is not None:
            await self._build(index)
            return
        effects = effects_of(statement)
        tables = [effect.table for effect in effects]
        run = partial(self._execute, statement.text)
        await (self.retried(tables, run) if any(e.lock.blocks_writes for e in effects) else self._unlimited(run))

    async def _execute(self, text: str) -> None:
        await self._connection.execute(text)

    async def _unlimited(self, change: Change) -> None:
        """Run a change that may wait for long: no write of another session waits for it."""
        before = await self._limit_waits(timedelta(0))
        try:
            await change()
        finally:
            await self._restore_waits(before)

    async def _build(self, index: ConcurrentIndex) -> None:
        """Build an index. One of an earlier try that is not valid is dropped first; a valid one is kept."""
        if await self._connection.fetchval(sql("is_partitioned"), index.table):
            await self._build_in_parts(index)
            return
        is_valid = await self._connection.fetchval(sql("is_valid_index"), index.qualified)
        if is_valid is False:
            self._progress(f"index {index.qualified} of an earlier try is not valid: building it again")
            await self._unlimited(partial(self._execute, f"drop index concurrently {index.qualified}"))
        if not is_valid:
            self._progress(f"building index {index.qualified} beside the work of nodes")
            await self._unlimited(partial(self._execute, index.statement("")))

    async def _build_in_parts(self, index: ConcurrentIndex) -> None:
        """Build an index of a partitioned table, which PostgreSQL itself cannot do concurrently.

        The index of the parent is made first, so that a partition that is created meanwhile gets its part by itself.
        """
        await self.retried([index.table], partial(self._execute, index.statement("only ")))
        for row in await self._connection.fetch(sql("partitions_of_table"), index.table):
            part = index.for_partition(row["schema"], row["name"])
            if await self._connection.fetchval(sql("has_attached_index"), index.qualified, part.table):
                continue
            await self._build(part)
            attach = f"alter index {index.qualified} attach partition {part.qualified}"
            await self.retried([part.table], partial(self._execute, attach))
        if not await self._connection.fetchval(sql("is_valid_index"), index.qualified):
            raise MigrationError(
                f"The index {index.qualified} is not valid: a partition of {index.table} has no part of it.",
                "Run `horai migrate` again.",
            )
