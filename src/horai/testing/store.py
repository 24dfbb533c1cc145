"""Queries of a harness. Their SQL functions are in virtual_time.sql and outlook.sql."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import resources
from typing import NamedTuple

from horai.db.pool import Platform


class DuePlace(NamedTuple):
    """A lane of a shard with claimable rows: the earliest due time and the number of rows."""

    shard: int
    lane: int
    due: datetime
    rows: int


@dataclass(frozen=True, slots=True)
class StoreOutlook:
    """The work due at this moment, and the next due time. Two equal outlooks mean that nothing has happened."""

    places: tuple[DuePlace, ...] = ()
    next_at: datetime | None = None
    due_stages: dict[str, int] = field(default_factory=dict[str, int])
    """The amount of due work, or a count of progress, by the name of the stage that does it."""

    @property
    def is_quiet(self) -> bool:
        """Return whether nothing is due now."""
        return not self.places and not self.due_stages


class CameTo(NamedTuple):
    """The state of an instance after its last claim."""

    id: int
    fence: int
    state: str
    result: str | None
    error_code: str | None
    error_msg: str | None


def script(name: str) -> str:
    """Return the text of a file of this package."""
    return resources.files("horai.testing").joinpath(name).read_text("utf-8")


async def show_virtual_time(connection: Platform) -> None:
    """Make the functions of the migrations use the virtual time, and create the functions of outlook.sql."""
    await connection.execute("select virtual_time.show_to_functions_of('horai')")
    await connection.execute(script("outlook.sql"))


async def move_to(connection: Platform, moment: datetime) -> None:
    """Set the time of the database."""
    await connection.execute("select virtual_time.move_to($1)", moment)


async def outlook(connection: Platform) -> StoreOutlook:
    """Return the due work and the next due time."""
    rows = await connection.fetch("select kind, shard, lane, at, rows from virtual_time.outlook()")
    return StoreOutlook(
        tuple(sorted(DuePlace(*row) for kind, *row in rows if kind == "place")),
        next((at for kind, _, _, at, _ in rows if kind == "next"), None),
        {kind: count for kind, _, _, _, count in rows if kind not in {"place", "next"}},
    )


async def came_to(connection: Platform, ids: Sequence[int]) -> list[CameTo]:
    """Return the current state of these instances."""
    rows = await connection.fetch("select * from virtual_time.came_to($1)", list(ids))
    return [CameTo(*row.values()) for row in rows]
