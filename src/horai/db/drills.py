"""The rows that a drill counts in the end."""

from dataclasses import dataclass
from datetime import datetime

from horai.db.catalog import sql
from horai.db.pool import Platform


@dataclass(frozen=True, slots=True)
class DrillRows:
    """The rows of a database after a drill, by instance id."""

    ended: dict[int, tuple[str, datetime]]
    """The final state and its time."""
    losses: dict[int, int]
    """The number of attempts that were lost with their node."""
    letters: set[int]
    """The instances with a dead letter that waits for an operator."""


async def has_live(connection: Platform) -> bool:
    """Return whether an instance may still change."""
    return await connection.fetchval(sql("drill_has_live"))


async def rows_after(connection: Platform) -> DrillRows:
    """Read the rows that a drill counts."""
    ended = await connection.fetch(sql("drill_ended"))
    losses = await connection.fetch(sql("drill_losses"))
    letters = await connection.fetch(sql("drill_letters"))
    return DrillRows(
        {row["id"]: (row["ended"], row["finished_at"]) for row in ended},
        {row["instance_id"]: row["losses"] for row in losses},
        {row["instance_id"] for row in letters},
    )


async def dead_letters(connection: Platform) -> set[int]:
    """Return the instances with a dead letter that waits for an operator."""
    return {row["instance_id"] for row in await connection.fetch(sql("drill_letters"))}
