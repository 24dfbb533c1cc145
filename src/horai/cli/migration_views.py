"""The output of `horai migrate`: the plan as a table, the applied files, and both as JSON."""

import json
from collections.abc import Sequence
from typing import Any

from horai.cli.show import console, print_json, say, table
from horai.db.migration_file import Migration
from horai.db.migration_locks import LockMode
from horai.db.migration_plan import MigrationPlan, PlanStep

COLUMNS = ("MIGRATION", "ONLINE", "LOCK", "TABLE", "ROWS", "SIZE", "WORK", "STATEMENT")
NOTHING = "Nothing to do: the database is at this version."
_UNITS = ("B", "kB", "MB", "GB", "TB")


def size_text(size: float) -> str:
    """Return a number of bytes in the largest unit of 1,024 that leaves at least 1."""
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:,.0f} {_UNITS[unit]}" if size >= 10 or unit == 0 else f"{size:,.1f} {_UNITS[unit]}"


def print_plan(plan: MigrationPlan, as_json: bool) -> None:
    """Print each statement and each table that it locks; then the statements that need stopped nodes."""
    if as_json:
        steps = [_document(step) for step in plan.steps]
        print_json(json.dumps({"steps": steps, "refused": [_document(step) for step in plan.refused]}).encode())
        return
    if not plan.steps:
        say(NOTHING)
        return
    console().print(table(COLUMNS, map(_row, plan.steps)))
    for step in plan.steps:
        if step.rule is not None:
            say(f"{step.migration}: not online, rule {step.rule.id}: {step.rule}")
    if plan.refused:
        say(
            "horai migrate refuses these migrations on this database. With every node stopped: horai migrate --offline."
        )


def print_migrations(applied: Sequence[Migration], as_json: bool, *, dry_run: bool) -> None:
    """Print the applied migrations, or those that would be applied."""
    if as_json:
        names = [migration.label for migration in applied]
        print_json(json.dumps({"migrations": names, "isDryRun": dry_run}).encode())
        return
    for migration in applied:
        print(f"{'would apply' if dry_run else 'applied'} {migration.label}")
    if not applied:
        say(NOTHING)


def _row(step: PlanStep) -> tuple[str, ...]:
    size = step.size
    rows, stored = (f"{size.rows:,}", size_text(size.size_bytes)) if size else ("", "")
    named = step.effect.table or ("any" if step.rule else "")
    work = "" if step.effect.lock is LockMode.NONE and not step.rule else str(step.effect.work)
    return (
        step.migration,
        "yes" if step.is_online else "no",
        str(step.effect.lock),
        named if size or not named else f"{named} (new)",
        rows,
        stored,
        work,
        step.statement,
    )


def _document(step: PlanStep) -> dict[str, Any]:
    return {
        "migration": step.migration,
        "statement": step.statement,
        "table": step.effect.table or None,
        "lock": str(step.effect.lock),
        "work": str(step.effect.work),
        "rows": step.size.rows if step.size else None,
        "bytes": step.size.size_bytes if step.size else None,
        "isOnline": step.is_online,
        "isRefused": step.is_refused,
        "rule": step.rule.id if step.rule else None,
        "advice": str(step.rule) if step.rule else None,
    }
