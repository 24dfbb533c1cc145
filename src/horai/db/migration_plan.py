"""The plan of pending migrations: for each statement its locks, the size of their tables, and whether it is online."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from horai.db.catalog import sql
from horai.db.migration_effects import effects_of
from horai.db.migration_file import Migration
from horai.db.migration_locks import OnlineRule, TableEffect, Work
from horai.db.migration_words import WordReader
from horai.db.pool import Platform
from horai.db.sql_script import ScriptStatement

LARGE_ROWS = 100_000
LARGE_BYTES = 64 * 2**20
SHOWN = 72
"""Characters of a statement that a plan shows."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """The size of a table with its indexes. Rows are an estimate."""

    rows: int
    size_bytes: int

    @property
    def is_large(self) -> bool:
        """Return whether work on all rows may take longer than a second."""
        return self.rows >= LARGE_ROWS or self.size_bytes >= LARGE_BYTES


@dataclass(frozen=True, slots=True)
class NotNullCheck:
    """A check that one column of a table is not null."""

    table: str
    name: str
    column: str
    is_valid: bool


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A statement and one table that it locks."""

    migration: str
    statement: str
    effect: TableEffect
    size: TableSize | None
    """None if the table does not exist yet, or the statement locks none. Of the largest table if it is not known which one."""
    rule: OnlineRule | None
    """The rule that the statement breaks; None if it is online or the table is new."""

    @property
    def is_online(self) -> bool:
        """Return whether nodes can work while the statement runs, however large the table."""
        return self.rule is None

    @property
    def is_refused(self) -> bool:
        """Return whether the statement would stop the nodes of this database for longer than a second."""
        return self.rule is not None and self.size is not None and self.size.is_large


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The steps of all pending migrations, in order."""

    steps: tuple[PlanStep, ...]

    @property
    def refused(self) -> tuple[PlanStep, ...]:
        """Return the steps that need stopped nodes."""
        return tuple(step for step in self.steps if step.is_refused)

    def tables_of(self, migration: Migration) -> list[str]:
        """Return the tables that a migration locks."""
        steps = (step for step in self.steps if step.migration == migration.label)
        return list(dict.fromkeys(step.effect.table for step in steps if step.effect.table))


@dataclass(slots=True)
class KnownChecks:
    """The checks of columns, and which of them are validated when a later statement runs."""

    columns: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    valid: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Tables and columns."""

    def add(self, checks: Iterable[NotNullCheck]) -> None:
        """Note the checks that the database has."""
        for check in checks:
            self.columns[check.table, check.name] = check.column
            if check.is_valid:
                self.valid.add((check.table, check.column))

    def see(self, statement: ScriptStatement) -> None:
        """Note a check that the statement adds or validates."""
        reader = WordReader(statement.words)
        if not reader.take("alter", "table"):
            return
        reader.take_any("only")
        table = reader.name()
        for action in reader.parts():
            words = WordReader(action)
            if words.take("validate", "constraint"):
                name = words.name()
                if (column := self.columns.get((table, name))) is not None:
                    self.valid.add((table, column))
            elif words.take("add", "constraint"):
                name = words.name()
                if words.take("check", "("):
                    column = words.name()
                    if words.take("is", "not", "null", ")", "not", "valid"):
                        self.columns[table, name] = column


def judge(
    pending: Sequence[Migration], sizes: Mapping[str, TableSize], checks: KnownChecks | None = None
) -> MigrationPlan:
    """Judge every statement of the pending migrations. A table that is not in `sizes` is new."""
    known = checks or KnownChecks()
    steps: list[PlanStep] = []
    for migration in pending:
        held = ""  # a table whose lock the transaction holds, which writes wait for
        for statement in migration.statements():
            for effect in effects_of(statement) or [TableEffect()]:
                is_proven = bool(effect.not_null) and (effect.table, effect.not_null) in known.valid
                step = _step(migration, statement, effect.proven() if is_proven else effect, sizes)
                if held and step.rule is None and step.effect.work.is_long and step.size is not None:
                    step = replace(step, rule=OnlineRule.SHORT_TRANSACTION)
                steps.append(step)
            if migration.in_transaction:
                held = held or next((table for table in _blocked(steps, migration) if table in sizes), "")
            known.see(statement)
    return MigrationPlan(tuple(steps))


def _step(
    migration: Migration, statement: ScriptStatement, effect: TableEffect, sizes: Mapping[str, TableSize]
) -> PlanStep:
    size = sizes.get(effect.table)
    if effect.work is Work.UNKNOWN:
        size = max(sizes.values(), key=lambda each: each.size_bytes, default=None)
    rule = effect.rule if size is not None and not effect.is_online else None
    shown = " ".join(statement.text.split())
    return PlanStep(migration.label, shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 1]}…", effect, size, rule)


def _blocked(steps: Iterable[PlanStep], migration: Migration) -> list[str]:
    own = (step.effect for step in steps if step.migration == migration.label)
    return [effect.table for effect in own if effect.lock.blocks_writes]


async def plan_of(connection: Platform, pending: Sequence[Migration]) -> MigrationPlan:
    """Judge the pending migrations by the tables of this database."""
    effects = [
        effect for migration in pending for statement in migration.statements() for effect in effects_of(statement)
    ]
    own = [f"horai.{name}" for name in await connection.fetchval(sql("tables_to_isolate")) or ()]
    names = list(dict.fromkeys([*own, *(effect.table for effect in effects if effect.table)]))
    sizes = {
        row["name"]: TableSize(row["rows"], row["bytes"])
        for row in await connection.fetch(sql("relation_sizes"), names)
    }
    checks = KnownChecks()
    checks.add(
        NotNullCheck(row["held_by"], row["name"], row["column_name"], row["is_valid"])
        for row in await connection.fetch(sql("not_null_checks"), names)
    )
    return judge(pending, sizes, checks)
